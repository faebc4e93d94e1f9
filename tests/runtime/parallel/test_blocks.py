"""Tests of arrays that are filled while elements are computed."""

import numpy as np
import pytest

from dataset.plan.structure import LEAF, structure_of
from dataset.runtime.chunks.chunk import Chunk, concatenate_columns
from dataset.runtime.chunks.normalization import chunk_of_rows
from dataset.runtime.parallel.blocks import Block, BlockMemory

BIG = 2048  # bytes of a row; large enough that a few rows are checked for adjacent addresses


def rows(*numbers, dtype=np.float64):
    return chunk_of_rows([np.full(BIG, number, dtype) for number in numbers], LEAF)


def test_rows_that_were_written_in_any_order_are_joined_without_a_copy():
    block = Block(5)
    last = block.write(3, rows(3, 4))
    first = block.write(0, rows(0, 1, 2))
    joined = Chunk.concatenate([first, last]).columns()[0]
    assert joined.base is first.columns()[0].base
    assert joined.shape == (5, BIG)
    assert joined[:, 0].tolist() == [0, 1, 2, 3, 4]


def test_a_missing_row_is_not_skipped_and_exceptions_leave_their_rows_empty():
    error = ValueError("bad")
    first, raised, last = Block(4).write_all(0, [rows(0), error, rows(2, 3)])
    assert raised is error
    assert last.columns()[0].base is first.columns()[0].base
    joined = Chunk.concatenate([first, last]).columns()[0]
    assert joined[:, 0].tolist() == [0, 2, 3]
    assert joined.base is None


@pytest.mark.parametrize(
    "other",
    [
        rows(1, dtype=np.float32),
        chunk_of_rows([np.zeros(3)], LEAF),
        chunk_of_rows([(1, 2)], structure_of((1, 2))),
        chunk_of_rows([b"a", b"b"], LEAF),
    ],
)
def test_what_does_not_fit_stays_as_it_is(other):
    block = Block(4)
    block.write(0, rows(0))
    assert all(a is b for a, b in zip(block.write(1, other).columns(), other.columns(), strict=True))
    assert Block(2).write(0, other).length == other.length


def test_read_only_neighbours_are_copied():
    whole = np.zeros((6, BIG))
    parts = [whole[:3], whole[3:]]
    assert concatenate_columns(parts).base is whole
    for part in parts:
        part.flags.writeable = False
    joined = concatenate_columns(parts)
    assert joined.base is None
    assert joined.flags.writeable


@pytest.mark.parametrize(
    "cut",
    [
        lambda whole: [whole[::2], whole[1::2]],
        lambda whole: [whole[3:], whole[:3]],
        lambda whole: [whole[:, :BIG], whole[:, BIG:]],
        lambda whole: [whole[:2], whole[3:]],
        lambda whole: [whole.T[:BIG], whole.T[BIG:]],
        lambda whole: [whole[:2], whole[1:4]],
    ],
)
def test_other_views_of_one_array_are_copied(cut):
    parts = cut(np.arange(12.0 * BIG).reshape(6, 2 * BIG))
    joined = concatenate_columns(parts)
    np.testing.assert_array_equal(joined, np.concatenate(parts))
    assert not np.shares_memory(joined, parts[0])


LARGE = (1 << 18,), np.dtype(np.float64)


def test_memory_is_used_again_only_once_nothing_refers_to_it():
    memory = BlockMemory()
    first = memory.array(*LARGE)
    address = first.ctypes.data
    first[:] = 1
    second = memory.array(*LARGE)
    assert second.ctypes.data != address
    row = first[5:9].reshape(2, 2)
    buffer = memoryview(first[1:2])
    del first
    for last in ("row", "buffer"):
        assert memory.array(*LARGE).ctypes.data != address, last
        if last == "row":
            del row
    assert buffer[0] == 1
    del buffer
    addresses = {array.ctypes.data for array in [memory.array(*LARGE) for _ in range(4)]}
    assert address in addresses
    assert len(addresses) == 4


def test_memory_of_another_form_is_not_used():
    memory = BlockMemory()
    address = memory.array(*LARGE).ctypes.data
    kept = [memory.array((1 << 17, 2), np.dtype(np.float64)), memory.array(LARGE[0], np.dtype(np.int64))]
    assert address not in {array.ctypes.data for array in kept}
    assert memory.array(*LARGE).ctypes.data == address
