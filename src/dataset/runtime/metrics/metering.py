"""Sampling scheduler: switches the profilers on and off so that measuring takes a small share of the time."""

from __future__ import annotations

import itertools

from dataset.runtime.metrics.meter import COST_SECONDS, ThreadSegment
from dataset.runtime.metrics.op_record import OpRecord
from dataset.world import time

SHARE = 0.005
"""The share of time that measuring may take."""

_READINGS = 4  # of a clock during a measured pull, at most

_PULLS_MIN = 32  # per profiler before they are switched off: fewer say too little
_REST = 100  # pause after counting the pulls, as a multiple of its duration, which is long in plans with 1000 ops
_LOOK_SECONDS = 2e-4  # interval between looks while they are on; bounds how many fast elements are measured


class Metering:
    """Switches the profilers of an iteration on and off, within their share of the time.

    Args:
        root: the topmost op record.
        now: the time on the clock of ``time.perf_counter``.
    """

    def __init__(self, root: OpRecord, now: float) -> None:
        self._root = root
        self._until = now  # when to switch them on again
        self._rests_until = now  # when to count the pulls again
        self._cost = COST_SECONDS + _READINGS * _seconds_of_a_reading()
        self._switch_on(now)

    def look(self, now: float) -> float:
        """Switch the profilers on or off if it is time to; return when to look again."""
        if self._root.section is None:
            if now < self._until:
                return self._until
            self._switch_on(now)
            return now + _LOOK_SECONDS
        if now < self._rests_until:
            return self._rests_until
        looked = time.perf_counter()
        meters, pulls = self._measured()
        spent = (pulls - self._pulls) * self._cost
        if spent <= SHARE * (now - self._since) or pulls - self._pulls < _PULLS_MIN * meters:
            self._rests_until = now + _REST * (time.perf_counter() - looked)
            return max(now + _LOOK_SECONDS, self._rests_until)
        self._until = now + spent / SHARE
        self.stop()
        return self._until

    def _switch_on(self, now: float) -> None:
        self._since, self._pulls = now, self._measured()[1]
        self._root.switch_on(ThreadSegment(), is_last=True)

    def stop(self) -> None:
        """Switch the profilers off."""
        self._root.switch_off()

    def _measured(self) -> tuple[int, float]:
        """Return the number of profilers, and the number of pulls they have measured."""
        pulls = [record.meter.pulls for record in self._root.walk()]
        return len(pulls), sum(pulls)


def _seconds_of_a_reading() -> float:
    """Return how long it takes to read the clock: nanoseconds, or 10 microseconds and more on a virtual machine."""
    readings = [time.perf_counter() for _ in range(_READINGS)]
    return min(after - before for before, after in itertools.pairwise(readings))
