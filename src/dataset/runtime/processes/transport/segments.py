"""Segments: reusable shared memory that is lent from one process to another and returned.

New memory is slow: the system clears every page, and each side takes a page fault for each page. So segments are
reused. The sending side is the *lender*: it writes into a free segment and lends it. The receiving side is the
*borrower*: it hands out arrays that use the segment's memory. When the last of these arrays is dropped, in whatever
thread, the segment's number is put on a list, which is sent back with the next message. Until then the lender does not
write to the segment, so an array in use never changes.

Both sides are bounded. A lender keeps a few free segments. If a process has many segments in hand, it copies received
arrays and returns the segment at once: code that keeps thousands of arrays, such as a cache or a shuffle buffer, should
hold only their bytes and not whole segments that they are part of.

After a fork, two processes have the arrays, and each may change its own. Therefore all segments in hand are mapped
privately before a fork, and are never returned.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from dataset.amounts import ALIGNMENT
from dataset.runtime.processes.transport.shared_memory import Bytes, Mapping, allocate
from dataset.world.forking import at_fork, whole
from dataset.world.interrupts import deferring

FREE_MAX = 4
"""How many free segments a lender keeps; the least recently used one is dropped first."""

IN_HAND_MAX = 128
"""From this many segments in hand on, a process copies received arrays.

Each segment takes a descriptor, and many systems allow 1,024 per process. This is enough for the usual buffers between
operators.
"""

_GRAIN = 1 << 16  # sizes are rounded up, so that arrays of nearly the same size find a segment that fits


class Loan(NamedTuple):
    """A segment in transit: its number, its size in bytes, and the length of each buffer in it."""

    segment: int
    size: int
    lengths: tuple[int, ...]


class Lender:
    """Lender: puts buffers into segments."""

    def __init__(self) -> None:
        self._made = 0
        self._free: dict[int, Mapping] = {}  # the least recently used first
        self._lent: dict[int, Mapping] = {}
        self._dropped: list[int] = []  # not reported to the borrower yet

    def lend(self, buffers: Sequence[Bytes]) -> tuple[Loan, int | None]:
        """Return a segment with these bytes, and its descriptor if it is new, which the caller must close."""
        lengths = tuple(buffer.nbytes for buffer in buffers)
        number, descriptor = self._fitting(sum(map(_aligned, lengths)))
        mapping = self._lent[number]
        for place, buffer in zip(cut(np.asarray(mapping), lengths), buffers, strict=True):
            place[:] = buffer
        return Loan(number, mapping.size, lengths), descriptor

    def _fitting(self, needed: int) -> tuple[int, int | None]:
        """Lend a segment of ``needed`` bytes or a little more; return its number, and its descriptor if it is new."""
        fitting = [number for number, mapping in self._free.items() if needed <= mapping.size <= 2 * needed + _GRAIN]
        if fitting:
            number = min(fitting, key=lambda number: self._free[number].size)
            self._lent[number] = self._free.pop(number)
            return number, None
        size = _rounded(needed)
        descriptor = allocate(size)
        try:
            mapping = Mapping(descriptor, size)
        except BaseException:
            os.close(descriptor)
            raise
        self._made += 1
        self._lent[self._made] = mapping
        return self._made, descriptor

    def take_back(self, numbers: Iterable[int]) -> None:
        """Mark these segments as free: no array uses them any more."""
        for number in numbers:
            self._free[number] = self._lent.pop(number)
        while len(self._free) > FREE_MAX:
            oldest = next(iter(self._free))
            del self._free[oldest]
            self._dropped.append(oldest)

    def give_up(self, numbers: Iterable[int]) -> None:
        """Forget these segments, which are not returned."""
        for number in numbers:
            del self._lent[number]

    def dropped(self) -> tuple[int, ...]:
        """Return the segments that the borrower need not keep; each is returned once."""
        dropped, self._dropped = tuple(self._dropped), []
        return dropped


class _Lease:
    """Base object of all arrays in a lent segment, which reports when the last of them is dropped.

    That may happen in any thread, in the garbage collector, or at interpreter exit. So ``__del__`` only appends to a
    deque.
    """

    def __init__(self, number: int, mapping: Mapping, over: deque[int]) -> None:
        self._number = number
        self._mapping = mapping
        self._over = over
        self.__array_interface__ = mapping.__array_interface__
        self._leases = _leases  # at interpreter exit module globals are cleared first
        self._leases[id(self)] = mapping

    @deferring
    def __del__(self) -> None:
        del self._leases[id(self)]
        self._over.append(self._number)


class Borrower:
    """Borrower: provides the buffers in received segments."""

    def __init__(self) -> None:
        self._mapped: dict[int, Mapping] = {}
        self._in_hand: dict[int, int] = {}  # segment -> the number of forks before it was received
        self._over: deque[int] = deque()  # segments whose last array was dropped

    def views(self, loan: Loan, descriptor: int | None) -> list[memoryview]:
        """Return the buffers of a loan, which may be kept indefinitely. ``descriptor`` comes with a new segment."""
        if descriptor is not None:
            self._mapped[loan.segment] = Mapping(descriptor, loan.size, separable=True)
        mapping = self._mapped[loan.segment]
        many = len(_leases) >= IN_HAND_MAX
        with whole:
            self._in_hand[loan.segment] = _forks.count
            memory = np.asarray(_Lease(loan.segment, mapping, self._over))
        parts = cut(memory, loan.lengths)
        return [part.copy().data if many else part.data for part in parts]

    def done(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the segments no longer in hand: those that the lender may reuse, and those that it may not."""
        usable, unusable = [], []
        while self._over:
            number = self._over.popleft()
            if self._in_hand.pop(number) == _forks.count:
                usable.append(number)
            else:
                unusable.append(number)
                del self._mapped[number]
        return tuple(usable), tuple(unusable)

    def forget(self, numbers: Iterable[int]) -> None:
        """Unmap these segments, which the lender has dropped."""
        for number in numbers:
            del self._mapped[number]


def cut(memory: Bytes, lengths: Iterable[int]) -> list[Bytes]:
    """Return the parts of a segment for buffers with these lengths."""
    places, start = [], 0
    for length in lengths:
        places.append(memory[start : start + length])
        start += _aligned(length)
    return places


def _aligned(length: int) -> int:
    return -(-length // ALIGNMENT) * ALIGNMENT


def _rounded(size: int) -> int:
    """Round up to the next multiple of 64 KiB, or of about an eighth of the size for large sizes."""
    grain = max(_GRAIN, 1 << max(0, size.bit_length() - 4))
    return -(-size // grain) * grain


class _Forks:
    count = 0  # the number of forks of this process


_forks = _Forks()
_leases: dict[int, Mapping] = {}  # the segments in hand of all borrowers, by the id of the lease


def _before_fork() -> None:
    _forks.count += 1
    for mapping in list(_leases.values()):
        mapping.make_private()


at_fork(before=_before_fork)
