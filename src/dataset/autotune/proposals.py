"""Which change of the knobs promises most: by the model, from what was done in a window.

More workers and larger buffers where the consumer waits; fewer where they are not used; fewer workers, too, where more
cores are busy than may be.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

from dataset.autotune.changes import Change, Setting, TrialHistory
from dataset.autotune.model import Section, gain, lower_bounds
from dataset.autotune.queues import buffer_needed, parallelism_needed
from dataset.autotune.windows import CountWindow, StageDelta, StageNode, section_name

WAITED = 0.03
"""The share of the time that the consumer may wait without anything being added."""

GAIN_PREDICTED = 0.05
"""Below, a change is not tried."""

_LONG_SECONDS = 0.5
_VARIES = 0.01  # squared coefficient of variation: below, times are as good as constant
_FACTORS = (1.25, 1.5, 2.0, 3.0, 4.0)  # by which the rate may be wanted to grow at once
_RESTED = 0.1  # of the time: a producer that is less often without room would not make much more with it
_FACTOR_MAX = 8  # by which a buffer may
_ENOUGH = 0.95  # of the gain of the largest step: a smaller one that gets as much is taken
_SPARE = 1.25  # as many workers as this above those that were busy are kept
_OVER_BUDGET = 1.1  # times the cores that may be busy: above, workers are given back untried
_WORTH_SAVING = 4  # of so many workers, some may be given back
_HALF = 0.5


class Proposals:
    """Finds changes.

    Args:
        cores: that the work may keep busy.
        experience: of changes that failed; those like them are not proposed again soon.
    """

    def __init__(self, cores: float, experience: TrialHistory) -> None:
        self.cores = cores
        self._experience = experience
        self._now = 0.0

    def best_addition(self, window: CountWindow, now: float) -> Change | None:
        """What promises most of what takes more threads or memory; None where nothing is worth it, or is needed."""
        self._now = now
        if window.waited < WAITED:
            return None
        changes = [change for change in self._additions(window) if self._experience.may_try(change, now)]
        return max(changes, key=lambda change: change.gain, default=None)

    def first_saving(self, window: CountWindow, now: float) -> Change | None:
        """Return what can be given back."""
        return next((change for change in self._savings(window) if self._experience.may_try(change, now)), None)

    def holding_back(self, window: CountWindow) -> Setting | None:
        """Fewer workers for the stage that computes most, so that the cores suffice; None where they do."""
        able = [a for a in window if a.cpu_seconds and a.part.stage.knob.value > _least(a.part)]
        if not able or not self.is_over_budget(window):
            return None
        largest = max(able, key=lambda activity: activity.cpu_seconds)
        part, knob, used = largest.part, largest.part.stage.knob, largest.cpu_seconds / window.seconds
        share = max(0.0, 1 - (window.cores_used - self.cores) / used)
        value = max(_least(part), min(knob.value - 1, math.ceil(share * largest.busy)))
        return Setting(part, value, f"{window.cores_used:.1f} cores were busy, of {self.cores:g} that may be")

    def is_over_budget(self, window: CountWindow) -> bool:
        """Return whether clearly more cores are busy than may be."""
        return window.cores_used > _OVER_BUDGET * self.cores

    def _additions(self, window: CountWindow) -> Iterator[Change]:
        root = window.sections(self._experience.contention, self.cores)
        if root is None:
            return
        growing = [activity for activity in window if self._may_grow(activity)]
        calls = self._more_calls([activity for activity in growing if not activity.part.stage.relays], root)
        if calls is not None:
            yield calls
        for activity in growing:
            room = self._more_room(activity) if activity.part.stage.relays else None
            if room is not None:
                yield room

    @staticmethod
    def _may_grow(activity: StageDelta) -> bool:
        stage = activity.part.stage
        return stage.knob.value < stage.knob.maximum and not activity.refusals and not stage.inline

    def _more_calls(self, activities: list[StageDelta], root: Section) -> Change | None:
        """More workers: as many as a higher rate needs on average, or more against variation, if that gains more."""
        changes = (self._more_on_average(activities, root), self._more_against_variation(activities, root))
        return max((change for change in changes if change is not None), key=lambda change: change.gain, default=None)

    def _more_on_average(self, activities: list[StageDelta], root: Section) -> Change | None:
        """As many workers as a higher rate needs, of all stages at once: more in one alone may gain nothing."""
        now_bound = self._bound(root)
        if not now_bound:
            return None  # all that was done took no time: no task has ended, and the consumer has only waited
        changes = [self._workers_for(activities, root, now_bound / factor) for factor in _FACTORS]
        bounds = [self._bound(_with_workers(root, settings)) for settings in changes]
        least = min(bounds)
        if now_bound < (1 + GAIN_PREDICTED) * least:
            return None
        settings = next(one for one, bound in zip(changes, bounds, strict=True) if _ENOUGH * bound <= least)
        return self._promising(root, settings)

    def _more_against_variation(self, activities: list[StageDelta], root: Section) -> Change | None:
        """Elements wait for one that takes long: more workers than are busy on average even that out."""
        settings = []
        for activity in activities:
            knob = activity.part.stage.knob
            value = min(2 * knob.value, self._most(activity))
            varies = activity.variation > _VARIES and activity.computing < _HALF  # or cores are what it lacks
            if activity.waited_for >= WAITED and varies and value > knob.value:
                reason = f"it was waited for {activity.waited_for:.0%} of the time, and its times vary"
                settings.append(Setting(activity.part, value, reason))
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
        """Return the change, if the model says that it gains enough."""
        promised = gain(root, _with_workers(root, settings), self.cores)
        if promised < GAIN_PREDICTED:
            return None
        predicted = f"; {1 + promised:.2f} times the throughput is predicted"
        return Change(tuple(replace(one, reason=one.reason + predicted) for one in settings), promised, adds=True)

    def _workers_for(self, activities: list[StageDelta], root: Section, period: float) -> list[Setting]:
        """Those stages that need more workers to make what is one element of the pipeline in each ``period``."""
        sections = {section.name: section for section in root}
        settings = []
        for activity in activities:
            part, knob = activity.part, activity.part.stage.knob
            section = sections.get(section_name(part))
            if section is None:  # it is above one that has not given anything yet
                continue
            wanted = parallelism_needed(section.ratio * (section.wall_seconds + section.serial_seconds), period)
            value = min(wanted, self._most(activity))
            if value > knob.value:
                reason = (
                    f"{activity.busy:.1f} of its {knob.value} workers are busy and compute "
                    f"{activity.computing:.0%} of that time"
                )
                settings.append(Setting(part, value, reason))
        return settings

    def _most(self, activity: StageDelta) -> int:
        """As many workers as a stage may have, and as keep all cores busy with what they compute."""
        useful = math.ceil(self.cores / activity.computing) if activity.computing > 0 else sys.maxsize
        return min(activity.part.stage.knob.maximum, useful, self._experience.highest(activity.part, self._now))

    def _bound(self, root: Section) -> float:
        """Return what a look tells: the seconds per element below which the pipeline never gets."""
        return max(lower_bounds(root, self.cores).values())

    def _more_room(self, activity: StageDelta) -> Change | None:
        """Return a buffer that was both empty and full is too small for how much the times vary.

        How much those of the consumer vary is not known; it is taken to be as much as those of the elements.
        """
        knob = activity.part.stage.knob
        if activity.waited_for < WAITED or activity.rest_seconds < _RESTED * activity.seconds:
            return None
        reason = (
            f"it was empty for {activity.waited_for:.0%} of the time and full for "
            f"{min(1.0, activity.rest_seconds / activity.seconds):.0%}: times vary more than it evens out"
        )
        promised = min(activity.waited_for, activity.rest_seconds / activity.seconds)
        makes = activity.work_seconds / max(1, activity.elements)
        takes = (activity.seconds - activity.wait_seconds) / max(1, activity.taken)
        needed = buffer_needed(takes, makes, activity.variation, activity.variation, GAIN_PREDICTED / 2)
        value = min(knob.maximum, max(2 * knob.value, min(needed, _FACTOR_MAX * knob.value)))
        return Change((Setting(activity.part, value, reason),), promised, adds=True)

    def _savings(self, window: CountWindow) -> Iterator[Change]:
        for activity in window:
            knob = activity.part.stage.knob
            if knob.value <= knob.minimum or activity.part.stage.inline or not activity.elements:
                continue
            setting = self._less_room(activity) if activity.part.stage.relays else self._fewer_calls(activity)
            if setting is not None and setting.value < knob.value:
                yield Change((setting,), 0.0, adds=False)

    def _fewer_calls(self, activity: StageDelta) -> Setting | None:
        part, knob = activity.part, activity.part.stage.knob
        if knob.value < _WORTH_SAVING:
            return None  # a thread that rests costs next to nothing
        reading = min(1.0, activity.input_seconds / activity.seconds)  # by one worker at a time
        needed = max(1, math.ceil(_SPARE * (activity.busy + reading)))
        if needed <= knob.value / 2:
            return Setting(part, needed, f"{activity.busy:.1f} of its {knob.value} workers are busy")
        if self._experience.contention.get(part.key, 0.0) >= _HALF:
            return Setting(part, math.ceil(knob.value / 2), "more calls at once have gained nothing")
        return None

    @staticmethod
    def _less_room(activity: StageDelta) -> Setting | None:
        part, knob = activity.part, activity.part.stage.knob
        unused = part.stage.counters.least_ready
        if activity.seconds < _LONG_SECONDS or activity.taken < 16 * knob.value or unused <= knob.value / 2:
            return None
        return Setting(part, max(2, knob.value - unused + 1), f"never fewer than {unused} elements were ready")


def _least(part: StageNode) -> int:
    """How few workers it may be given: of those that have none, the value that it has."""
    stage = part.stage
    return stage.knob.value if stage.relays or stage.inline else max(1, stage.knob.minimum)


def _with_workers(root: Section, settings: Sequence[Setting]) -> Section:
    """Return the pipeline in which stages have so many workers."""
    return _replaced(root, {section_name(setting.part): setting.value for setting in settings})


def _replaced(root: Section, workers: dict[str, int]) -> Section:
    inputs = tuple(_replaced(section, workers) for section in root.inputs)
    value = workers.get(root.name, root.workers)
    return replace(root, workers=value, buffer=root.buffer + value - root.workers, inputs=inputs)
