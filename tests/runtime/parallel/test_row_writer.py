"""Results of a map that are written into the rows of a batch as they are returned.

native/test_row_loop.py compares random results with those that are kept first.
"""

import numpy as np
import pytest

from dataset import Dataset
from dataset.amounts import LARGE_ELEMENT_BYTES
from dataset.native.row_loop import row_loop
from dataset.runtime.chunks.normalization import chunk_of_rows
from dataset.runtime.chunks.ownership import WRITTEN
from dataset.runtime.parallel.blocks import Block
from dataset.runtime.parallel.row_writer import RowWriter

BIG = LARGE_ELEMENT_BYTES // 8  # numbers in a row that is large enough for blocks in threads


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
    buffer = np.zeros(3)

    def fill(x):
        buffer[:] = x
        return buffer, x

    batches = list(Dataset.range(16).map(fill).batch(4))
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
