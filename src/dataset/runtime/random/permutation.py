"""Random permutation of a large range. Each part of it can be computed separately.

Small ranges are permuted at once. Large ones are first partitioned: a random byte assigns each item to one of up to 256
parts. The parts follow each other, each in a random order of its own. So all orders have the same probability, whatever
the sizes of the parts are (Rao, Generation of random permutations of given number of elements using random sampling
numbers, Sankhya A 23, 1961; Sandelius, A simple randomization procedure, JRSS B 24, 1962).

Drawing a byte per item takes a fraction of the time of shuffling a large array, where nearly each step misses the
processor's caches. A part fits into them.

The bytes are not stored: recomputing them block by block takes less time than reading them from main memory. Only the
items of a *group* of consecutive parts are held. They are gathered in one scan over all bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from dataset.runtime.random.streams import Stream

LARGE = 1 << 17
"""From this many items on, the range is partitioned."""

_PART = 1 << 15  # minimum mean items per part; permuting a part costs some microseconds, however small it is
_PARTS_MAX = 256  # as many as a byte can distinguish
_GROUP = 1 << 21  # items held at a time, as long as ...
_GROUPS_MAX = 8  # ... this requires no more scans over all bytes than this
_BLOCK = 1 << 16  # bytes drawn at a time, which stay in the processor's cache

_NOTHING: npt.NDArray[Any] = np.zeros(0, np.uint32)


class Permutation:
    """A random permutation of ``range(count)``, independent of the position of ``stream``."""

    def __init__(self, stream: Stream, count: int) -> None:
        self.count = count
        self._stream = stream
        self._parts = min(_PARTS_MAX, _power_of_2(count // _PART)) if count >= LARGE else 1
        self._groups = min(_GROUPS_MAX, self._parts, _power_of_2(count // _GROUP))
        self._firsts: npt.NDArray[np.int64] | None = None  # start of each part, and end of the last
        self._group = -1
        self._things = _NOTHING  # of the current group, part by part
        self._part = -1
        self._order: npt.NDArray[np.intp] = np.zeros(0, np.intp)  # of the current part

    def __len__(self) -> int:
        return self.count

    def run(self, start: int, stop: int) -> npt.NDArray[np.intp]:
        """Return the items at positions ``start`` to ``stop``, or the first few of them, at least one."""
        if self._firsts is None:
            self._firsts = self._count_parts()
        part = int(np.searchsorted(self._firsts, start, "right")) - 1
        first, end = int(self._firsts[part]), int(self._firsts[part + 1])
        if part != self._part:
            self._order = self._ordered(part, first, end, self._firsts)
            self._part = part
        return self._order[start - first : min(stop, end) - first]

    def from_on(self, start: int) -> npt.NDArray[np.intp]:
        """Return the items from position ``start`` on."""
        runs = [np.zeros(0, np.intp)]
        while start < self.count:
            runs.append(self.run(start, self.count))
            start += len(runs[-1])
        return np.concatenate(runs)

    def _assigned(self) -> Iterator[npt.NDArray[np.uint8]]:
        """Yield the part of each item, in blocks."""
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
            self._things = _NOTHING  # free the last group first: it is large
            self._things = self._dealt(group * of_each, firsts[group * of_each : (group + 1) * of_each + 1])
            self._group = group
        before = int(firsts[group * of_each])
        things = self._things[first - before : end - before]
        return things[self._stream.permutation(end - first, part + 1)].astype(np.intp)

    def _dealt(self, part: int, firsts: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Return the items of the parts from ``part`` on, which begin at ``firsts``; ascending within each part."""
        upcoming = (firsts[:-1] - firsts[0]).tolist()
        parts, start = len(upcoming), 0
        dealt = np.empty(int(firsts[-1] - firsts[0]), np.uint32 if self.count <= 1 << 32 else np.uint64)
        for block in self._assigned():
            own = block - np.uint8(part)  # numbers below ``part`` wrap around to large ones
            found = np.flatnonzero(own < parts) if parts < self._parts else None
            own = own if found is None else own[found]
            order = np.argsort(own, kind="stable")  # a radix sort for bytes
            things = (order if found is None else found[order]) + start
            at = 0
            for index, count in enumerate(np.bincount(own, minlength=parts).tolist()):
                place = upcoming[index]
                dealt[place : place + count] = things[at : at + count]
                upcoming[index] += count
                at += count
            start += len(block)
        return dealt


class ClumpPermutation(Permutation):
    """A random order of the clumps of ``range(count)``: runs of ``clump`` items that keep their order.

    The first clump has a random length, so that the boundaries differ between streams. The first and the last may be
    shorter than the others.
    """

    def __init__(self, stream: Stream, count: int, clump: int) -> None:
        super().__init__(stream, count)
        stream.seek(0)
        first = int(stream.random(1)[0] * clump)
        edges = np.unique(np.minimum(np.arange(first - clump, count + clump, clump).clip(0), count))
        order = Permutation(stream, len(edges) - 1).from_on(0)
        lengths = np.diff(edges)[order]
        self._ends = np.cumsum(lengths)
        self._shifts = edges[:-1][order] - (self._ends - lengths)  # from the positions of a clump to its items

    def run(self, start: int, stop: int) -> npt.NDArray[np.intp]:
        positions = np.arange(start, stop, dtype=np.intp)
        items: npt.NDArray[np.intp] = positions + self._shifts[np.searchsorted(self._ends, positions, "right")]
        return items


def _power_of_2(count: int) -> int:
    """Return the largest power of 2 that is not above ``count``; 1 if there is none."""
    return 1 << max(0, count.bit_length() - 1)
