"""Arrays that are filled while elements are made, so that stacking them afterwards costs nothing.

A batch of images that are made one by one and then stacked is written twice, and the second time from memory that the
processor's cache has long lost. Written into the batch at once, each image is still at hand, and its own memory is free
for the next one. ``concatenate_columns`` (chunk.py) joins neighbouring rows of one block without copying.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from dataset.plan.packed import is_packed
from dataset.plan.structure import Structure
from dataset.runtime.chunks.chunk import Array, Chunk, Column, Outcome

LARGE_BYTES = 8192
"""Elements that are smaller are still in the cache when a whole batch of them is stacked."""


STEP_BYTES = 1 << 20
"""So much is made before it is written into its block."""


class Block:
    """Room for ``length`` elements. The first that is written decides on shapes and dtypes; others stay as they are."""

    def __init__(self, length: int) -> None:
        self.length = length
        self._lock = threading.Lock()  # guards the two below while they are made
        self._structure: Structure | None = None
        self._arrays: list[Array | None] = []

    def write(self, start: int, chunk: Chunk) -> Chunk:
        """The same elements, standing in rows ``start`` and following. Whoever writes has these rows to himself."""
        with self._lock:
            if self._structure is None:
                self._arrays = [self._room_for(column) for column in chunk.columns()]
                self._structure = chunk.structure  # last: where there is no memory for arrays, there is none
        if chunk.structure != self._structure:
            return chunk
        pairs = zip(self._arrays, chunk.columns(), strict=True)
        return Chunk(chunk.structure, chunk.length, [_written(array, start, column) for array, column in pairs])

    def write_all(self, start: int, outcomes: Sequence[Outcome]) -> list[Outcome]:
        """The same for several chunks; the row of an exception stays empty."""
        written: list[Outcome] = []
        for outcome in outcomes:
            if isinstance(outcome, Chunk):
                written.append(self.write(start, outcome))
                start += outcome.length
            else:
                written.append(outcome)
                start += 1
        return written

    def _room_for(self, column: Column) -> Array | None:
        if is_packed(column):
            return None  # of different lengths
        value = column[0]
        if not isinstance(value, np.ndarray | np.generic) or value.dtype.hasobject or isinstance(value, np.str_):
            return None
        return np.empty((self.length, *value.shape), value.dtype)


def _written(array: Array | None, start: int, column: Column) -> Column:
    if array is None or (isinstance(column, np.ndarray) and len(column) == len(array)):
        return column  # it is a block of its own
    rows = array[start : start + len(column)]
    if isinstance(column, np.ndarray):
        if column.dtype != array.dtype or column.shape[1:] != array.shape[1:]:
            return column
        rows[...] = column
        return rows
    shape, dtype = array.shape[1:], array.dtype
    if not all(isinstance(value, np.ndarray) and value.shape == shape and value.dtype == dtype for value in column):
        return column
    for row, value in zip(rows, column, strict=True):
        row[...] = value
    return rows
