"""Sliding buffer: a queue of elements that is read in overlapping pieces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dataset.plan.structure import LEAF, Structure
from dataset.runtime.chunks.chunk import Array, Chunk, Column, read_only, take_column
from dataset.runtime.chunks.lineage import or_unknown


class SlidingBuffer:
    """Queue of elements whose pieces share its memory, so that overlapping windows need no copies.

    Columns are arrays with room at the end. Elements are only appended after existing ones, so returned pieces never
    change. When the room is used up, the remaining elements move to new arrays. This happens at most once per as many
    appended elements as are held. All returned arrays are read-only.

    Attributes:
        length: the number of held elements.
        structure: the structure of the elements.
        is_traced: whether their lineage is an additional last column.
    """

    def __init__(self) -> None:
        self.length = 0
        self.structure: Structure = LEAF
        self.is_traced = False
        self._start = 0  # of the held elements, in the columns
        self._capacity = 0  # of the columns; 0 while they belong to an appended chunk
        self._columns: list[Column] = []
        self._views: list[Column] = []  # the same arrays, read-only

    def append(self, chunk: Chunk) -> None:
        """Append elements of the same structure as the held ones."""
        if not self.length:
            self.structure, self.length, self._start, self._capacity = chunk.structure, chunk.length, 0, 0
            self.is_traced = chunk.lineage is not None
            columns = self._traced(chunk) if self.is_traced else chunk.columns()
            self._columns = self._views = [read_only(column) for column in columns]
            return
        columns = self._traced(chunk) if self.is_traced else chunk.columns()
        start = self._start + self.length
        stop = start + chunk.length
        if stop > self._capacity or not all(map(_goes_with, self._columns, columns)):
            self._move(columns, chunk.length)
            start, stop = self.length, self.length + chunk.length
        for mine, new in zip(self._columns, columns, strict=True):
            if isinstance(mine, list):
                mine.extend(read_only(new))
            else:
                mine[start:stop] = new
        self.length += chunk.length

    @staticmethod
    def _traced(chunk: Chunk) -> Sequence[Column]:
        return [*chunk.columns(), or_unknown(chunk.lineage, chunk.length)]

    def _move(self, columns: Sequence[Column], more: int) -> None:
        """Move the elements to new columns with room for ``more`` elements like ``columns``."""
        self._capacity = 2 * (self.length + more)
        held = self.columns(0, self.length)
        self._columns = [_with_room(old, new, self._capacity) for old, new in zip(held, columns, strict=True)]
        self._views = [column if isinstance(column, list) else read_only(column) for column in self._columns]
        self._start = 0

    def drop(self, count: int) -> None:
        """Drop the first elements."""
        self._start += count
        self.length -= count
        if not self.length:
            self._columns, self._views = [], []

    def columns(self, start: int, stop: int, step: int = 1) -> list[Column]:
        """Return the components of every ``step``-th element from ``start`` to ``stop``."""
        return [view[self._start + start : self._start + stop : step] for view in self._views]

    def pieces(self, starts: range, span: int, step: int) -> list[list[Column]]:
        """Return for each component every ``step``-th of the ``span`` elements from each start, fewer at the end."""
        first, end = self._start, self._start + self.length
        places = [slice(first + start, min(first + start + span, end), step) for start in starts]
        return [[view[place] for place in places] for view in self._views]

    def columns_at(self, indices: npt.NDArray[np.intp]) -> list[Column]:
        """Return the components of the elements at ``indices``."""
        return [read_only(take_column(view, indices + self._start)) for view in self._views]

    def chunk(self, start: int, stop: int) -> Chunk:
        """Return the elements from ``start`` to ``stop``."""
        columns = self.columns(start, stop)
        lineage = columns.pop() if self.is_traced else None
        return Chunk(self.structure, stop - start, columns, lineage=lineage)


def _goes_with(mine: Column, new: Column) -> bool:
    """Return whether the values of ``new`` can be appended to those of ``mine``."""
    if isinstance(mine, list):
        return True
    return isinstance(new, np.ndarray) and new.dtype == mine.dtype and new.shape[1:] == mine.shape[1:]


def _with_room(old: Column, new: Column, capacity: int) -> Column:
    """Copy ``old`` into an array with room for ``capacity`` values; into a list if ``new`` is incompatible."""
    if isinstance(old, list) or not _goes_with(old, new):
        return list(old)
    room: Array = np.empty((capacity, *old.shape[1:]), old.dtype)
    room[: len(old)] = old
    return room
