"""Periodic callback: a function called regularly while a pipeline runs, by any of its threads.

It needs no thread that sleeps and wakes: if the pipeline is idle, there is nothing to do.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable

from dataset.world import threading

_logger = logging.getLogger("dataset")


class PeriodicCallback:
    """Calls a function that returns when it must be called again.

    A thread that has just read the clock tests ``now >= pulse.due`` without a lock, and then calls ``beat``.

    Attributes:
        due: the next time on the clock of ``time.perf_counter``; infinity for never.
    """

    __slots__ = ("_function", "_lock", "due")

    def __init__(self) -> None:
        self.due = math.inf
        self._function: Callable[[float], float] | None = None
        self._lock = threading.Lock()

    def start(self, function: Callable[[float], float]) -> None:
        """Call ``function(now)`` from now on. It returns when it is due again, and must not block."""
        self._function = function
        self.due = 0.0

    def stop(self) -> None:
        """Stop calling the function."""
        self.due, self._function = math.inf, None

    def beat(self, now: float) -> None:
        """Call the function, unless another thread is calling it."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            function = self._function
            if function is None:
                self.due = math.inf  # stopped by another thread meanwhile
            elif now >= self.due:
                due = function(now)
                self.due = due if self._function is function else math.inf
        except Exception:
            self.stop()  # elements matter more than tuning: the current settings stay
            _logger.exception("the autotuner has stopped after an internal error; please report this")
        finally:
            self._lock.release()
