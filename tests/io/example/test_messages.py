"""Tests of the protobuf messages and encode_example."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset.io.example.encode import encode_example
from dataset.io.example.messages import (
    Example,
    Features,
)
from support.process_helpers import run_code

# from tf.train.Example(...).SerializeToString(deterministic=True)
TF_EXAMPLE = (
    b"\n`\n\x16\n\x01a\x12\x11\x1a\x0f\n\r\x01\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\xac\x02\n\x10\n\x01b\x12\x0b\n\t"
    b"\n\x01x\n\x00\n\x02\xff\x00\n\x11\n\x01f\x12\x0c\x12\n\n\x08\x00\x00\x00?\x00\x00\xa0\xbf\n\x08\n\x04none\x12\x00"
    b"\n\n\n\x04zero\x12\x02\x1a\x00\n\x0b\n\x02\xc3\xa9\x12\x05\x1a\x03\n\x01\x07"
)


def test_encoded_bytes_are_those_of_tensorflow():
    """The order of the dict does not matter."""
    features = {"é": 7, "b": ["x", b"", b"\xff\x00"], "a": np.array([1, -2, 300]), "f": [0.5, -1.25]}
    assert encode_example(features | {"none": [], "zero": np.zeros(0, np.int64)}) == TF_EXAMPLE


def test_the_default_pool_stays_free_for_tensorflow():
    code = (
        "import dataset.io.example.messages\n"
        "from google.protobuf import descriptor_pool\n"
        "try: descriptor_pool.Default().FindFileByName('dataset/io/example.proto')\n"
        "except KeyError: print('free')\n"
    )
    assert run_code(code).stdout == "free\n"


@pytest.mark.parametrize(
    ("value", "kind", "values"),
    [
        *((True, "int64", [1]), (-1, "int64", [-1]), (np.uint8(200), "int64", [200]), (np.bool_(True), "int64", [1])),
        ((1, np.int32(2), False), "int64", [1, 2, 0]),
        (np.arange(4, dtype=np.int16).reshape(2, 2), "int64", [0, 1, 2, 3]),
        *((0.5, "float", [0.5]), (np.float16(1.5), "float", [1.5]), (np.array([1e300]), "float", [np.inf])),
        *(("é", "bytes", ["é".encode()]), (b"\x00", "bytes", [b"\x00"]), (np.bytes_(b"n"), "bytes", [b"n"])),
        (np.array([[b"a", "b"]], object), "bytes", [b"a", b"b"]),
        (np.array(["x", "yz"]), "bytes", [b"x", b"yz"]),
    ],
    ids=repr,
)
def test_every_kind_of_value_finds_its_list(value, kind, values):
    feature = Example.FromString(encode_example({"x": value})).features.feature["x"]
    assert feature.WhichOneof("kind") == f"{kind}_list"
    assert list(getattr(feature, f"{kind}_list").value) == values


INT64S = st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=1) | st.lists(st.integers(0, 300), min_size=1)
FLOATS = st.lists(st.floats(width=32, allow_nan=False), min_size=1)
TEXTS = st.lists(st.binary(max_size=300), min_size=1)


@given(st.dictionaries(st.text(max_size=4), INT64S | FLOATS | TEXTS, max_size=5))
def test_what_was_encoded_is_what_protobuf_writes(features):
    message = Example(features=Features())
    for name, values in features.items():
        kind = {int: "int64_list", float: "float_list", bytes: "bytes_list"}[type(values[0])]
        getattr(message.features.feature[name], kind).value.extend(values)
    encoded = encode_example(features)
    assert Example.FromString(encoded) == pickle.loads(pickle.dumps(message)) == message
    assert len(encoded) == message.ByteSize()  # only the order of keys, which protobuf does not define, may differ


@pytest.mark.parametrize(
    ("value", "what"),
    [
        *((None, "a NoneType"), ({"x": 1}, "a dict"), (1j, "a complex"), (np.array([1j]), "dtype complex128")),
        *(([1, 2.0], "a list of float, int"), ([1, "a"], "a list of int, str"), ([[1], [2]], "a list of list")),
        *((value, "an int beyond int64") for value in (1 << 63, [1, 1 << 70], np.array([1 << 63], np.uint64))),
        (np.array(["2020-01-01"], "datetime64[D]"), "dtype datetime64"),
        (np.array([None, b""], object), "NoneType"),
    ],
    ids=repr,
)
def test_other_values_are_refused_with_the_name_of_the_feature(value, what):
    with pytest.raises(TypeError, match=what) as error:
        encode_example({"good": 1, "bad": value})
    assert "'bad'" in str(error.value)
    with pytest.raises(TypeError, match="names of features must be str"):
        encode_example({b"x": 1})
