"""Elements that come in at one end and leave at the other, and are read in pieces that overlap."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dataset.plan.structure import LEAF, Structure
from dataset.runtime.chunk import Array, Chunk, Column, read_only, take_column


class SlidingBuffer:
    """A queue of elements whose pieces share its memory, so that overlapping windows cost no copies.

    Columns are held in arrays with room at the end. Elements are only ever written behind those that are there, where
    no piece that was given out can see them; when the room is used up, what is left moves to new arrays, which happens
    at most once for as many elements as are held.
    """

    def __init__(self) -> None:
        self.structure: Structure = LEAF
        self._columns: list[Column] = []
        self._start = 0
        self._stop = 0
        self._capacity = 0  # 0 while the columns are those of somebody else's chunk

    @property
    def length(self) -> int:
        """How many elements are held."""
        return self._stop - self._start

    def append(self, chunk: Chunk) -> None:
        """Take elements in, of the structure of those that are here."""
        columns = [read_only(column) for column in chunk.columns()]
        if not self.length:
            self.structure = chunk.structure
            self._columns, self._start, self._stop, self._capacity = columns, 0, chunk.length, 0
            return
        if self._stop + chunk.length > self._capacity or not all(map(_goes_with, self._columns, columns)):
            self._move(columns, chunk.length)
        stop = self._stop + chunk.length
        for mine, new in zip(self._columns, columns, strict=True):
            if isinstance(mine, list):
                mine.extend(new)
            else:
                mine[self._stop : stop] = new
        self._stop = stop

    def _move(self, columns: Sequence[Column], more: int) -> None:
        """To columns of our own, into which ``columns`` fit."""
        length, capacity = self.length, 2 * (self.length + more)
        held = [column[self._start : self._stop] for column in self._columns]
        self._columns = [_with_room(old, new, capacity) for old, new in zip(held, columns, strict=True)]
        self._start, self._stop, self._capacity = 0, length, capacity

    def drop(self, count: int) -> None:
        """Forget the first elements."""
        self._start += count
        if not self.length:
            self._columns, self._start, self._stop = [], 0, 0

    def columns(self, start: int, stop: int, step: int = 1) -> list[Column]:
        """The components of every ``step``-th element from ``start`` to ``stop``, read-only where they are arrays."""
        first, last = self._start + start, self._start + stop
        pieces = [column[first:last:step] for column in self._columns]
        return [read_only(piece) if isinstance(piece, np.ndarray) else piece for piece in pieces]

    def columns_at(self, indices: npt.NDArray[np.intp]) -> list[Column]:
        """The components of the elements at ``indices``."""
        return [take_column(column, indices + self._start) for column in self._columns]

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
        return list(read_only(old))
    room: Array = np.empty((capacity, *old.shape[1:]), old.dtype)
    room[: len(old)] = old
    return room
