"""How long each operator takes: meters that are switched on for stretches so short that they cost next to nothing.

A meter that is on takes the place of its operator's ``pull`` and looks at the clock before and after. One that is off
is not there: no element passes through it. What it saw counts for the stretches between, too.

Operators that one thread runs by pulling the last of them form a *section*. A section lies between two stages, or
between a stage and the consumer.
"""

from __future__ import annotations

import contextlib
import functools
import math
import time
from functools import partial
from typing import TYPE_CHECKING

from dataset.runtime.chunk import Chunk

if TYPE_CHECKING:
    from dataset.runtime.observation import Line
    from dataset.runtime.operator import Operator

SHARE = 0.005
"""Of the time that measuring may take."""

_PULLS_MIN = 8  # of each meter, before they are switched off: fewer say too little
_STRETCH_SECONDS = 2e-4  # after which they may have seen enough
_SIZED = 8  # of so many pulls, the bytes of one are counted


class Section:
    """Whether a pull of the section's last operator is being measured, so that those below measure whole pulls."""

    __slots__ = ("runs",)

    def __init__(self) -> None:
        self.runs = False


class Meter:
    """Measures the pulls of one op while it is on.

    Attributes:
        pulls: that were measured.
        elements: which came out of these; an exception counts as one.
        seconds: what they took, those of the inputs included.
        cpu_seconds: how long the thread has computed meanwhile.
        waited_seconds: what those pulls took that found the op working in the background, and not in this thread.
    """

    __slots__ = ("_sized", "_sized_bytes", "cpu_seconds", "elements", "pulls", "seconds", "waited_seconds")

    def __init__(self) -> None:
        self.pulls = self.elements = 0
        self.seconds = self.cpu_seconds = self.waited_seconds = 0.0
        self._sized = self._sized_bytes = 0

    @property
    def element_bytes(self) -> float:
        """The size of an element, on average."""
        return self._sized_bytes / self._sized if self._sized else 0.0

    def pull(self, line: Line, operator: Operator, section: Section, is_last: bool, n: int) -> Chunk | None:
        """What ``operator.pull(n)`` gives, measured; ``is_last`` of the section, from where its pulls begin."""
        if is_last:
            section.runs = True
        elif not section.runs:  # switched on in the middle of a pull, of which the upper part was not measured
            return type(operator).pull(operator, n)
        count = 1  # of an exception
        computed = time.thread_time()
        started = time.perf_counter()
        try:
            chunk = type(operator).pull(operator, n)
            count = self._count(chunk)
            return chunk
        finally:
            seconds = time.perf_counter() - started
            self.seconds += seconds
            self.cpu_seconds += time.thread_time() - computed
            if line.is_a_stage_now:
                self.waited_seconds += seconds
            self.pulls += 1
            self.elements += count
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
        root: the line of the last op.
        now: on the clock of ``time.perf_counter``.
    """

    def __init__(self, root: Line, now: float) -> None:
        self._root = root
        self._measured: list[Operator] = []
        self._meters: list[Meter] = []
        self._ended = False
        self._until = now  # when they are switched on again
        self._since, self._pulls = now, 0  # when they were, and what they had counted by then
        self._switch_on(now)

    def look(self, now: float) -> float:
        """Switch them, if it is time to; when to look again."""
        if not self._measured:
            if self._ended:
                return math.inf
            if now < self._until:
                return self._until
            self._switch_on(now)
        pulls = self._all_pulls() - self._pulls
        spent = pulls * cost_seconds()
        if spent > SHARE * (now - self._since) and pulls >= _PULLS_MIN * len(self._meters):
            self._until = now + spent / SHARE
            self._switch_off()
            return self._until
        return now + max(_STRETCH_SECONDS, now - self._since)

    @property
    def is_on(self) -> bool:
        """Whether they measure now."""
        return bool(self._measured)

    def _switch_on(self, now: float) -> None:
        """While an op is measured, its operator refers to the line and the line to it."""
        sections: dict[int, Section] = {}
        self._meters = []
        for line, reader in self._root.walk():
            is_last = reader is None or reader.stage is not None
            section = Section() if reader is None or is_last else sections[id(reader)]
            sections[id(line)] = section
            operator = line.operator
            assert operator is not None  # or it would not be among these
            # As an attribute, not through vars(): an object whose dict somebody has asked for is slower from then on.
            operator.pull = partial(line.meter.pull, line, operator, section, is_last)  # type: ignore[method-assign]
            self._measured.append(operator)
            self._meters.append(line.meter)
        self._since, self._pulls = now, self._all_pulls()
        if self._ended:  # meanwhile, by another thread
            self._switch_off()

    def end(self) -> None:
        """Switch them off for good. From any thread, also while another one looks."""
        self._ended = True
        self._switch_off()

    def _switch_off(self) -> None:
        while self._measured:
            with contextlib.suppress(AttributeError, IndexError):  # another thread was quicker
                del self._measured.pop().pull

    def _all_pulls(self) -> int:
        return sum(meter.pulls for meter in self._meters)
