"""Tests of arrays that are filled while elements are computed."""

import threading

import numpy as np
import pytest

from dataset.plan.structure import LEAF, structure_of
from dataset.runtime.chunks.chunk import Chunk, concatenate_columns
from dataset.runtime.chunks.normalization import chunk_of_rows
from dataset.runtime.parallel.blocks import Block

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


def test_a_missing_row_is_not_jumped_over():
    block = Block(4)
    parts = [block.write(0, rows(0)), block.write(2, rows(2, 3))]
    joined = Chunk.concatenate(parts).columns()[0]
    assert joined[:, 0].tolist() == [0, 2, 3]
    assert joined.base is None


def test_exceptions_leave_their_rows_empty():
    error = ValueError("bad")
    written = Block(4).write_all(0, [rows(0), error, rows(2, 3)])
    assert written[1] is error
    assert written[2].columns()[0][:, 0].tolist() == [2, 3]
    assert written[2].columns()[0].base is written[0].columns()[0].base


@pytest.mark.parametrize("other", [rows(1, dtype=np.float32), chunk_of_rows([np.zeros(3)], LEAF)])
def test_what_does_not_fit_stays_as_it_is(other):
    block = Block(4)
    block.write(0, rows(0))
    assert block.write(1, other).columns()[0] is other.columns()[0]


def test_another_structure_stays_as_it_is():
    block, other = Block(4), chunk_of_rows([(1, 2)], structure_of((1, 2)))
    block.write(0, rows(0))
    assert block.write(1, other) is other


def test_text_and_objects_are_left_alone():
    chunk = chunk_of_rows([b"a", b"b"], LEAF)
    assert Block(2).write(0, chunk).columns() == chunk.columns()


def test_several_threads_write_at_once():
    block, barrier = Block(64), threading.Barrier(8)
    parts = [None] * 8

    def write(k):
        barrier.wait(60)
        parts[k] = block.write(8 * k, rows(*range(8 * k, 8 * k + 8)))

    threads = [threading.Thread(target=write, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Chunk.concatenate(parts).columns()[0][:, 0].tolist() == list(range(64))


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
