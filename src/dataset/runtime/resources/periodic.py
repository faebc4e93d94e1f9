"""Something to be done now and then while a pipeline runs, by whichever of its threads comes by.

This takes no thread that sleeps and wakes: where nothing happens, there is nothing to look at.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable

_logger = logging.getLogger("dataset")


class PeriodicCallback:
    """Calls a function that says when it wants to be called again.

    Who has just looked at the clock asks ``now >= pulse.due``, without a lock, and calls ``beat``.

    Attributes:
        due: on the clock of ``time.perf_counter``; infinity for never.
    """

    __slots__ = ("_function", "_lock", "due")

    def __init__(self) -> None:
        self.due = math.inf
        self._function: Callable[[float], float] | None = None
        self._lock = threading.Lock()

    def start(self, function: Callable[[float], float]) -> None:
        """Have ``function(now)`` called from now on. It returns when it is due again, and must not wait."""
        self._function = function
        self.due = 0.0

    def stop(self) -> None:
        """Not any more."""
        self.due, self._function = math.inf, None

    def beat(self, now: float) -> None:
        """Call the function, unless another thread is doing so."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            function = self._function
            if function is None:
                self.due = math.inf  # stopped by another thread while one was here
            elif now >= self.due:
                due = function(now)
                self.due = due if self._function is function else math.inf
        except Exception:
            self.stop()  # elements matter more than knobs: what has been set stays
            _logger.exception("the autotuner has stopped after an error in it; please report this")
        finally:
            self._lock.release()
