"""Results of a map that are written into the rows of a batch as they are returned."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset import Dataset
from dataset.native.row_loop import row_loop
from dataset.runtime.chunks.normalization import chunk_of_rows
from dataset.runtime.chunks.ownership import WRITTEN
from dataset.runtime.parallel.blocks import LARGE_BYTES, Block
from dataset.runtime.parallel.row_writer import RowWriter
from dataset.testing import assert_elements_equal, outcomes
from support.resuming import check_every_place, examples

BIG = LARGE_BYTES // 8  # numbers in a row that is large enough for blocks in threads

_buffer = np.zeros(5)


def _refilled(x):
    """Return a buffer that the next call overwrites."""
    _buffer[:] = x
    return _buffer


def _failing(x):
    if x in {3, 7}:
        raise ValueError(str(x))
    return np.full(3, x), x


FUNCTIONS = {
    "a buffer": _refilled,
    "a buffer in a tuple": lambda x: (_refilled(x)[:3], x),
    "a buffer in a dict": lambda x: {"b": _refilled(x)[::2], "a": float(x)},
    "two dtypes": lambda x: np.full(3, x, np.float32 if x == 7 else np.float64),
    "two shapes": lambda x: np.full(1 if x == 7 else 3, x),
    "two types": lambda x: (np.full(3, x), float(x) if x == 7 else int(x)),
    "two structures": lambda x: (np.full(3, x),) if x == 7 else (np.full(3, x), x),
    "two sets of keys": lambda x: {"a": np.full(3, x), "c" if x == 7 else "b": x},
    "a large int": lambda x: (np.full(3, x), 2**63 if x == 7 else int(x)),
    "failures": _failing,
    "scalar arrays": lambda x: (np.array(x), np.full(3, x)),
    "another byte order": lambda x: np.full(3, x, ">i4"),
    "times": lambda x: (np.full(3, x, "m8[s]"), x),
    "lists": lambda x: [np.full(3, x), x],
    "nested": lambda x: (np.full(3, x), (x, np.full(2, x))),
    "text": lambda x: (np.full(3, x), str(x)),
    "objects": lambda x: np.array([str(x)] * 3, object),
}


def batched(function, count, size, *, in_blocks):
    """A batch directly above a map writes its results into blocks, and a cache between them prevents that."""
    results = Dataset.range(count).map(function)
    return (results if in_blocks else results.cache()).batch(size)


@pytest.mark.parametrize("name", FUNCTIONS)
@given(count=st.integers(1, 20), size=st.integers(1, 12), places=st.sets(st.integers(0, 20), max_size=2))
@examples(6)
def test_batches_are_those_of_elements_that_were_kept_and_resume(name, count, size, places):
    function = FUNCTIONS[name]
    expected = outcomes(iter(batched(function, count, size, in_blocks=False)))
    found = outcomes(iter(batched(function, count, size, in_blocks=True)))
    assert_elements_equal(found, expected)
    if name not in {"two structures", "two sets of keys"}:  # the structure of earlier elements is not in a state
        check_every_place(lambda: batched(function, count, size, in_blocks=True), places)


@pytest.mark.parametrize("deterministic", [True, False])
def test_threads_write_large_results_into_one_block(deterministic):
    shared = np.arange(1000.0 + BIG)

    def window(x):
        if x == 70:
            raise ValueError("70")
        return shared[x : x + BIG], x

    images = Dataset.range(300).map(window, num_parallel_calls=2, deterministic=deterministic)
    rows = [row for rows, _ in images.ignore_errors().batch(32) for row in rows]
    starts = [int(row[0]) for row in rows]
    assert sorted(starts) == [x for x in range(300) if x != 70]
    assert all(np.array_equal(row, shared[start : start + BIG]) for start, row in zip(starts, rows, strict=True))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_nothing_is_lost_if_there_is_no_memory_for_a_block(monkeypatch, count):
    calls, arrays_for = [], Block.arrays_for

    def failing(block, *arguments):
        calls.append(block)
        if len(calls) == count:
            raise MemoryError("injected")
        return arrays_for(block, *arguments)

    monkeypatch.setattr(Block, "arrays_for", failing)
    batches = list(batched(FUNCTIONS["a buffer in a tuple"], 16, 4, in_blocks=True))
    assert len(calls) >= count or row_loop() is None
    expected = np.arange(16).reshape(4, 4).tolist()
    assert [labels.tolist() for _, labels in batches] == expected
    assert [rows[:, 0].tolist() for rows, _ in batches] == expected


@pytest.mark.skipif(row_loop() is None, reason="the row loop is not in use")
def test_another_result_becomes_the_template_where_the_first_was_unusual():
    writer, batches = RowWriter(), []
    for begin in range(0, 40, 4):
        results = []
        writer.collect(iter([1 if i == 0 else float(i) for i in range(begin, begin + 4)]), None, 4, results)
        written = writer.take(results) if results[0] is WRITTEN else None
        batches.append(0 if written is None else written.length)
        if written is None:
            writer.learn(results[0], chunk_of_rows(results))
    assert batches == [0, 0] + [4] * 8
