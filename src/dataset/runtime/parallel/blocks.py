"""Blocks: arrays that elements are written into as they are computed, so that stacking them later costs nothing.

If images are computed one by one and then stacked, each is written twice, the second time after it has left the
processor's cache. If each image is written into the batch immediately, it is still in the cache, and its own memory is
free for the next image. ``concatenate_columns`` (chunk.py) joins adjacent rows of one block without copying.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dataset.plan.packed import is_packed
from dataset.plan.structure import NONE, Structure
from dataset.runtime.chunks.chunk import Array, Chunk, Column, Outcome
from dataset.world import threading

_REUSED_BYTES = 1 << 20
"""Smaller arrays are cheap to allocate."""

_KEPT_MAX = 8
"""How many arrays are kept: one in the consumer's hands, those that wait for it, and those being filled."""


class BlockMemory:
    """Memory of large blocks, which is used again when nothing else refers to it.

    The system takes long to provide new memory: with blocks of 19 MB, a tenth of the time that decoding took. No more
    arrays are kept than were in use at once.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._arrays: deque[Array] = deque(maxlen=_KEPT_MAX)

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Return an array whose content is arbitrary."""
        with self._lock:
            for array, count in zip(self._arrays, _reference_counts(self._arrays), strict=True):
                if count == _UNSHARED and array.shape == shape and array.dtype == dtype:
                    return array
            array = np.empty(shape, dtype)
            if array.nbytes >= _REUSED_BYTES and _COUNTS_ARE_EXACT:
                self._arrays.append(array)
            return array


def _reference_counts(arrays: Iterable[Array]) -> list[int]:
    return [sys.getrefcount(array) for array in arrays]


_COUNTS_ARE_EXACT = hasattr(sys, "getrefcount") and getattr(sys, "_is_gil_enabled", lambda: True)()
_UNSHARED = _reference_counts([np.empty(0)])[0] if _COUNTS_ARE_EXACT else 0


class Row(NamedTuple):
    """What a row of an array for a component holds."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def row_of(column: Column) -> Row | None:
    """Return what the first value of a column is; None if it does not fit into an array."""
    if is_packed(column):
        return None  # values of different lengths
    value = column[0]
    if not isinstance(value, np.ndarray | np.generic) or value.dtype.hasobject or isinstance(value, np.str_):
        return None
    return Row(value.shape, value.dtype)


class Block:
    """Block of ``length`` rows. The first element determines shapes and dtypes; elements with others are not copied."""

    def __init__(self, length: int, memory: BlockMemory | None = None) -> None:
        self.length = length
        self._array = np.empty if memory is None else memory.array
        self._lock = threading.Lock()  # guards the creation of the fields below
        self.structure = NONE  # before the first element
        self._arrays: list[Array | None] = []

    def arrays_for(self, structure: Structure, rows: Sequence[Row | None]) -> list[Array | None]:
        """Return the arrays of the block for rows like these; None for rows that need none, or do not fit."""
        with self._lock:
            if self.structure is NONE:
                self._arrays = [row and self._array((self.length, *row.shape), row.dtype) for row in rows]
                self.structure = structure  # assigned last: it stays NONE if allocating the arrays fails
        if structure != self.structure:
            return [None] * len(rows)
        pairs = zip(self._arrays, rows, strict=True)
        return [
            array if array is not None and row == Row(array.shape[1:], array.dtype) else None for array, row in pairs
        ]

    def write(self, start: int, chunk: Chunk) -> Chunk:
        """Return the chunk, copied to the rows from ``start`` on. No other thread writes to these rows."""
        columns = chunk.columns()
        arrays = self.arrays_for(chunk.structure, list(map(row_of, columns)))
        columns = [_written(array, start, column) for array, column in zip(arrays, columns, strict=True)]
        return Chunk(chunk.structure, chunk.length, columns, lineage=chunk.lineage)

    def write_all(self, start: int, outcomes: Sequence[Outcome]) -> list[Outcome]:
        """Write several chunks; the rows of exceptions stay empty."""
        written: list[Outcome] = []
        for outcome in outcomes:
            if isinstance(outcome, Chunk):
                written.append(self.write(start, outcome))
                start += outcome.length
            else:
                written.append(outcome)
                start += 1
        return written


def _written(array: Array | None, start: int, column: Column) -> Column:
    if array is None or (isinstance(column, np.ndarray) and len(column) == len(array)):
        return column  # it fills a block of its own
    rows = array[start : start + len(column)]
    if isinstance(column, np.ndarray):
        if column.base is array:  # a RowWriter has written it
            return column
        rows[...] = column
        return rows
    shape, dtype = array.shape[1:], array.dtype
    if not all(isinstance(value, np.ndarray) and value.shape == shape and value.dtype == dtype for value in column):
        return column
    for row, value in zip(rows, column, strict=True):
        row[...] = value
    return rows
