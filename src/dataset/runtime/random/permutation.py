"""A random order of many things, of which any part can be had without the rest.

Few things are put in order at once. Many are dealt out first: to each a random byte assigns one of up to 256 parts, and
the parts follow each other, each in a random order of its own. So all orders have the same probability (Rao, Generation
of random permutations of given number of elements using random sampling numbers, Sankhya A 23, 1961; Sandelius, A
simple randomization procedure, JRSS B 24, 1962), whatever the sizes of the parts turn out to be.

A byte for each takes a small part of the time that shuffling a large array takes, where nearly each step misses the
processor's caches; and a part fits into them.

The bytes are not kept: making them again, block by block, takes less time than reading them from far memory. What is
held are the things of some parts that follow each other, a group, which are gathered in one go over all bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from dataset.runtime.random.streams import Stream

LARGE = 1 << 17
"""From so many things on, they are dealt out to parts."""

_PART = 1 << 15  # things at least, on average; the order of a part takes some microseconds, however few there are
_PARTS_MAX = 256  # as many as a byte tells apart
_GROUP = 1 << 21  # things that are held, as long as ...
_GROUPS_MAX = 8  # ... that does not take going over all bytes more often than this
_BLOCK = 1 << 16  # bytes made at a time, which stay in the processor's cache

_NOTHING: npt.NDArray[Any] = np.zeros(0, np.uint32)


class Permutation:
    """An order of ``count`` things, the same at every position of ``stream``."""

    def __init__(self, stream: Stream, count: int) -> None:
        self.count = count
        self._stream = stream
        self._parts = min(_PARTS_MAX, _power_of_2(count // _PART)) if count >= LARGE else 1
        self._groups = min(_GROUPS_MAX, self._parts, _power_of_2(count // _GROUP))
        self._firsts: npt.NDArray[np.int64] | None = None  # where each part begins, and where the last ends
        self._group = -1
        self._things = _NOTHING  # of this group, part after part
        self._part = -1
        self._order: npt.NDArray[np.intp] = np.zeros(0, np.intp)  # of this part

    def __len__(self) -> int:
        return self.count

    def run(self, start: int, stop: int) -> npt.NDArray[np.intp]:
        """The things at places ``start``, ``start + 1``, ... below ``stop``, or the first few of them, at least one."""
        if self._firsts is None:
            self._firsts = self._count_parts()
        part = int(np.searchsorted(self._firsts, start, "right")) - 1
        first, end = int(self._firsts[part]), int(self._firsts[part + 1])
        if part != self._part:
            self._order = self._ordered(part, first, end, self._firsts)
            self._part = part
        return self._order[start - first : min(stop, end) - first]

    def from_on(self, start: int) -> npt.NDArray[np.intp]:
        """The things at place ``start`` and behind it."""
        runs = [np.zeros(0, np.intp)]
        while start < self.count:
            runs.append(self.run(start, self.count))
            start += len(runs[-1])
        return np.concatenate(runs)

    def _assigned(self) -> Iterator[npt.NDArray[np.uint8]]:
        """The part of each thing, in blocks."""
        for block in self._stream.far_bytes(self.count, _BLOCK):
            yield np.bitwise_and(block, self._parts - 1, out=block)

    def _count_parts(self) -> npt.NDArray[np.int64]:
        if self._parts == 1:
            return np.array([0, self.count])
        counts = sum(np.bincount(block, minlength=self._parts) for block in self._assigned())
        return np.concatenate([[0], np.cumsum(counts)])

    def _ordered(self, part: int, first: int, end: int, firsts: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
        if self._parts == 1:
            return self._stream.permutation(end)
        of_each = self._parts // self._groups
        group = part // of_each
        if group != self._group:
            self._things = _NOTHING  # that of the last group first, as it is large
            self._things = self._dealt(group * of_each, firsts[group * of_each : (group + 1) * of_each + 1])
            self._group = group
        before = int(firsts[group * of_each])
        things = self._things[first - before : end - before]
        return things[self._stream.permutation(end - first, part + 1)].astype(np.intp)

    def _dealt(self, part: int, firsts: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """The things of some parts from ``part`` on, which begin at ``firsts``; those of each in ascending order."""
        upcoming = (firsts[:-1] - firsts[0]).tolist()
        parts, start = len(upcoming), 0
        dealt = np.empty(int(firsts[-1] - firsts[0]), np.uint32 if self.count <= 1 << 32 else np.uint64)
        for block in self._assigned():
            own = block - np.uint8(part)  # what is below ``part`` turns into something large
            found = np.flatnonzero(own < parts) if parts < self._parts else None
            own = own if found is None else own[found]
            order = np.argsort(own, kind="stable")  # a radix sort, as they are bytes
            things = (order if found is None else found[order]) + start
            at = 0
            for index, count in enumerate(np.bincount(own, minlength=parts).tolist()):
                place = upcoming[index]
                dealt[place : place + count] = things[at : at + count]
                upcoming[index] += count
                at += count
            start += len(block)
        return dealt


def _power_of_2(count: int) -> int:
    """The largest that is not above ``count``; 1 if there is none."""
    return 1 << max(0, count.bit_length() - 1)
