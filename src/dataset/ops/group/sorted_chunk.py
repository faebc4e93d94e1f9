"""Sorted chunk: elements that were read ahead and sorted by key, if reading ahead is unobservable.

The arrival order still matters: groups become full in the order in which their last elements arrive. After each full
group, the elements before and after its last element can be told apart.
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
    """Chunk of elements sorted by key, with the groups that they fill.

    Args:
        keyed: the elements, preceded by a column of their keys, an array of ints.
        missing: returns how many more elements the group of a key has room for; at least 1.
        size: returns how many elements a full group of a key has.

    Attributes:
        elements: the elements in arrival order.
        passed: how many of them have arrived: the last one filled a group, or all have arrived.
    """

    def __init__(self, keyed: Chunk, missing: Callable[[int], int], size: Callable[[int], int]) -> None:
        keys, *columns = keyed.columns()
        keys = np.asarray(keys)
        self.elements = Chunk(keyed.structure.children[1], keyed.length, columns, lineage=keyed.lineage)
        self.passed = 0
        self._places = _sorted_places(keys)
        keys = keys[self._places]
        self._columns = [_taken(column, self._places) for column in columns]
        self._lineage = None if keyed.lineage is None else take_column(keyed.lineage, self._places)
        bounds = [0, *(np.flatnonzero(keys[1:] != keys[:-1]) + 1).tolist(), keyed.length]
        self._runs: dict[int, tuple[int, int]] = {}  # key -> range of sorted elements not in a full group
        self._full: list[tuple[int, int, int]] = []  # place of the last element, key, end among the sorted; reversed
        for key, start, stop in zip(keys[bounds[:-1]].tolist(), bounds, bounds[1:], strict=False):
            self._runs[key] = start, stop
            ends = range(start + missing(key), stop + 1, size(key))
            if ends:
                places = self._places[ends.start - 1 : stop : ends.step].tolist()
                self._full += zip(places, repeat(key), ends, strict=False)
        self._full.sort(reverse=True)

    def next_full(self) -> tuple[int, Chunk] | None:
        """Return the key of the next group to become full, and the elements that fill it; None if there is none."""
        if not self._full:
            self.passed = self.elements.length
            return None
        place, key, end = self._full.pop()
        start, stop = self._runs[key]
        self._runs[key] = end, stop
        self.passed = place + 1
        return key, self._taken(start, end)

    def waiting(self) -> Iterator[tuple[int, Chunk]]:
        """Yield by key the elements that have arrived and are not in a full group."""
        for key, (start, stop) in self._runs.items():
            count = int(self._places[start:stop].searchsorted(self.passed))
            if count:
                yield key, self._taken(start, start + count)

    def rest(self) -> Chunk | None:
        """Return the elements that have not arrived yet."""
        length = self.elements.length
        return self.elements.slice(self.passed, length) if self.passed < length else None

    def _taken(self, start: int, stop: int) -> Chunk:
        """Copy a range of the sorted elements, so that waiting elements do not keep the whole chunk in memory."""
        columns = [column[start:stop].copy() for column in self._columns]
        lineage = None if self._lineage is None else self._lineage[start:stop].copy()
        return Chunk(self.elements.structure, stop - start, columns, lineage=lineage)


def _taken(column: Column, places: npt.NDArray[np.intp]) -> Column:
    if is_packed(column):
        return column.taken(places)  # type: ignore[return-value]  # it acts as a list
    return take_column(column, places)


def _sorted_places(keys: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
    """Return the places of the keys in ascending order; equal keys keep their order."""
    if _SHORT.min <= keys.min() and keys.max() <= _SHORT.max:
        return keys.astype(np.int16).argsort(kind="stable")  # in a third of the time
    return keys.argsort(kind="stable")
