"""How long each operator takes: meters that are switched on for stretches so short that they cost next to nothing.

A meter that is on takes the place of its operator's ``pull`` and looks at the clock before and after. One that is off
is not there: no element passes through it. What it saw counts for the stretches between, too.

Operators that one thread runs by pulling the last of them form a *section*. A section lies between two stages, or
between a stage and the consumer.
"""

from __future__ import annotations

import contextlib
import functools
import time
from functools import partial
from typing import Protocol

from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.contract import Operator

_SIZED = 8  # of so many pulls, the bytes of one are counted


class MeteredOp(Protocol):
    """What a meter asks of the op whose pulls it measures."""

    @property
    def is_a_stage_now(self) -> bool:
        """Whether it does work in the background, and not in the consumer's thread."""


class ThreadSegment:
    """What the meters of a section share.

    Attributes:
        runs: whether a pull of its last operator is being measured, so that those below measure whole pulls.
        is_first: whether that is the first one, which may fill buffers and say nothing about those after it.
    """

    __slots__ = ("is_first", "runs")

    def __init__(self) -> None:
        self.runs = self.is_first = False


class PullStats:
    """What was measured of some pulls.

    Attributes:
        pulls: how many they were.
        elements: which came out of these; an exception counts as one.
        seconds: what they took, those of the inputs included.
        cpu_seconds: how long the thread has computed meanwhile.
        waited_seconds: what those pulls took that found the op working in the background, and not in this thread.
    """

    __slots__ = ("cpu_seconds", "elements", "pulls", "seconds", "waited_seconds")

    def __init__(self) -> None:
        self.pulls = self.elements = 0
        self.seconds = self.cpu_seconds = self.waited_seconds = 0.0

    def add(self, count: int, seconds: float, cpu_seconds: float, *, waited: bool) -> None:
        """Count a pull that is over."""
        self.pulls += 1
        self.elements += count
        self.seconds += seconds
        self.cpu_seconds += cpu_seconds
        if waited:
            self.waited_seconds += seconds


class PullProfiler:
    """Measures the pulls of one op while it is on.

    Attributes:
        first: within the first pull of the section.
        rest: within the others that were measured, which stand for those that were not.
        since: when the pull began that goes on now, on the clock of ``time.perf_counter``; 0 while none does.
    """

    __slots__ = ("_sized", "_sized_bytes", "first", "rest", "since")

    def __init__(self) -> None:
        self.first, self.rest = PullStats(), PullStats()
        self.since = 0.0
        self._sized = self._sized_bytes = 0

    @property
    def pulls(self) -> int:
        """That were measured."""
        return self.first.pulls + self.rest.pulls

    @property
    def element_bytes(self) -> float:
        """The size of an element, on average."""
        return self._sized_bytes / self._sized if self._sized else 0.0

    def switch_on(self, line: MeteredOp, operator: Operator, section: ThreadSegment, *, is_last: bool) -> None:
        """Measure ``operator``, which is ``is_last`` of the section, from where its pulls begin."""
        # Until this is switched off, operator and line refer to one another. It is set as an attribute, not through
        # vars(): an object whose dict somebody has asked for is slower from then on.
        operator.pull = partial(self.pull, line, operator, section, is_last)  # type: ignore[method-assign]

    @staticmethod
    def switch_off(operator: Operator) -> None:
        """Not any more."""
        with contextlib.suppress(AttributeError):  # another thread was quicker
            del operator.pull

    def pull(self, line: MeteredOp, operator: Operator, section: ThreadSegment, is_last: bool, n: int) -> Chunk | None:
        """What ``operator.pull(n)`` gives, measured."""
        if is_last:
            section.runs, section.is_first = True, not self.first.pulls
        elif not section.runs:  # switched on in the middle of a pull, of which the upper part was not measured
            return type(operator).pull(operator, n)
        count = 1  # of an exception
        computed = time.thread_time()
        started = self.since = time.perf_counter()
        try:
            chunk = type(operator).pull(operator, n)
            count = self._count(chunk)
            return chunk
        finally:
            seconds = time.perf_counter() - started
            cpu_seconds = time.thread_time() - computed
            self.since = 0.0
            tally = self.first if section.is_first else self.rest
            tally.add(count, seconds, cpu_seconds, waited=line.is_a_stage_now)
            if is_last:
                section.runs = False

    def _count(self, chunk: Chunk | None) -> int:
        if chunk is None:
            return 0
        if not self.pulls % _SIZED:
            self._sized += chunk.length
            self._sized_bytes += chunk.nbytes
        return chunk.length


@functools.cache
def cost_seconds() -> float:
    """What it costs to measure a pull: mostly asking how long the thread has computed, which differs by system."""
    started = time.perf_counter()
    for _ in range(_TRIALS):
        time.thread_time()
        time.perf_counter()
    return 3 * (time.perf_counter() - started) / _TRIALS  # each is asked twice, and as much again is calls and sums


_TRIALS = 10
