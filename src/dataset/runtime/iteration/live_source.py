"""Live source: an iterator's figures for its page, as plain data."""

from __future__ import annotations

import functools
import logging
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dataset.runtime.metrics.profile import Observer, PipelineProfile
from dataset.runtime.metrics.tuning_log import TuningLog

if TYPE_CHECKING:  # most iterators have no page
    from dataset.live.feed import SnapshotFeed
    from dataset.runtime.metrics.statistics import PipelineStatistics

_logger = logging.getLogger("dataset")

_DECISIONS_MAX = 100  # in a snapshot: the last ones


class LiveSource:
    """The figures of an iterator while it runs; its feed keeps the last ones.

    It does not keep the iterator alive. The profile is released at the end of the iteration.

    Args:
        feed: where the figures are shown.
        statistics: a method of the iterator, which returns its statistics.
    """

    def __init__(self, feed: SnapshotFeed, statistics: Callable[[], PipelineStatistics]) -> None:
        self._feed = feed
        self._statistics = weakref.WeakMethod(statistics)
        self._profile: PipelineProfile | None = None
        self._observer: Observer

    def follow(self, profile: PipelineProfile, observer: Observer) -> None:
        """Show an iteration. Called again if the iterator begins another, at a state that was loaded."""
        if profile is self._profile:
            return
        self._profile, self._observer = profile, observer
        self._feed.begin(self)
        if profile.ended is None:
            profile.at_end.append(functools.partial(self._end, profile))
        else:
            self._end(profile)

    def _end(self, profile: PipelineProfile) -> None:
        if profile is not self._profile:
            return
        final: dict[str, Any] = {}
        try:
            final = self._snapshot(self._observer.measured(profile.elements).statistics())
        except Exception:  # the end of the iteration matters more
            _logger.exception("the live page has lost its last figures after an internal error; please report this")
        self._feed.end(self, final)

    def snapshot(self) -> dict[str, Any]:
        """Return the current figures."""
        statistics, profile = self._statistics(), self._profile
        assert profile is not None  # it follows one
        current = self._observer.measured(profile.elements).statistics if statistics is None else statistics
        return self._snapshot(current())

    def _snapshot(self, stats: PipelineStatistics) -> dict[str, Any]:
        log = self._observer.tuning_log()
        return {
            "stats": stats.to_dict(),
            "decisions": TuningLog(log[-_DECISIONS_MAX:]).to_dicts(),
            "decision_count": len(log) + log.omitted,
        }
