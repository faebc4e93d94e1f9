"""Pull profiler: how long each operator takes, measured by sampling so that the overhead is negligible.

A profiler that is on replaces its operator's ``pull`` and reads the clock before and after. One that is off costs
nothing, because no element passes through it. The samples are extrapolated to the unmeasured pulls.

Operators that one thread runs by pulling the last of them form a *thread segment*. A segment lies between two
background operators, or between one and the consumer.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from dataset.amounts import SAMPLE_ELEMENTS
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.contract import Operator
from dataset.runtime.metrics.scheduling_times import CoreWait
from dataset.runtime.metrics.trace import Trace, TracedOp
from dataset.world import time

COST_SECONDS = 2e-6
"""The assumed cost of measuring a pull: about twice what it takes with Python 3.11 on an AMD EPYC."""

_TIMED = 5  # the CPU time of one of this many short pulls is read, because that takes as long as all else
_SHORT_SECONDS = 1e-4
_SIZED = 8  # the bytes of one of this many pulls are counted


class MeteredOp(TracedOp, Protocol):
    """What a profiler needs to know about the op whose pulls it measures."""

    trace: Trace | None
    core_wait: CoreWait

    @property
    def is_a_stage_now(self) -> bool:
        """Whether it currently works in the background and not in the consumer's thread."""


class ThreadSegment:
    """State shared by the profilers of a thread segment.

    Attributes:
        runs: whether a pull of the segment's last operator is being measured, so that those below measure whole pulls.
        is_first: whether that pull is the first one, which may fill buffers and is not representative.
        is_timed: whether CPU times are read during that pull: of all ops or of none, so that they can be subtracted.
    """

    __slots__ = ("is_first", "is_timed", "runs")

    def __init__(self) -> None:
        self.runs = self.is_first = self.is_timed = False


@dataclass(slots=True, eq=False)
class PullStats:
    """Sums over measured pulls.

    Attributes:
        pulls: the number of pulls.
        elements: the elements that they returned; an exception counts as one.
        seconds: their duration, including that of the inputs.
        waited_seconds: the duration of pulls during which the op worked in the background and not in this thread.
        timed_seconds: the duration of the pulls whose CPU time was read.
        timed_cpu_seconds: that CPU time of the thread.
    """

    pulls: float = 0
    elements: float = 0
    seconds: float = 0.0
    waited_seconds: float = 0.0
    timed_seconds: float = 0.0
    timed_cpu_seconds: float = 0.0

    def add(self, count: int, seconds: float, cpu_seconds: float | None, *, waited: bool) -> None:
        """Add a finished pull; its CPU time is None if it was not read."""
        self.pulls += 1
        self.elements += count
        self.seconds += seconds
        if cpu_seconds is not None:
            self.timed_seconds += seconds
            self.timed_cpu_seconds += cpu_seconds
        if waited:
            self.waited_seconds += seconds

    @property
    def cpu_seconds(self) -> float:
        """The CPU time of all of the pulls, if they used the same share of their duration as those that were timed."""
        return self.seconds * self.timed_cpu_seconds / self.timed_seconds if self.timed_seconds else 0.0


@dataclass(slots=True)
class PullTotals:
    """Sums over all pulls of an op, measured or not, as in ``PullStats``."""

    elements: float
    seconds: float
    cpu_seconds: float
    waited_seconds: float


class PullProfiler:
    """Measures the pulls of one op while it is on.

    Attributes:
        first: pulls within the first pull of the thread segment.
        rest: all other measured pulls, which represent the unmeasured ones.
        since: the start of the current pull on the clock of ``time.perf_counter``; 0 if there is none.
    """

    __slots__ = ("_sized", "_sized_bytes", "first", "rest", "since")

    def __init__(self) -> None:
        self.first, self.rest = PullStats(), PullStats()
        self.since = 0.0
        self._sized = self._sized_bytes = 0

    def total(self, scale: float = 1) -> PullTotals:
        """Return the sums over all pulls, if each measured pull after the first ones represents ``scale`` pulls."""
        names = PullTotals.__slots__
        return PullTotals(*(getattr(self.first, name) + getattr(self.rest, name) * scale for name in names))

    @property
    def pulls(self) -> float:
        """The number of measured pulls."""
        return self.first.pulls + self.rest.pulls

    @property
    def element_bytes(self) -> float:
        """The mean size of an element in bytes."""
        return self._sized_bytes / self._sized if self._sized else 0.0

    def switch_on(self, record: MeteredOp, operator: Operator, section: ThreadSegment, *, is_last: bool) -> None:
        """Start measuring ``operator``; pulls of the thread segment begin at the one that ``is_last``."""
        # Until this is switched off, operator and record refer to each other. The attribute is not set through vars():
        # accessing the dict of an object makes the object slower from then on.
        operator.pull = partial(self.pull, record, operator, section, is_last)  # type: ignore[method-assign]

    @staticmethod
    def switch_off(operator: Operator) -> None:
        """Stop measuring ``operator``."""
        with contextlib.suppress(AttributeError):  # another thread has already done it
            del operator.pull

    def pull(
        self, record: MeteredOp, operator: Operator, section: ThreadSegment, is_last: bool, n: int
    ) -> Chunk | None:
        """Return ``operator.pull(n)``, measured."""
        if is_last:
            rest, section.runs, section.is_first = self.rest, True, not self.first.pulls
            section.is_timed = not rest.pulls % _TIMED or rest.seconds >= _SHORT_SECONDS * rest.pulls
        elif not section.runs:  # switched on during a pull whose upper part was not measured
            return type(operator).pull(operator, n)
        count = 1  # if an exception is raised
        computed = time.thread_time() if section.is_timed else None
        started = self.since = time.perf_counter()
        try:
            chunk = type(operator).pull(operator, n)
            count = self._count(chunk)
            return chunk
        finally:
            seconds = time.perf_counter() - started
            cpu_seconds = None if computed is None else time.thread_time() - computed
            self.since = 0.0
            tally, waited = self.first if section.is_first else self.rest, record.is_a_stage_now
            tally.add(count, seconds, cpu_seconds, waited=waited)
            if computed is not None and not waited:
                record.core_wait.look(started + seconds)
            if record.trace is not None:
                record.trace.add(record, count, seconds, started, waits=waited)
            if is_last:
                section.runs = False

    def _count(self, chunk: Chunk | None) -> int:
        if chunk is None:
            return 0
        if not self.pulls % _SIZED:
            some = chunk.slice(0, min(chunk.length, SAMPLE_ELEMENTS))
            self._sized += some.length
            self._sized_bytes += some.nbytes
        return chunk.length
