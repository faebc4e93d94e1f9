"""Tests of the codec: columns to records and back, and truncated records."""

import json
import struct

import numpy as np
import pytest

from dataset import RaggedTensor, SparseTensor, TensorSpec
from dataset.io.elements.codec import column_kind, encode
from dataset.io.elements.decoding import DamagedRecordError, decode
from dataset.plan.spec import RaggedTensorSpec, SparseTensorSpec
from dataset.testing import assert_elements_equal
from support.memory import memory_below

DTYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16", ">i4", ">f8"]


def round_trip(*columns):
    length = len(columns[0])
    found, specs, count = decode(encode(columns, length), len(columns))
    assert count == length
    assert all(len(column) == length for column in found)
    return found, specs


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_of_every_dtype_come_back(dtype):
    for shape in ((3,), (2, 4), (1, 2, 3), (2, 0), (1, 3, 0, 5)):
        array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
        (found,), (spec,) = round_trip(array)
        assert_elements_equal([found], [array])
        assert spec == TensorSpec(shape[1:], dtype)


@pytest.mark.parametrize("unit", ["ns", "D", "25s", "us"])
def test_times_keep_their_unit(unit):
    times = np.array([0, 1, -5, np.iinfo("i8").min]).astype(f"M8[{unit}]")
    spans = times.astype("i8").view(f"m8[{unit}]")
    (found, other, listed), _ = round_trip(times, spans, list(times))
    assert found.dtype == times.dtype
    assert np.array_equal(found.view("i8"), times.view("i8"))
    assert other.dtype == spans.dtype
    assert listed.dtype == times.dtype


def test_numbers_are_read_only_views_of_the_record():
    (found,), _ = round_trip(np.arange(6).reshape(3, 2))
    assert not found.flags.writeable
    assert not found.flags.owndata
    assert found.ctypes.data % found.itemsize == 0


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_that_are_not_contiguous_come_back(order):
    array = np.asarray(np.arange(24).reshape(2, 3, 4), order=order)
    for view in (array, array[:, ::-1], array[::-1, :, 1::2], array.transpose(2, 0, 1)):
        (found,), _ = round_trip(view)
        assert_elements_equal([found], [np.ascontiguousarray(view)])


TEXTS = [b"", b"a", b"a\0", b"\0\0", b"\xff\xfe", b"long" * 1000]
INTS = np.int64
LISTS = {
    "bytes": (TEXTS, TensorSpec((), bytes)),
    "arrays of bytes": (np.array(TEXTS, object).reshape(3, 2), TensorSpec((2,), bytes)),
    "empty arrays of bytes": (np.zeros((2, 0), object), TensorSpec((0,), bytes)),
    "shapes": ([np.arange(n * 2).reshape(n, 2) for n in (0, 3, 1)], TensorSpec((None, 2), INTS)),
    "shapes of bytes": ([np.array(TEXTS[:n], object) for n in (2, 0, 5)], TensorSpec((None,), bytes)),
    "ranks": ([np.int64(3), np.arange(2), np.zeros((2, 2), INTS)], TensorSpec(None, INTS)),
    "equal shapes": ([np.arange(3), np.arange(3) + 1], TensorSpec((3,), INTS)),
    "ragged": (
        [RaggedTensor.from_rows([[1, 2], [], [3]]), RaggedTensor.from_rows([[4]]), RaggedTensor.from_rows([], INTS)],
        RaggedTensorSpec((None, None), INTS, 1),
    ),
    "ragged twice": (
        [
            RaggedTensor(RaggedTensor(np.zeros((3, 2)), [0, 1, 3]), [0, 2]),
            RaggedTensor(RaggedTensor(np.ones((0, 2)), [0]), [0]),
        ],
        RaggedTensorSpec((None, None, None, 2), np.float64, 2),
    ),
    "ragged bytes": ([RaggedTensor(np.array([b"a\0", b""], object), [0, 1, 2])], RaggedTensorSpec((2, None), bytes, 1)),
    "sparse": (
        [SparseTensor([[0, 1], [1, 0]], [5.0, 6.0], [2, 2]), SparseTensor(np.zeros((0, 2)), np.zeros(0), [3, 2])],
        SparseTensorSpec((None, 2), np.float64),
    ),
    "a sparse scalar": ([SparseTensor(np.zeros((1, 0)), [1], [])], SparseTensorSpec((), INTS)),
}


@pytest.mark.parametrize(("column", "spec"), LISTS.values(), ids=LISTS)
def test_values_of_every_kind_come_back(column, spec):
    (found,), specs = round_trip(column)
    assert_elements_equal(list(found), list(column))
    assert list(specs) == [spec]


OTHERS = [[object()], np.array([b"a", "text", None], object), [np.array([1, None], object)]]
OTHERS += [np.zeros(2, [("a", "i4")]), np.zeros(2, "V4"), [RaggedTensor(np.array([None], object), [0, 1])]]


@pytest.mark.parametrize("column", OTHERS, ids=["object", "mixed", "in an array", "record", "void", "ragged"])
def test_other_objects_have_no_kind(column):
    with pytest.raises(TypeError, match=r"cannot be written|can be written"):
        column_kind(column)


HUGE = 2**61
ROWS = ["array", "<i8", [2]]
DESCRIBED = [["array", "<i8", [2, *shape]] for shape in ([HUGE], [HUGE, HUGE, HUGE], [0, HUGE, HUGE], [-1], [1.0])]
DESCRIBED += [
    ["array", "<i8", [3]],
    ["array", "<i8", []],
    ["arrays", "<i8", 70],
    ["arrays", "<i8", 0],
    "array",
    None,
    {},
]
DESCRIBED += [["array", dtype, [2]] for dtype in ("|O", "O", "object", "<V8", "<i9", "i8,i8", [["a", "<i8"]], "bytes")]
DESCRIBED += [["ragged", []], ["ragged", [ROWS, ROWS]], ["sparse", [ROWS, ROWS, ROWS]], ["each", []]]
DESCRIBED += [["each", [["array", "<i8", [1]], ["array", "<f8", [1]]]]]


def record_of(described, *buffers, elements=2, extra=b""):
    """Return a record with any description of one column and any content."""
    head = json.dumps({"elements": elements, "columns": [described]}).encode()
    record = struct.pack("<I", len(head)) + head
    for buffer in buffers:
        record += bytes(-len(record) % 16) + buffer
    return record + extra


def i8(*values):
    return np.array(values, "<i8").tobytes()


@pytest.mark.parametrize("described", DESCRIBED, ids=str)
def test_what_a_record_says_of_itself_is_not_believed(described):
    with pytest.raises(DamagedRecordError):
        decode(record_of(described, i8(1, 1, 1, 1)), 1)


TEXTS_OF = ["array", "bytes", [2]]
SHAPED = ["arrays", "<i8", 1]
RAGGED = ["ragged", [["arrays", "<i8", 1], ["arrays", "<i8", 1]]]
SPARSE = ["sparse", [["array", "<i8", [2, 1, 1]], ["array", "<i8", [2, 1]], ["array", "<i8", [2, 1]]]]

GOOD = {
    "array": (ROWS, i8(1, 2)),
    "array without bytes": (["array", "<i8", [2, 0]], b""),
    "bytes": (TEXTS_OF, i8(1, 2), b"abc"),
    "arrays": (SHAPED, i8(1, 2), i8(1, 2, 3)),
    "ragged": (RAGGED, i8(1, 2), i8(7, 8, 9), i8(2, 3), i8(0, 1, 0, 1, 2)),
    "sparse": (SPARSE, i8(0, 2), i8(5, 6), i8(1, 3)),
}
DAMAGED = {
    "an array that is one byte short": (ROWS, i8(1, 2)[:-1]),
    "an array that is not there": (ROWS,),
    "an array with more bytes": (ROWS, i8(1, 2, 3)),
    "an array that needs the alignment's bytes": (["array", "|u1", [2]], b"", b"a"),
    "a length of text below zero": (TEXTS_OF, i8(-1, 4), b"abc"),
    "text that is one byte short": (TEXTS_OF, i8(1, 3), b"abc"),
    "text whose lengths overflow": (TEXTS_OF, i8(2**62, 2**62), b"abc"),
    "lengths of text that are cut": (TEXTS_OF, i8(1)),
    "a size below zero": (SHAPED, i8(-1, 4), i8(1, 2, 3)),
    "two sizes below zero": (["arrays", "<i8", 2], i8(-1, -1, 1, 2), i8(1, 2, 3)),
    "sizes of more values": (SHAPED, i8(1, 3), i8(1, 2, 3)),
    "sizes that overflow": (["arrays", "<i8", 2], i8(2**33, 2**33, 1, 1), i8(1, 2, 3)),
    "row splits after the values": (RAGGED, i8(1, 2), i8(7, 8, 9), i8(2, 3), i8(0, 1, 0, 1, 3)),
    "row splits that descend": (RAGGED, i8(1, 2), i8(7, 8, 9), i8(2, 3), i8(0, 1, 0, 3, 2)),
    "row splits that begin later": (RAGGED, i8(1, 2), i8(7, 8, 9), i8(2, 3), i8(1, 1, 0, 1, 2)),
    "row splits of numbers with a point": (
        ["ragged", [["arrays", "<i8", 1], ["arrays", "<f8", 1]]],
        *(i8(1, 2), i8(7, 8, 9), i8(2, 3), i8(0, 1, 0, 1, 2)),
    ),
    "an index after the shape": (SPARSE, i8(0, 3), i8(5, 6), i8(1, 3)),
    "an index below zero": (SPARSE, i8(0, -1), i8(5, 6), i8(1, 3)),
    "a shape below zero": (SPARSE, i8(0, 2), i8(5, 6), i8(1, -3)),
    "bytes for an index": (["sparse", [TEXTS_OF, ROWS, ROWS]], i8(0, 0), b"", i8(1, 2), i8(1, 2)),
}


@pytest.mark.parametrize("parts", GOOD.values(), ids=GOOD)
def test_a_record_is_read_to_its_last_byte(parts):
    (column,), _, count = decode(record_of(*parts), 1)
    assert len(column) == count == 2
    for extra in (b"\0", b"\0" * 16):
        with pytest.raises(DamagedRecordError, match=f"{len(extra)} extra bytes"):
            decode(record_of(*parts, extra=extra), 1)


@pytest.mark.parametrize("parts", DAMAGED.values(), ids=DAMAGED)
def test_a_number_beyond_the_record_is_refused_before_memory_is_allocated(parts):
    record = record_of(*parts)
    with memory_below(1 << 20), pytest.raises(DamagedRecordError):
        decode(record, 1)


HEADS = [json.dumps({"elements": count, "columns": []}).encode() for count in (0, -1, 10**9, 2.0, "2", None, True)]


@pytest.mark.parametrize("head", [*HEADS, b"[" * 100_000, b"", b"{", b"\xff", b"[]", b"3", b"1" * 5000])
def test_a_head_without_a_number_of_elements_is_refused(head):
    with pytest.raises(DamagedRecordError):
        decode(struct.pack("<I", len(head)) + head, 0)


@pytest.mark.parametrize("length", [0, 3, 2**32 - 1])
def test_a_head_that_is_longer_than_the_record_is_refused(length):
    record = record_of(ROWS, i8(1, 2))
    with pytest.raises(DamagedRecordError):
        decode(struct.pack("<I", length) + record[4:], 1)
    for size in range(len(record)):
        with pytest.raises(DamagedRecordError):
            decode(record[:size], 1)


def test_a_record_of_another_place_is_refused():
    place = ["0123456789abcdef", 1, 2]
    record = encode([np.arange(3)], 3, place)
    decode(record, 1, place)
    for other in (["0123456789abcdee", 1, 2], [place[0], 0, 2], [place[0], 1, 3]):
        with pytest.raises(DamagedRecordError, match=r"this is not record . of file . of run"):
            decode(record, 1, other)
    with pytest.raises(DamagedRecordError, match="belongs to None"):
        decode(encode([np.arange(3)], 3), 1, place)
