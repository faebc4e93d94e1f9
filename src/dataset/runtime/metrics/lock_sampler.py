"""Lock sampler: finds out when the interpreter lock is held, for ``Dataset.profile``.

A thread sleeps, wakes about a thousand times per second, and needs the lock to continue. If it continues late, another
thread held the lock when it woke. A thread that computes in Python gives the lock up when it has been requested for
``sys.getswitchinterval()``, 5 ms; functions that release it, such as those of NumPy and zlib, delay no other thread.
The time that the sampler waited for a core, which Linux reports, is subtracted. Runs of less than 1 ms under the lock
are not noticed. The idea is that of gil_load (https://github.com/chrisjbillington/gil_load).
"""

from __future__ import annotations

from typing import NamedTuple, Self

from dataset.runtime.metrics.scheduling_times import SchedulingTimes
from dataset.world import threading, time

_PERIOD_SECONDS = 1e-3
_LATE_SECONDS = 1e-3  # a sleeping thread may wake a little late on its own
_SAMPLES_MAX = 100_000


class LockSample(NamedTuple):
    """One sample.

    Attributes:
        at: when the lock was requested, on the clock of ``time.perf_counter``.
        seconds: the time since the previous sample, which this one represents.
        is_held: whether another thread held the lock.
    """

    at: float
    seconds: float
    is_held: bool


class LockSampler:
    """Takes samples from the beginning to the end of a ``with`` block."""

    def __init__(self) -> None:
        self.samples: list[LockSample] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="dataset-lock-sampler", daemon=True)

    def _run(self) -> None:
        since, before = time.perf_counter(), SchedulingTimes.of_this_thread()
        while not self._ended.wait(_PERIOD_SECONDS) and len(self.samples) < _SAMPLES_MAX:
            until, schedule = time.perf_counter(), SchedulingTimes.of_this_thread()
            late = until - since - _PERIOD_SECONDS - (schedule.wait_seconds - before.wait_seconds)
            self.samples.append(LockSample(since + _PERIOD_SECONDS, until - since, late > _LATE_SECONDS))
            since, before = time.perf_counter(), SchedulingTimes.of_this_thread()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()
