"""Proposals: the most promising change of the knobs according to the model and the counts of a window.

It proposes more workers and larger buffers if the consumer waits, fewer if they are not used, and fewer workers if more
cores are busy than allowed.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace

from dataset.autotune.changes import Change, Setting, TrialHistory
from dataset.autotune.model import Section, gain, lower_bounds
from dataset.autotune.queues import buffer_needed, parallelism_needed
from dataset.autotune.windows import CountWindow, StageDelta

WAITED = 0.03
"""The share of the time that the consumer may wait before anything is added."""

GAIN_PREDICTED = 0.05
"""The smallest predicted gain for which a change is tried."""

_LONG_SECONDS = 0.5
_VARIES = 0.01  # squared coefficient of variation, below which times count as constant
_FACTORS = (1.25, 1.5, 2.0, 3.0, 4.0)  # by which the rate may grow in one change
_RESTED = 0.1  # share of the time: a producer that is blocked less by a full buffer gains little from a larger one
_FACTOR_MAX = 8  # by which a buffer may grow in one change
_ENOUGH = 0.95  # of the largest gain: the smallest change with this gain is chosen
_SPARE = 1.25  # workers that are kept, relative to the number of busy ones
_OVER_BUDGET = 1.1  # times the allowed cores: above, workers are removed without a trial
_WORTH_SAVING = 4  # the smallest number of workers from which some may be removed
_HALF = 0.5


class Proposals:
    """Search for promising changes.

    Args:
        cores: the number of cores that the work may keep busy.
        experience: the history of failed changes; similar ones are not proposed again soon.
    """

    def __init__(self, cores: float, experience: TrialHistory) -> None:
        self.cores = cores
        self._experience = experience
        self._now = 0.0

    def best_addition(self, window: CountWindow, now: float) -> Change | None:
        """Return the most promising change that takes more threads or memory; None if none is useful or needed."""
        self._now = now
        if window.waited < WAITED:
            return None
        changes = [change for change in self._additions(window) if self._experience.may_try(change, now)]
        return max(changes, key=lambda change: change.gain, default=None)

    def first_saving(self, window: CountWindow, now: float) -> Change | None:
        """Return a change that frees threads or memory, or None."""
        return next((change for change in self._savings(window) if self._experience.may_try(change, now)), None)

    def holding_back(self, window: CountWindow) -> Setting | None:
        """Return a setting with fewer workers for the stage that computes most; None if the cores suffice."""
        able = [a for a in window if a.cpu_seconds and a.value > _least(a)]
        if not able or not self.is_over_budget(window):
            return None
        largest = max(able, key=lambda activity: activity.cpu_seconds)
        used = largest.cpu_seconds / window.seconds
        share = max(0.0, 1 - (window.cores_used - self.cores) / used)
        value = max(_least(largest), min(largest.value - 1, math.ceil(share * largest.busy)))
        return Setting(largest, value, f"{window.cores_used:.1f} cores were busy, of {self.cores:g} allowed")

    def is_over_budget(self, window: CountWindow) -> bool:
        """Return whether clearly more cores are busy than allowed."""
        return window.cores_used > _OVER_BUDGET * self.cores

    def _additions(self, window: CountWindow) -> Iterator[Change]:
        root = window.sections(self._experience.contention, self.cores)
        if root is None:
            return
        growing = [activity for activity in window if self._may_grow(activity)]
        calls = self._more_calls([activity for activity in growing if not activity.stage.relays], root)
        if calls is not None:
            yield calls
        for activity in growing:
            room = self._more_room(activity) if activity.stage.relays else None
            if room is not None:
                yield room

    @staticmethod
    def _may_grow(activity: StageDelta) -> bool:
        stage = activity.stage
        return activity.value < stage.knob.maximum and not activity.refusals and not stage.inline

    def _more_calls(self, activities: list[StageDelta], root: Section) -> Change | None:
        """Return a change with more workers, for a higher mean rate or against variation, whichever gains more."""
        changes = (self._more_on_average(activities, root), self._more_against_variation(activities, root))
        return max((change for change in changes if change is not None), key=lambda change: change.gain, default=None)

    def _more_on_average(self, activities: list[StageDelta], root: Section) -> Change | None:
        """Return a change with the workers for a higher rate in all stages; a single stage may gain nothing."""
        now_bound = self._bound(root)
        if not now_bound:
            return None  # no time was measured: no task has ended, and the consumer has only waited
        changes = [self._workers_for(activities, root, now_bound / factor) for factor in _FACTORS]
        bounds = [self._bound(_with_workers(root, settings)) for settings in changes]
        least = min(bounds)
        if now_bound < (1 + GAIN_PREDICTED) * least:
            return None
        settings = next(one for one, bound in zip(changes, bounds, strict=True) if _ENOUGH * bound <= least)
        return self._promising(root, settings)

    def _more_against_variation(self, activities: list[StageDelta], root: Section) -> Change | None:
        """Return a change with more workers than are busy on average, so that slow elements delay others less."""
        settings = []
        for activity in activities:
            value = min(2 * activity.value, self._most(activity))
            varies = activity.variation > _VARIES and activity.computing < _HALF  # otherwise it lacks cores
            if activity.waited_for >= WAITED and varies and value > activity.value:
                reason = f"its consumer waited {activity.waited_for:.0%} of the time, and its times vary"
                settings.append(Setting(activity, value, reason))
        together = self._promising(root, settings) if settings else None
        if together is None or len(settings) == 1:
            return together
        alone = max(
            (change for one in settings if (change := self._promising(root, [one]))),
            key=lambda change: change.gain,
            default=None,
        )
        return alone if alone is not None and 1 + alone.gain >= _ENOUGH * (1 + together.gain) else together

    def _promising(self, root: Section, settings: Sequence[Setting]) -> Change | None:
        """Return the change, if the model predicts enough gain."""
        promised = gain(root, _with_workers(root, settings), self.cores)
        if promised < GAIN_PREDICTED:
            return None
        predicted = f"; {1 + promised:.2f} times the throughput is predicted"
        return Change(tuple(replace(one, reason=one.reason + predicted) for one in settings), promised, adds=True)

    def _workers_for(self, activities: list[StageDelta], root: Section, period: float) -> list[Setting]:
        """Return settings for the stages that need more workers to supply an element of the pipeline per ``period``."""
        sections = {section.name: section for section in root}
        settings = []
        for activity in activities:
            section = sections.get(activity.record)
            if section is None:  # it is downstream of a stage that has not produced anything yet
                continue
            wanted = parallelism_needed(section.ratio * (section.wall_seconds + section.serial_seconds), period)
            value = min(wanted, self._most(activity))
            if value > activity.value:
                reason = (
                    f"{activity.busy:.1f} of its {activity.value} workers are busy and compute "
                    f"{activity.computing:.0%} of that time"
                )
                settings.append(Setting(activity, value, reason))
        return settings

    def _most(self, activity: StageDelta) -> int:
        """Return the most workers that a stage may have and that can keep the cores busy."""
        useful = math.ceil(self.cores / activity.computing) if activity.computing > 0 else sys.maxsize
        return min(activity.stage.knob.maximum, useful, self._experience.highest(activity.record, self._now))

    def _bound(self, root: Section) -> float:
        """Return the lower bound of the seconds per element of the pipeline."""
        return max(lower_bounds(root, self.cores).values())

    def _more_room(self, activity: StageDelta) -> Change | None:
        """Return a change with a larger buffer if it was both empty and full, so too small for the variation.

        The variation of the consumer's times is unknown; it is assumed to equal that of the elements' times.
        """
        if activity.waited_for < WAITED or activity.rest_seconds < _RESTED * activity.seconds:
            return None
        reason = (
            f"it was empty for {activity.waited_for:.0%} of the time and full for "
            f"{min(1.0, activity.rest_seconds / activity.seconds):.0%}: times vary more than it can absorb"
        )
        promised = min(activity.waited_for, activity.rest_seconds / activity.seconds)
        makes = activity.work_seconds / max(1, activity.elements)
        takes = (activity.seconds - activity.wait_seconds) / max(1, activity.taken)
        needed = buffer_needed(takes, makes, activity.variation, activity.variation, GAIN_PREDICTED / 2)
        value = min(activity.stage.knob.maximum, max(2 * activity.value, min(needed, _FACTOR_MAX * activity.value)))
        return Change((Setting(activity, value, reason),), promised, adds=True)

    def _savings(self, window: CountWindow) -> Iterator[Change]:
        for activity in window:
            stage, value = activity.stage, activity.value
            if value <= stage.knob.minimum or stage.inline or not activity.elements:
                continue
            setting = self._less_room(activity) if stage.relays else self._fewer_calls(activity)
            if setting is not None and setting.value < value:
                yield Change((setting,), 0.0, adds=False)

    def _fewer_calls(self, activity: StageDelta) -> Setting | None:
        if activity.value < _WORTH_SAVING:
            return None  # an idle thread costs almost nothing
        reading = min(1.0, activity.input_seconds / activity.seconds)  # done by one worker at a time
        needed = max(1, math.ceil(_SPARE * (activity.busy + reading)))
        if needed <= activity.value / 2:
            return Setting(activity, needed, f"{activity.busy:.1f} of its {activity.value} workers are busy")
        if self._experience.contention.get(activity.record, 0.0) >= _HALF:
            return Setting(activity, math.ceil(activity.value / 2), "more calls at once have gained nothing")
        return None

    @staticmethod
    def _less_room(activity: StageDelta) -> Setting | None:
        value, unused = activity.value, activity.stage.counters.least_ready
        if activity.seconds < _LONG_SECONDS or activity.taken < 16 * value or unused <= value / 2:
            return None
        return Setting(activity, max(2, value - unused + 1), f"never fewer than {unused} elements were ready")


def _least(activity: StageDelta) -> int:
    """Return the fewest workers that a stage may get; its current value if it has no workers."""
    stage = activity.stage
    return activity.value if stage.relays or stage.inline else max(1, stage.knob.minimum)


def _with_workers(root: Section, settings: Sequence[Setting]) -> Section:
    """Return the pipeline with these numbers of workers."""
    return _replaced(root, {setting.record: setting.value for setting in settings})


def _replaced(root: Section, workers: dict[Hashable, int]) -> Section:
    inputs = tuple(_replaced(section, workers) for section in root.inputs)
    value = workers.get(root.name, root.workers)
    return replace(root, workers=value, buffer=root.buffer + value - root.workers, inputs=inputs)
