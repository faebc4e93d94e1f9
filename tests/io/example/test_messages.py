"""Tests of the protobuf messages and encode_example."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset.io.example.encode import encode_example
from dataset.io.example.messages import (
    BytesList,
    Example,
    Feature,
    FeatureList,
    FeatureLists,
    Features,
    FloatList,
    Int64List,
    SequenceExample,
)

# from tf.train.Example(...).SerializeToString(deterministic=True)
TF_EXAMPLE = (
    b"\n`\n\x16\n\x01a\x12\x11\x1a\x0f\n\r\x01\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\xac\x02\n\x10\n\x01b\x12\x0b\n\t"
    b"\n\x01x\n\x00\n\x02\xff\x00\n\x11\n\x01f\x12\x0c\x12\n\n\x08\x00\x00\x00?\x00\x00\xa0\xbf\n\x08\n\x04none\x12\x00"
    b"\n\n\n\x04zero\x12\x02\x1a\x00\n\x0b\n\x02\xc3\xa9\x12\x05\x1a\x03\n\x01\x07"
)
TF_SEQUENCE = (
    b"\n\r\n\x0b\n\x02id\x12\x05\x1a\x03\n\x01\x05"
    b"\x12\x1a\n\x18\n\x01w\x12\x13\n\x06\n\x04\n\x02hi\n\t\n\x07\n\x02yo\n\x01u"
)


def listed(record):
    """Return an encoded Example as a dict of lists."""
    result = {}
    for name, feature in Example.FromString(record).features.feature.items():
        kind = feature.WhichOneof("kind")
        result[name] = (kind, list(getattr(feature, kind).value)) if kind else None
    return result


def test_messages_are_wire_compatible_with_tensorflow():
    features = {
        "a": Feature(int64_list=Int64List(value=[1, -2, 300])),
        "b": Feature(bytes_list=BytesList(value=[b"x", b"", b"\xff\x00"])),
        "f": Feature(float_list=FloatList(value=[0.5, -1.25])),
        "é": Feature(int64_list=Int64List(value=[7])),
        "none": Feature(),
        "zero": Feature(int64_list=Int64List()),
    }
    message = Example(features=Features(feature=features))
    assert message.SerializeToString(deterministic=True) == TF_EXAMPLE
    assert Example.FromString(TF_EXAMPLE) == message


def test_sequence_examples_are_wire_compatible_with_tensorflow():
    words = [Feature(bytes_list=BytesList(value=words)) for words in ([b"hi"], [b"yo", b"u"])]
    message = SequenceExample(
        context=Features(feature={"id": Feature(int64_list=Int64List(value=[5]))}),
        feature_lists=FeatureLists(feature_list={"w": FeatureList(feature=words)}),
    )
    assert message.SerializeToString(deterministic=True) == TF_SEQUENCE


def test_encoded_bytes_are_those_of_tensorflow():
    features = {
        "é": 7,
        "b": ["x", b"", b"\xff\x00"],
        "a": np.array([1, -2, 300]),
        "f": [0.5, -1.25],
        "none": [],
        "zero": np.zeros(0, np.int64),
    }
    assert encode_example(features) == TF_EXAMPLE


def test_messages_have_a_package_of_their_own_and_can_be_pickled():
    assert Example.DESCRIPTOR.full_name == "dataset.io.Example"
    message = Example.FromString(TF_EXAMPLE)
    assert pickle.loads(pickle.dumps(message)) == message


def test_the_default_pool_stays_free_for_tensorflow():
    code = (
        "import dataset.io.example.messages\n"
        "from google.protobuf import descriptor_pool\n"
        "try: descriptor_pool.Default().FindFileByName('dataset/io/example.proto')\n"
        "except KeyError: print('free')\n"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"free\n"


def test_every_kind_of_value_finds_its_list():
    record = encode_example(
        {
            "bool": True,
            "int": -1,
            "np_int": np.uint8(200),
            "np_bool": np.bool_(True),
            "ints": (1, np.int32(2), False),
            "matrix": np.arange(4, dtype=np.int16).reshape(2, 2),
            "float": 0.5,
            "np_float": np.float16(1.5),
            "floats": np.array([1e300, np.nan]),
            "str": "é",
            "bytes": b"\x00",
            "np_bytes": np.bytes_(b"n"),
            "objects": np.array([[b"a", "b"]], object),
            "text": np.array(["x", "yz"]),
        }
    )
    found = listed(record)
    floats = found.pop("floats")
    assert floats[0] == "float_list"
    assert floats[1][0] == np.inf
    assert np.isnan(floats[1][1])
    assert found == {
        "bool": ("int64_list", [1]),
        "int": ("int64_list", [-1]),
        "np_int": ("int64_list", [200]),
        "np_bool": ("int64_list", [1]),
        "ints": ("int64_list", [1, 2, 0]),
        "matrix": ("int64_list", [0, 1, 2, 3]),
        "float": ("float_list", [0.5]),
        "np_float": ("float_list", [1.5]),
        "str": ("bytes_list", ["é".encode()]),
        "bytes": ("bytes_list", [b"\x00"]),
        "np_bytes": ("bytes_list", [b"n"]),
        "objects": ("bytes_list", [b"a", b"b"]),
        "text": ("bytes_list", [b"x", b"yz"]),
    }


@given(
    st.dictionaries(
        st.text(max_size=4),
        st.one_of(
            st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=1),
            st.lists(st.integers(0, 300), min_size=1, max_size=200),
            st.lists(st.floats(width=32, allow_nan=False), min_size=1),
            st.lists(st.binary(max_size=300), min_size=1),
        ),
        max_size=5,
    )
)
def test_what_was_encoded_is_what_protobuf_writes(features):
    message = Example(features=Features())
    for name, values in features.items():
        kind = {int: "int64_list", float: "float_list", bytes: "bytes_list"}[type(values[0])]
        getattr(message.features.feature[name], kind).value.extend(values)
    encoded = encode_example(features)
    assert Example.FromString(encoded) == message
    assert len(encoded) == message.ByteSize()  # only the order of keys, which protobuf does not define, may differ


def test_the_order_of_the_dict_does_not_matter():
    assert encode_example({"b": 1, "a": 2}) == encode_example({"a": 2, "b": 1})


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (None, "a NoneType"),
        ({"x": 1}, "a dict"),
        ([1, 2.0], "a list of float, int"),
        ([1, "a"], "a list of int, str"),
        ([[1], [2]], "a list of list"),
        (1 << 63, "an int beyond int64"),
        ([1, 1 << 70], "an int beyond int64"),
        (np.array([1 << 63], np.uint64), "an int beyond int64"),
        (1j, "a complex"),
        (np.array([1j]), "dtype complex128"),
        (np.array(["2020-01-01"], "datetime64[D]"), "dtype datetime64"),
        (np.array([None, b""], object), "NoneType"),
    ],
)
def test_other_values_are_refused_with_the_name_of_the_feature(value, what):
    with pytest.raises(TypeError, match=what) as error:
        encode_example({"good": 1, "bad": value})
    assert "'bad'" in str(error.value)


def test_names_must_be_str():
    with pytest.raises(TypeError, match="names of features must be str"):
        encode_example({b"x": 1})
