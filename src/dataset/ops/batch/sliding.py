"""Elements that come in at one end and leave at the other, and are read in pieces that overlap."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dataset.plan.structure import LEAF, Structure
from dataset.runtime.chunks.chunk import Array, Chunk, Column, read_only, take_column


class SlidingBuffer:
    """A queue of elements whose pieces share its memory, so that overlapping windows cost no copies.

    Columns are held in arrays with room at the end. Elements are only ever written behind those that are there, where
    no piece that was given out can see them; when the room is used up, what is left moves to new arrays, which happens
    at most once for as many elements as are held. All that is given out is read-only.

    Attributes:
        length: how many elements are held.
        structure: theirs.
    """

    def __init__(self) -> None:
        self.length = 0
        self.structure: Structure = LEAF
        self._start = 0  # of what is held, in the columns
        self._capacity = 0  # of the columns; 0 while they are those of somebody else's chunk
        self._columns: list[Column] = []
        self._views: list[Column] = []  # the same arrays, read-only

    def append(self, chunk: Chunk) -> None:
        """Take elements in, of the structure of those that are here."""
        if not self.length:
            self.structure, self.length, self._start, self._capacity = chunk.structure, chunk.length, 0, 0
            self._columns = self._views = [read_only(column) for column in chunk.columns()]
            return
        columns = chunk.columns()
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

    def _move(self, columns: Sequence[Column], more: int) -> None:
        """To columns of our own, into which ``columns`` fit."""
        self._capacity = 2 * (self.length + more)
        held = self.columns(0, self.length)
        self._columns = [_with_room(old, new, self._capacity) for old, new in zip(held, columns, strict=True)]
        self._views = [column if isinstance(column, list) else read_only(column) for column in self._columns]
        self._start = 0

    def drop(self, count: int) -> None:
        """Forget the first elements."""
        self._start += count
        self.length -= count
        if not self.length:
            self._columns, self._views = [], []

    def columns(self, start: int, stop: int, step: int = 1) -> list[Column]:
        """The components of every ``step``-th element from ``start`` to ``stop``."""
        return [view[self._start + start : self._start + stop : step] for view in self._views]

    def columns_at(self, indices: npt.NDArray[np.intp]) -> list[Column]:
        """The components of the elements at ``indices``."""
        return [read_only(take_column(view, indices + self._start)) for view in self._views]

    def chunk(self, start: int, stop: int) -> Chunk:
        """The elements from ``start`` to ``stop``."""
        return Chunk(self.structure, stop - start, self.columns(start, stop))


def _goes_with(mine: Column, new: Column) -> bool:
    """Whether the values of ``new`` can stand behind those of ``mine``."""
    if isinstance(mine, list):
        return True
    return isinstance(new, np.ndarray) and new.dtype == mine.dtype and new.shape[1:] == mine.shape[1:]


def _with_room(old: Column, new: Column, capacity: int) -> Column:
    """The values of ``old`` in an array with room for ``capacity`` values; in a list where those of ``new`` differ."""
    if isinstance(old, list) or not _goes_with(old, new):
        return list(old)
    room: Array = np.empty((capacity, *old.shape[1:]), old.dtype)
    room[: len(old)] = old
    return room
