"""The file of a state: exactly what was saved, or an error that says what is wrong with it."""

import hashlib
import json
import math
import struct

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dataset import Dataset, StateError, checkpoint
from dataset.checkpoint import container
from support.states import Holder


def same(a, b):
    """Equal in every type and bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, float):
        return struct.pack("d", a) == struct.pack("d", b) or (math.isnan(a) and math.isnan(b))
    return a == b


DTYPES = ["?", "i1", "u1", "<i2", ">i4", "<u8", "f2", "f4", ">f8", "c8", "c16", "M8[ns]", "m8[D]", "M8", "S3", "<U2"]


@st.composite
def arrays(draw):
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    shape = draw(st.lists(st.integers(0, 3), max_size=3))
    if dtype.kind in "SU":
        values = draw(st.lists(st.sampled_from(["", "a", "bc"]), min_size=math.prod(shape), max_size=math.prod(shape)))
        return np.array(values, dtype).reshape(shape)
    count = math.prod(shape) * dtype.itemsize
    content = draw(st.binary(min_size=count, max_size=count))
    if dtype.kind == "b":
        content = bytes(byte & 1 for byte in content)
    return np.frombuffer(content, dtype).reshape(shape).copy()


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.integers(-(2**200), 2**200), st.floats(), st.text())
PLAIN = st.recursive(
    st.one_of(SCALARS, st.binary(), arrays()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(
            st.one_of(st.text(max_size=5), st.sampled_from(["$", "$bytes", "$array", "format"])), inner, max_size=4
        ),
        st.dictionaries(st.integers(), inner, max_size=2),
    ),
    max_leaves=20,
)


@settings(deadline=None, max_examples=60)
@given(PLAIN)
@example({"$pairs": [1], "$x": {"$array": b""}})
@example([float("nan"), float("inf"), -float("inf"), -0.0, 2**53, 2**53 + 1, -(2**64), 10**5000])
@example("\ud800")
@example({"a": True, 1: 2, None: 3})
@example({"format": "dataset state as JSON, version 1", "digest": "", "state": 1})
def test_plain_data_is_restored_from_a_file_and_from_json(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "a.state"
    checkpoint.save(path, Holder(data))
    found = Holder()
    checkpoint.restore(path, found)
    assert same(found.state, data)
    text = json.dumps(checkpoint.to_json(data), allow_nan=False)
    assert same(checkpoint.from_json(json.loads(text)), data)


def test_other_data_is_refused_before_a_file_is_touched(tmp_path):
    path = tmp_path / "a.state"
    checkpoint.save(path, Holder({"good": 1}))
    for bad in ({1}, object(), np.int64(3), np.array([None]), [b"", {"a": object()}], 1j):
        with pytest.raises(StateError, match="plain data"):
            checkpoint.save(path, Holder(bad))
        with pytest.raises(StateError, match="plain data"):
            checkpoint.to_json(bad)
    assert outcome(path) == {"good": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["a.state"]


SMALL = {"a": [1, 2.5, None], "b": b"bytes", "c": np.arange(3), "d": "text"}


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.state"
    checkpoint.save(path, Holder(SMALL))
    return path


def outcome(path):
    """What comes of restoring: the state, or the message of the StateError that names the file."""
    holder = Holder()
    try:
        checkpoint.restore(path, holder)
    except StateError as error:
        return str(error) if str(path) in str(error) else None
    return holder.state


def test_a_change_of_any_byte_is_detected(small):
    content = small.read_bytes()
    for place in range(len(content)):
        for value in {0, content[place] ^ 1, content[place] ^ 128} - {content[place]}:
            small.write_bytes(content[:place] + bytes([value]) + content[place + 1 :])
            assert type(outcome(small)) is str, (place, value)


def test_a_file_of_another_length_is_an_error(small):
    content = small.read_bytes()
    for length in range(len(content)):
        small.write_bytes(content[:length])
        message = outcome(small)
        assert f"truncated after {length:,}" in message
        if length >= 32:
            assert f"of {len(content):,} bytes" in message
    small.write_bytes(content + b"\0")
    assert "has more than" in outcome(small)


def test_other_files_and_other_versions_are_recognized(small):
    content = bytearray(small.read_bytes())
    content[8] = 7
    small.write_bytes(content)
    assert "format version 7, but version " in outcome(small)
    for other in (b"{}", b"\x80\x04}q\0.", b"\x93NUMPY\1\0", b"\x93DSTATE\r\n" + bytes(100)):
        small.write_bytes(other)
        assert "not a checkpoint" in outcome(small)


def sealed(header, blobs=b""):
    """A file with a right digest, whatever is in it."""
    content = struct.pack("<8sIIQQ", container.MAGIC, 1, 0, 32 + len(header) + len(blobs) + 32, len(header))
    content += header + blobs
    return content + hashlib.blake2b(content, digest_size=32).digest()


def document(state):
    return json.dumps({"saved": 1, "library": "x", "state": state}).encode()


def array(place, dtype, shape):
    return document({"$array": place, "dtype": dtype, "shape": shape})


HUGE = 2**62 - 1
CRAFTED = {
    "no json": b"{",
    "no dict": b"[]",
    "no state": b'{"saved": 1, "library": "x"}',
    "no utf-8": b"\xff",
    "time": b'{"saved": "x", "library": "x", "state": 1}',
    "deep": b'{"saved": 1, "library": "x", "state": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deeper": b"[" * 10_000_000,
    "long int": document(1)[:-2] + b"9" * 5000 + b"}",
    "objects": array([0, 8], "|O", [1]),
    "structured": array([0, 8], "i4,i4", [1]),
    "void": array([0, 8], "|V8", [1]),
    "bytes": array([0, 8], "bytes", [1]),
    "empty text": array([0, 0], "|S0", [HUGE]),
    "huge text": array([0, 8], "|S999999999", [1]),
    "shape": array([0, 8], "<i4", [HUGE]),
    "negative": array([0, 8], "<i4", [-1]),
    "dimensions": array([0, 8], "<i4", [1] * 1000 + [2]),
    "empty and huge": array([0, 0], "<i4", [0, HUGE, HUGE, HUGE]),
    "floats": array([0, 8], "<i4", [2.0]),
    "after": document({"$bytes": [0, HUGE]}),
    "before": document({"$bytes": [-1, 1]}),
    "no place": document({"$bytes": "YWI="}),
    "bool": document({"$bytes": [False, True]}),
    "pairs": document({"$pairs": [[1]]}),
    "key": document({"$pairs": [[[1], 1]]}),
    "unknown": document({"$object": "os.system"}),
    "float": document({"$float": "one"}),
    "int": document({"$int": "0xzz"}),
}


@pytest.mark.parametrize("name", sorted(CRAFTED))
def test_a_crafted_file_is_a_state_error(tmp_path, name):
    path = tmp_path / "crafted.state"
    path.write_bytes(sealed(CRAFTED[name], bytes(8)))
    assert type(outcome(path)) is str
    with pytest.raises(StateError):
        checkpoint.describe(path)


def test_the_error_for_another_pipeline_names_the_file(tmp_path):
    path = tmp_path / "a.state"
    checkpoint.save(path, iter(Dataset.range(5)))
    with pytest.raises(StateError, match="they differ at op 1: range\\(5\\) there, range\\(6\\) here") as found:
        checkpoint.restore(path, iter(Dataset.range(6)))
    assert str(path) in found.value.__notes__[0]
    with pytest.raises(TypeError, match="expected an iterator with state_dict"):
        checkpoint.save(path, iter([1]))
