"""Segments of shared memory that go from one process to another and come back.

New memory is slow: the system clears every page of it, and each side takes a fault for each page. So segments are used
again. The side that sends is the *lender*. It writes into a segment that nobody has and lends it. The side that
receives, the *borrower*, hands out arrays that lie in the segment. When the last of them is dropped, wherever and by
whichever thread that happens, the segment's number is put on a list, which goes back with the next message. Until then
the lender does not touch it; so no array that somebody holds ever changes.

Both sides are bounded. A lender keeps a few free segments. A process that has many segments in hand copies what comes
and gives the segment back at once: who keeps thousands of arrays, such as a cache or a shuffle buffer, should hold
their bytes and not whole segments that each of them is a part of.

After a fork two processes have the arrays, and each may change its own. So, before it, what is in hand is mapped
privately, and those segments are never given back.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from dataset.runtime.processes.forking import at_fork, whole
from dataset.runtime.processes.memory import Bytes, Mapping, allocate
from dataset.runtime.resources.interrupts import deferring

FREE_MAX = 4
"""How many free segments a lender keeps; the least recently used goes first."""

IN_HAND_MAX = 128
"""From how many segments in hand a process copies. Enough for the buffers that pipelines have between operators, and
few beside the 1,024 descriptors that a process may have on many systems; each takes one."""

_ALIGNMENT = 64  # of arrays in a segment: a cache line, and what vector instructions like
_GRAIN = 1 << 16  # sizes are rounded up, so that arrays of nearly the same size find a segment that fits


class Loan(NamedTuple):
    """A segment on its way: its number, its size in bytes and how long each buffer in it is."""

    segment: int
    size: int
    lengths: tuple[int, ...]


class Lender:
    """Puts buffers into segments."""

    def __init__(self) -> None:
        self._made = 0
        self._free: dict[int, Mapping] = {}  # the least recently used first
        self._lent: dict[int, Mapping] = {}
        self._dropped: list[int] = []  # the borrower is still to hear of it

    def lend(self, buffers: Sequence[Bytes]) -> tuple[Loan, int | None]:
        """A segment with these bytes, and its descriptor, for the caller to close, if the borrower needs it."""
        lengths = tuple(buffer.nbytes for buffer in buffers)
        number, descriptor = self._fitting(sum(map(_aligned, lengths)))
        mapping = self._lent[number]
        for place, buffer in zip(cut(np.asarray(mapping), lengths), buffers, strict=True):
            place[:] = buffer
        return Loan(number, mapping.size, lengths), descriptor

    def _fitting(self, needed: int) -> tuple[int, int | None]:
        """A segment of at least ``needed`` bytes and not much more, now lent; its descriptor if it is new."""
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
        """These segments are in nobody's hands any more."""
        for number in numbers:
            self._free[number] = self._lent.pop(number)
        while len(self._free) > FREE_MAX:
            oldest = next(iter(self._free))
            del self._free[oldest]
            self._dropped.append(oldest)

    def give_up(self, numbers: Iterable[int]) -> None:
        """These segments do not come back."""
        for number in numbers:
            del self._lent[number]

    def dropped(self) -> tuple[int, ...]:
        """The segments that the borrower need not keep; each is told once."""
        dropped, self._dropped = tuple(self._dropped), []
        return dropped


class _Lease:
    """Lives as long as some array lies in a segment that was lent, and says when that is over.

    Arrays have it as their base. The end may come in any thread, in the garbage collector, at interpreter exit; so all
    that happens then is one append to a deque.
    """

    def __init__(self, number: int, mapping: Mapping, over: deque[int]) -> None:
        self._number = number
        self._mapping = mapping
        self._over = over
        self.__array_interface__ = mapping.__array_interface__
        self._leases = _leases  # at interpreter exit module globals go first
        self._leases[id(self)] = mapping

    @deferring
    def __del__(self) -> None:
        del self._leases[id(self)]
        self._over.append(self._number)


class Borrower:
    """Shows buffers that came in segments."""

    def __init__(self) -> None:
        self._mapped: dict[int, Mapping] = {}
        self._in_hand: dict[int, int] = {}  # segment -> the count of forks when it came
        self._over: deque[int] = deque()  # segments whose last array has gone

    def views(self, loan: Loan, descriptor: int | None) -> list[memoryview]:
        """The buffers of a loan, to keep as long as one likes. ``descriptor`` comes with a new segment."""
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
        """The segments that are no longer in hand: those that the lender may use, and those that it may not."""
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
        """The lender has dropped these segments."""
        for number in numbers:
            del self._mapped[number]


def cut(memory: Bytes, lengths: Iterable[int]) -> list[Bytes]:
    """The places in a segment of buffers with these lengths."""
    places, start = [], 0
    for length in lengths:
        places.append(memory[start : start + length])
        start += _aligned(length)
    return places


def _aligned(length: int) -> int:
    return -(-length // _ALIGNMENT) * _ALIGNMENT


def _rounded(size: int) -> int:
    """Up to the next multiple of 64 KiB, or of an eighth of the size for large ones."""
    grain = max(_GRAIN, 1 << max(0, size.bit_length() - 4))
    return -(-size // grain) * grain


class _Forks:
    count = 0  # how often this process has forked


_forks = _Forks()
_leases: dict[int, Mapping] = {}  # what is in hand, of all borrowers, by the id of the lease


def _before_fork() -> None:
    _forks.count += 1
    for mapping in list(_leases.values()):
        mapping.make_private()


at_fork(before=_before_fork)
