"""Scheduling times of a thread: how long it has computed, and how long it has waited for a core."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from dataset.world import threading

_FILE = Path("/proc/thread-self/schedstat")


class SchedulingTimes(NamedTuple):
    """Times of a thread since it began, in seconds.

    Only Linux reports them (https://docs.kernel.org/scheduler/sched-stats.html); elsewhere they are 0.
    """

    cpu_seconds: float = 0.0
    wait_seconds: float = 0.0

    @classmethod
    def of_this_thread(cls) -> SchedulingTimes:
        """Return the times of the current thread. Takes about 20 us."""
        try:
            run, waited, _ = _FILE.read_bytes().split()
            return cls(int(run) / 1e9, int(waited) / 1e9)
        except (OSError, ValueError):
            return cls()


class CoreWait:
    """How long the threads of an op wait for a core, from samples that are so rare that they cost nothing.

    Args:
        every: seconds between two samples, at least. The first one comes that long after the first look.
    """

    __slots__ = ("_before", "_cpu_seconds", "_due", "_every", "_wait_seconds")

    def __init__(self, every: float = 0.25) -> None:
        self._every = every
        self._due: float | None = None
        self._before: dict[int, SchedulingTimes] = {}  # by thread
        self._cpu_seconds = self._wait_seconds = 0.0

    def look(self, now: float) -> None:
        """Take a sample of this thread, which has worked for the op, if it is time to."""
        if self._due is None:
            self._due = now + self._every
        if now < self._due:
            return
        self._due = now + self._every
        times, thread = SchedulingTimes.of_this_thread(), threading.get_ident()
        before = self._before.get(thread, times)
        if times.cpu_seconds > before.cpu_seconds:  # a new thread may have the number of one that has ended
            self._cpu_seconds += times.cpu_seconds - before.cpu_seconds
            self._wait_seconds += times.wait_seconds - before.wait_seconds
        self._before[thread] = times

    @property
    def ratio(self) -> float:
        """Seconds of waiting per second of CPU time; 0 if they are unknown."""
        return self._wait_seconds / self._cpu_seconds if self._cpu_seconds else 0.0
