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
from typing import TYPE_CHECKING

from dataset.runtime.chunk import Chunk

if TYPE_CHECKING:
    from dataset.runtime.observation import Line
    from dataset.runtime.operator import Operator

SHARE = 0.005
"""Of the time that measuring may take."""

_PULLS_MIN = 32  # of each meter, before they are switched off: fewer say too little
_REST = 20  # times as long as counting what was measured takes, which is long in a plan of a thousand ops
_LOOK_SECONDS = 2e-4  # while they are on: of quick elements, no more are measured than that takes
_SIZED = 8  # of so many pulls, the bytes of one are counted


class Section:
    """What the meters of a section share.

    Attributes:
        runs: whether a pull of its last operator is being measured, so that those below measure whole pulls.
        is_first: whether that is the first one, which may fill buffers and say nothing about those after it.
    """

    __slots__ = ("is_first", "runs")

    def __init__(self) -> None:
        self.runs = self.is_first = False


class Tally:
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


class Meter:
    """Measures the pulls of one op while it is on.

    Attributes:
        first: within the first pull of the section.
        rest: within the others that were measured, which stand for those that were not.
        since: when the pull began that goes on now, on the clock of ``time.perf_counter``; 0 while none does.
    """

    __slots__ = ("_sized", "_sized_bytes", "first", "rest", "since")

    def __init__(self) -> None:
        self.first, self.rest = Tally(), Tally()
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

    def switch_on(self, line: Line, operator: Operator, section: Section, *, is_last: bool) -> None:
        """Measure ``operator``, which is ``is_last`` of the section, from where its pulls begin."""
        # Until this is switched off, operator and line refer to one another. It is set as an attribute, not through
        # vars(): an object whose dict somebody has asked for is slower from then on.
        operator.pull = partial(self.pull, line, operator, section, is_last)  # type: ignore[method-assign]

    @staticmethod
    def switch_off(operator: Operator) -> None:
        """Not any more."""
        with contextlib.suppress(AttributeError):  # another thread was quicker
            del operator.pull

    def pull(self, line: Line, operator: Operator, section: Section, is_last: bool, n: int) -> Chunk | None:
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


class Metering:
    """Switches the meters of an iteration on and off, so that they take no more than their share of the time.

    Args:
        root: the line above all others.
        now: on the clock of ``time.perf_counter``.
    """

    def __init__(self, root: Line, now: float) -> None:
        self._root = root
        self._until = now  # when they are switched on again
        self._rests_until = now  # when what was measured is counted again
        self._switch_on(now)

    def look(self, now: float) -> float:
        """Switch them, if it is time to; when to look again."""
        if self._root.section is None:
            if now < self._until:
                return self._until
            self._switch_on(now)
            return now + _LOOK_SECONDS
        if now < self._rests_until:
            return self._rests_until
        looked = time.perf_counter()
        meters, pulls = self._measured()
        spent = (pulls - self._pulls) * cost_seconds()
        if spent <= SHARE * (now - self._since) or pulls - self._pulls < _PULLS_MIN * meters:
            self._rests_until = now + _REST * (time.perf_counter() - looked)
            return max(now + _LOOK_SECONDS, self._rests_until)
        self._until = now + spent / SHARE
        self.stop()
        return self._until

    def _switch_on(self, now: float) -> None:
        self._since, self._pulls = now, self._measured()[1]
        self._root.switch_on(Section(), is_last=True)

    def stop(self) -> None:
        """Switch them off."""
        self._root.switch_off()

    def _measured(self) -> tuple[int, int]:
        """How many meters there are, and how many pulls they have measured."""
        pulls = [line.meter.pulls for line, _ in self._root.walk()]
        return len(pulls), sum(pulls)
