"""A random order of many things, of which any part can be had without the rest.

Few things are put in order at once. Many are dealt out first: to each a random byte assigns one of 64 parts, and the
parts follow each other, each in a random order of its own. So all orders have the same probability (Rao, Generation of
random permutations of given number of elements using random sampling numbers, Sankhya A 23, 1961; Sandelius, A simple
randomization procedure, JRSS B 24, 1962), whatever the sizes of the parts turn out to be.

A byte for each takes a hundredth of the time that shuffling a large array takes, where nearly each step misses the
processor's caches; and a part fits into them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dataset.runtime.rng import Stream

LARGE = 1 << 20
"""From so many things on, they are dealt out to parts."""

_PARTS = 64  # a power of 2
_BLOCK = 1 << 18  # pairs of bytes that are counted at a time


class Permutation:
    """An order of ``count`` things, the same at every position of ``stream``."""

    def __init__(self, stream: Stream, count: int) -> None:
        self.count = count
        self._stream = stream
        self._assigned: npt.NDArray[np.uint8] | None = None  # to each thing its part
        self._firsts: npt.NDArray[np.int64] = np.array([0, count])  # where each part begins, and where the last ends
        self._part = -1
        self._order: npt.NDArray[np.intp] = np.zeros(0, np.intp)  # of this part

    def __len__(self) -> int:
        return self.count

    def run(self, start: int, stop: int) -> npt.NDArray[np.intp]:
        """The things at places ``start``, ``start + 1``, ... below ``stop``, or the first few of them, at least one."""
        if self.count >= LARGE and self._assigned is None:
            self._assign()
        part = int(np.searchsorted(self._firsts, start, "right")) - 1
        first, end = int(self._firsts[part]), int(self._firsts[part + 1])
        if part != self._part:
            self._order = self._ordered(part, end - first)
            self._part = part
        return self._order[start - first : min(stop, end) - first]

    def from_on(self, start: int) -> npt.NDArray[np.intp]:
        """The things at place ``start`` and behind it."""
        runs = [np.zeros(0, np.intp)]
        while start < self.count:
            runs.append(self.run(start, self.count))
            start += len(runs[-1])
        return np.concatenate(runs)

    def _assign(self) -> None:
        assigned = self._stream.far_bytes(self.count)
        self._assigned = np.bitwise_and(assigned, _PARTS - 1, out=assigned)
        self._firsts = np.concatenate([[0], np.cumsum(_counts(self._assigned))])

    def _ordered(self, part: int, count: int) -> npt.NDArray[np.intp]:
        if self._assigned is None:
            return self._stream.permutation(count)
        return np.flatnonzero(self._assigned == part)[self._stream.permutation(count, part + 1)]


def _counts(assigned: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """How many things each part has. Two are counted at once, as the digits of one number, which takes half as long."""
    even = len(assigned) // 2 * 2
    pairs = assigned[:even].view(np.uint16)
    counts = np.zeros(1 << 16, np.int64)
    for start in range(0, len(pairs), _BLOCK):
        counts += np.bincount(pairs[start : start + _BLOCK], minlength=1 << 16)
    by_digit = counts.reshape(256, 256)
    last = np.bincount(assigned[even:], minlength=256)
    singles: npt.NDArray[np.int64] = by_digit.sum(axis=0) + by_digit.sum(axis=1) + last
    return singles[:_PARTS]
