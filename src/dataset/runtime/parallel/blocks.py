"""Blocks: arrays that elements are written into as they are computed, so that stacking them later costs nothing.

If images are computed one by one and then stacked, each is written twice, the second time after it has left the
processor's cache. If each image is written into the batch immediately, it is still in the cache, and its own memory is
free for the next image. ``concatenate_columns`` (chunk.py) joins adjacent rows of one block without copying.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dataset.plan.packed import is_packed
from dataset.plan.structure import LEAF, NONE, Structure, is_dict, is_tuple
from dataset.runtime.chunks.chunk import Array, Chunk, Column, Outcome
from dataset.runtime.chunks.normalization import chunk_of_rows
from dataset.runtime.chunks.ownership import own

LARGE_BYTES = 8192
"""Smaller elements are still in the cache when a whole batch of them is stacked."""


STEP_BYTES = 1 << 20
"""This many bytes are computed before they are written into the block."""

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


class Written:
    """In a list of results, the place of a result in the block."""


_WRITTEN = Written()


class RowWriter:
    """Writer of the results of one function into the rows of a block, and then into those of the next block.

    A result is written before the function is called again. So results that share memory with something else need no
    copy of their own (chunks/ownership.py), and no list of arrays has to be stacked later.

    Those fit that are like the first one: an array, or a flat tuple or dict of numbers and at least one array. Results
    that do not fit are kept in the list.

    Attributes:
        refuses: whether the first result did not fit.
    """

    def __init__(self) -> None:
        self.refuses = False
        self._block: Block | None = None
        self._first = 0
        self._kind: type[Any] | None = None  # of the first result
        self._keys: tuple[Any, ...] = ()  # if that is a dict
        self._structure: Structure | None = None  # of the results, once one was written
        self._kinds: list[type[Any]] = []  # of the components
        self._rows: list[Row] = []
        self._slots: list[tuple[Array, type[Any], tuple[int, ...], np.dtype[Any]]] = []

    def begin(self, block: Block, first: int) -> None:
        """Write into another block from here on; the result for input number ``first`` belongs in its row 0."""
        self._block, self._first = block, first
        if self._structure is not None:
            self._enter(self._structure)

    def collect(
        self, function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]], position: int, results: list[Any]
    ) -> None:
        """Append the results for inputs from number ``position`` on, or ``Written`` for those in the block."""
        for row, given in enumerate(arguments, position - self._first):
            result = function(*given)
            if self._write(row, result):
                results.append(_WRITTEN)
            else:
                results.append(result)
                del result  # a reference that own() would count
                results.append(own(results.pop(), given))
            result = None  # its memory is free for the next one

    def chunk(self, position: int, results: list[Any], structure: Structure | None) -> Chunk | None:
        """Return the results from number ``position`` on as a chunk, if all are in the block.

        Otherwise, or if they do not have the expected structure, put those in the block back into the list.
        """
        written = self._structure
        if written is not None and set(map(type, results)) == {Written} and written == (structure or written):
            start, stop = position - self._first, position - self._first + len(results)
            return Chunk(written, len(results), [array[start:stop] for array, *_ in self._slots])
        self.put_back(position, results)
        return None

    def put_back(self, position: int, results: list[Any]) -> None:
        """Replace each ``Written`` by the result in the block."""
        for row, result in enumerate(results, position - self._first):
            if type(result) is Written:
                assert self._structure is not None  # it was written
                components = [array[row] for array, *_ in self._slots]
                results[row - position + self._first] = self._structure.unflatten(components)

    def _write(self, row: int, result: Any) -> bool:
        if type(result) is not self._kind:
            if self._kind is not None:
                return False
            self._learn(result)
        slots = self._slots
        items = result
        if not slots:
            return False
        if self._kind is np.ndarray:
            items = (result,)
        elif len(result) != len(slots):
            return False
        elif self._kind is dict:
            items = list(map(result.get, self._keys))
        for place, (array, kind, shape, dtype) in enumerate(slots):
            item = items[place]
            if type(item) is not kind or (kind is np.ndarray and (item.dtype != dtype or item.shape != shape)):
                return False
            try:
                array[row] = item
            except OverflowError:  # an int beyond 64 bits
                return False
        return True

    def _learn(self, result: Any) -> None:
        """Learn from the first result how those are that fit."""
        self._kind = kind = type(result)
        self.refuses = True
        if kind is not np.ndarray and kind is not tuple and kind is not dict:
            return
        try:
            element = chunk_of_rows([result])
        except Exception:  # noqa: BLE001  # raised again in its place
            return
        structure = element.structure
        is_flat = structure is LEAF or ((is_tuple(structure) or is_dict(structure)) and {*structure.children} == {LEAF})
        items = structure.flatten(result)
        self._kinds = list(map(type, items))
        self._rows = [row for row in map(row_of, element.columns()) if row]
        if is_flat and np.ndarray in self._kinds and len(self._rows) == len(items):
            self._keys = structure.child_keys() if kind is dict else ()
            self.refuses = False
            self._structure = structure
            self._enter(structure)

    def _enter(self, structure: Structure) -> None:
        """Find the arrays for such results in the block."""
        assert self._block is not None  # see begin
        self._slots = []
        try:
            arrays = self._block.arrays_for(structure, self._rows)
        except MemoryError:  # single results may still fit into memory
            return
        found = zip(arrays, self._kinds, self._rows, strict=True)
        self._slots = [(array, kind, *row) for array, kind, row in found if array is not None]
        if len(self._slots) < len(arrays):  # another thread has written other results first
            self._slots = []
