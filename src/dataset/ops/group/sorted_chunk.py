"""Elements that were read ahead, sorted by their keys at once, where nobody can notice that.

What has come so far, one element after the other, still counts: groups get full in the order in which their last
elements come, and between two of them the elements behind can be told from those before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import repeat

import numpy as np
import numpy.typing as npt

from dataset.plan.packed import is_packed
from dataset.runtime.chunks.chunk import Chunk, Column, take_column

_SHORT = np.iinfo(np.int16)


class SortedChunk:
    """Elements, and which groups they fill.

    Args:
        keyed: elements with their keys before them, an array of ints.
        missing: how many more a group has room for, given its key; at least 1.
        size: how many elements are in a full one.

    Attributes:
        elements: in the order in which they come.
        passed: how many of them have come: the last one made a group full, or it is the last of all.
    """

    def __init__(self, keyed: Chunk, missing: Callable[[int], int], size: Callable[[int], int]) -> None:
        keys, *columns = keyed.columns()
        keys = np.asarray(keys)
        self.elements = Chunk(keyed.structure.children[1], keyed.length, columns)
        self.passed = 0
        self._places = _sorted_places(keys)
        keys = keys[self._places]
        self._columns = [_taken(column, self._places) for column in columns]
        bounds = [0, *(np.flatnonzero(keys[1:] != keys[:-1]) + 1).tolist(), keyed.length]
        self._runs: dict[int, tuple[int, int]] = {}  # among the sorted, those that are in no full group yet
        self._full: list[tuple[int, int, int]] = []  # place of the last element, key, end among the sorted; backwards
        for key, start, stop in zip(keys[bounds[:-1]].tolist(), bounds, bounds[1:], strict=False):
            self._runs[key] = start, stop
            ends = range(start + missing(key), stop + 1, size(key))
            if ends:
                places = self._places[ends.start - 1 : stop : ends.step].tolist()
                self._full += zip(places, repeat(key), ends, strict=False)
        self._full.sort(reverse=True)

    def next_full(self) -> tuple[int, Chunk] | None:
        """The key of the group that gets full next, and what it missed; None where no more does."""
        if not self._full:
            self.passed = self.elements.length
            return None
        place, key, end = self._full.pop()
        start, stop = self._runs[key]
        self._runs[key] = end, stop
        self.passed = place + 1
        return key, self._taken(start, end)

    def waiting(self) -> Iterator[tuple[int, Chunk]]:
        """The elements that have come and that no group that was full took, by key."""
        for key, (start, stop) in self._runs.items():
            count = int(self._places[start:stop].searchsorted(self.passed))
            if count:
                yield key, self._taken(start, start + count)

    def rest(self) -> Chunk | None:
        """The elements that have not come yet."""
        length = self.elements.length
        return self.elements.slice(self.passed, length) if self.passed < length else None

    def _taken(self, start: int, stop: int) -> Chunk:
        """Some of the sorted, in memory of their own: what waits does not hold what came with it."""
        columns = [column[start:stop].copy() for column in self._columns]
        return Chunk(self.elements.structure, stop - start, columns)


def _taken(column: Column, places: npt.NDArray[np.intp]) -> Column:
    if is_packed(column):
        return column.taken(places)  # type: ignore[return-value]  # it stands for a list
    return take_column(column, places)


def _sorted_places(keys: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
    """The places of the keys in ascending order, those of equal ones as they come."""
    if _SHORT.min <= keys.min() and keys.max() <= _SHORT.max:
        return keys.astype(np.int16).argsort(kind="stable")  # in a third of the time
    return keys.argsort(kind="stable")
