"""Statistics callback: gives the statistics of an iterator to a function of the user at intervals, without a thread."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from dataset.plan.checks import require_callable, require_seconds
from dataset.world import time

if TYPE_CHECKING:
    from dataset.runtime.metrics.statistics import PipelineStatistics

_logger = logging.getLogger("dataset")


class StatisticsCallback:
    """A function that is called when it is due, by the thread that requests an element."""

    def __init__(
        self,
        function: Callable[[PipelineStatistics], object],
        every: float,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        require_callable("on_statistics", "callback", function)
        require_seconds("on_statistics", every)
        self._function, self._every, self._clock = function, every, clock
        self._due = clock() + every

    def look(self, statistics: Callable[[], PipelineStatistics], *, is_last: bool = False) -> None:
        """Call the function if it is due, or at the end of the data. Its exceptions are logged."""
        if not is_last and self._clock() < self._due:
            return
        try:
            self._function(statistics())
        except Exception:  # elements matter more than figures
            _logger.exception("a callback of on_statistics() has failed")
        self._due = self._clock() + self._every
