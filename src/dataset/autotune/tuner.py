"""Decides how many calls and how many buffered elements a running pipeline gets: by a model, and then by trying.

The tuner looks at windows of time in which nothing was changed. From what the stages counted in one, the model
(model.py) tells what a change would gain; the best is *tried*: the knob is set, what was under way before passes, and
the next window shows whether the pipeline has become faster. If not, the knob is *taken back*, and that change is not
tried again soon. So a model that is wrong costs a moment, and never stays.

It aims at what the consumer needs: as long as the consumer hardly ever waits, nothing is added, and workers that are
not needed are given back, which is verified in the same way.

Only counts go in and only knobs come out: no clock, no thread, no lock. Who calls ``look`` says what time it is.
"""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from dataset.autotune.model import Section, buffer_needed, lower_bounds, parallelism_needed, predict
from dataset.autotune.windows import Activity, Part, Watch, Window, section_name
from dataset.runtime.stages import Knob

WAITED = 0.03
"""The share of the time that the consumer may wait without anything being added."""

WINDOW_SECONDS = 0.02
"""The shortest window. One that finds nothing to do is followed by one twice as long, up to the longest."""

WINDOW_SECONDS_MAX = 1.0

_WAITS = 8  # in a window, from which its rate is known well
_WAITS_MIN = 3  # in one that has lasted long
_ROUNDS = 5  # of the longest task: workers that began together end together for a while
_LONG_SECONDS = 0.5
_OVERLONG_SECONDS = 4.0
_VARIES = 0.01  # squared coefficient of variation: below, times are as good as constant
_CERTAIN = 0.05  # the standard error of a rate from which a change is tried; more is not waited for very long
_CLEAR = 2.0  # standard errors: a trial whose outcome is so far off what is asked for is decided at once
_TRIAL_SECONDS = 1.0  # after which one is decided as well as may be
_PAUSE = 4.0  # times later than usual somebody comes by: the consumer did something else
_GAIN_PREDICTED = 0.05  # below, a change is not tried
_GAIN_KEPT = 0.05  # below, it is taken back
_TELLING = 0.25  # as much must have been promised for calls that gained nothing to count as not going side by side
_LOSS_KEPT = 0.03  # for which workers may be given back
_FACTORS = (1.25, 1.5, 2.0, 3.0, 4.0)  # by which the rate may be wanted to grow at once
_APART = 1.2  # by what factor values differ that are worth telling apart
_RESTED = 0.1  # of the time: a producer that is less often without room would not make much more with it
_FACTOR_MAX = 8  # by which a buffer may
_ENOUGH = 0.95  # of the gain of the largest step: a smaller one that gets as much is taken
_PATIENCE_SECONDS = 4.0  # until a change that was taken back may be tried again, doubled each time
_PATIENCE_SECONDS_MAX = 300.0
_CHANGED = 1.4  # by what factor work has to differ in two windows in a row to count as other work
_BUSY_MIN = 0.5  # of its workers: a stage below does not hold up anything
_SPARE = 1.25  # as many workers as this above those that were busy are kept
_SETTLED_WINDOWS = 3
_OVER_BUDGET = 1.1  # times the cores that may be busy: above, workers are given back untried
_WORTH_SAVING = 4  # of so many workers, some may be given back


@dataclass(frozen=True, eq=False)
class Setting:
    """A knob and what it is to be set to."""

    part: Part
    value: int
    reason: str

    @property
    def knob(self) -> Knob:
        return self.part.stage.knob


@dataclass(frozen=True, eq=False)
class Change:
    """Knobs that are to be set together.

    Attributes:
        settings: which, and to what; at least one.
        gain: what the model predicts: 0.5 for one and a half times the throughput.
        adds: whether it takes more threads or memory, and so has to pay.
    """

    settings: tuple[Setting, ...]
    gain: float
    adds: bool


@dataclass(eq=False)
class _Trial:
    change: Change
    before: tuple[int, ...]  # the values of the knobs
    gauge: int  # the key of the stage whose rate is compared
    rate: float  # of that before
    waited: float
    uncertainty: float  # of that rate
    seconds: float  # of the window before, within bounds
    is_clear: bool = False  # what was under way before the change has passed


@dataclass(eq=False)
class _Experience:
    """With one knob."""

    ceiling: float = math.inf  # a value that was no better
    floor: float = 0.0  # one that was worse
    patience: float = _PATIENCE_SECONDS
    retry_at: float = 0.0

    @property
    def highest(self) -> int:
        """What may be tried before it is time to try the ceiling again: the middle, in effect."""
        return sys.maxsize if self.ceiling == math.inf else int(self.ceiling / _APART)


Record = Callable[[float, Part, str, int | None, int | None, str], None]
"""Is told what is decided: when, about which stage, the action, the values before and after, why."""


class Tuner:
    """Sets the knobs of one pipeline.

    Args:
        cores: that its computing may keep busy.
        record: is told of each decision.
    """

    def __init__(self, cores: float, record: Record) -> None:
        self.cores = cores
        self.contention: dict[int, float] = {}  # by key of a stage: the share of its work that does not go side by side
        self._record = record
        self._now = 0.0
        self._watch: Watch | None = None
        self._watched: list[tuple[int, bool]] = []
        self._due = 0.0
        self._lateness = 0.0  # that is usual, in seconds
        self._trial: _Trial | None = None
        self._experience: dict[int, _Experience] = {}
        self._window_seconds = WINDOW_SECONDS
        self._rates: deque[float] = deque(maxlen=5)  # of the windows in which nothing was changed
        self._usual: dict[tuple[int, str], float] = {}  # what work was like when it was last looked at
        self._surprises = 0  # windows in a row in which it was not
        self._quiet = 0  # windows in a row that found nothing to do
        self._has_changed = False  # a knob, since the last time that all was quiet

    def look(self, now: float, tops: Sequence[Part]) -> float:
        """Look at the counters, and perhaps set a knob; returns when to look again.

        Args:
            now: seconds, on the clock of the counters.
            tops: the stages from which the consumer's thread takes, as they are now.
        """
        self._due = self._look(now, tops)
        return self._due

    def _look(self, now: float, tops: Sequence[Part]) -> float:
        self._now = now
        if self._watch is None or not self._is_same(tops):
            return self._begin(now, tops)
        window = self._watch.window(now)
        if self._was_a_pause(now, window):
            return self._begin(now, tops)
        trial = self._trial
        if trial is not None and not trial.is_clear:
            if self._has_passed(window, trial):
                trial.is_clear = True
                return self._begin(now, tops)
        elif self._is_enough(window, trial):
            if trial is None:
                self._propose(now, window)
                return self._begin(now, tops)
            if self._judge(now, window, trial):
                return self._begin(now, tops)
        return now + self._window_seconds / 4

    def _was_a_pause(self, now: float, window: Window) -> bool:
        """Whether nobody came by for most of the window, which is unusual: it says nothing about steady work.

        A consumer that always takes its time makes this True once, and then it is usual.
        """
        lateness = now - self._due
        is_pause = lateness > _PAUSE * self._lateness and lateness > max(window.seconds / 2, WINDOW_SECONDS)
        self._lateness = max(lateness, 0.9 * self._lateness)
        return is_pause

    def _is_same(self, tops: Sequence[Part]) -> bool:
        assert self._watch is not None  # asked before
        return self._watched == _identities(tops)

    def _begin(self, now: float, tops: Sequence[Part]) -> float:
        if self._trial is not None and not self._is_same(tops):
            self._give_up(now, self._trial)
        self._watched = _identities(tops)
        self._watch = Watch(tops, now) if tops else None
        for top in tops:
            for part in top:
                part.stage.counters.reset_least_ready()
        return now + self._window_seconds

    def _give_up(self, now: float, trial: _Trial) -> None:
        """What has been tried cannot be compared any more."""
        self._take_back(now, trial, "other things have changed meanwhile")
        self._trial = None

    def _take_back(self, now: float, trial: _Trial, reason: str) -> None:
        for setting, before in zip(trial.change.settings, trial.before, strict=True):
            self._record(now, setting.part, "take back", setting.value, before, reason)
            setting.knob.value = before

    # Whether a window says enough

    def _has_passed(self, window: Window, trial: _Trial) -> bool:
        if window.seconds > max(_LONG_SECONDS, trial.seconds):
            return True
        if window.seconds < WINDOW_SECONDS / 2:
            return False
        return all(
            self._has_passed_through(window.activities[setting.part.key], max(setting.value, before))
            for setting, before in zip(trial.change.settings, trial.before, strict=True)
        )

    @staticmethod
    def _has_passed_through(activity: Activity, value: int) -> bool:
        under_way = value if activity.part.stage.relays else 2 * value
        return activity.elements >= under_way and activity.waits >= 1

    def _is_enough(self, window: Window, trial: _Trial | None) -> bool:
        shortest = self._window_seconds if trial is None else max(WINDOW_SECONDS, trial.seconds / 2)
        if window.seconds < max(shortest, _ROUNDS * window.longest_task):
            return False
        activities = list(window) if trial is None else [window.activities[trial.gauge]]
        is_clear = window.uncertainty <= _CERTAIN and not self._is_over_budget(window)
        if trial is None and not is_clear and window.seconds < _LONG_SECONDS:
            return False
        waits = max(activity.waits for activity in activities)
        if waits >= _WAITS:
            return True
        taken = max(activity.taken for activity in activities)
        if window.seconds >= _LONG_SECONDS and (waits >= _WAITS_MIN or (not waits and taken)):
            return True
        if window.seconds >= 2 * _LONG_SECONDS and taken >= 2 * _WAITS:
            return True
        return window.seconds >= _OVERLONG_SECONDS and taken > 0

    # What to change

    def _is_over_budget(self, window: Window) -> bool:
        return window.cores_used > _OVER_BUDGET * self.cores

    def _hold_back(self, now: float, window: Window) -> bool:
        """The stage that computes most gets so few workers that the cores suffice; False where each has but one."""
        able = [a for a in window if a.cpu_seconds and a.part.stage.knob.value > self._least(a.part)]
        if not able:
            return False
        largest = max(able, key=lambda activity: activity.cpu_seconds)
        part, knob, used = largest.part, largest.part.stage.knob, largest.cpu_seconds / window.seconds
        share = max(0.0, 1 - (window.cores_used - self.cores) / used)
        value = max(self._least(part), min(knob.value - 1, math.ceil(share * largest.busy)))
        reason = f"{window.cores_used:.1f} cores were busy, of {self.cores:g} that may be"
        self._record(now, part, "hold back", knob.value, value, reason)
        knob.value = value
        self._has_changed = True
        self._usual = {}
        self._rates.clear()
        self._window_seconds = WINDOW_SECONDS
        return True

    @staticmethod
    def _least(part: Part) -> int:
        """How few workers it may be given: of those that have none, the value that it has."""
        stage = part.stage
        return stage.knob.value if stage.relays or stage.inline else max(1, stage.knob.minimum)

    def _propose(self, now: float, window: Window) -> None:
        self._notice_other_work(now, window)
        self._rates.append(window.activities[window.tops[0].key].rate)
        if self._is_over_budget(window) and self._hold_back(now, window):
            return
        change = self._best(now, window)
        if change is None:
            self._rest(now, window)
            return
        self._quiet = 0
        self._window_seconds = WINDOW_SECONDS
        self._try(now, window, change)

    def _rest(self, now: float, window: Window) -> None:
        self._window_seconds = min(WINDOW_SECONDS_MAX, 2 * self._window_seconds)
        self._quiet += 1
        if self._quiet == _SETTLED_WINDOWS and self._has_changed:
            self._has_changed = False
            reason = f"nothing more is worth trying; the consumer waits {window.waited:.0%} of the time"
            self._record(now, window.tops[0], "settle", None, None, reason)

    def _best(self, now: float, window: Window) -> Change | None:
        if window.waited >= WAITED:
            adding = [change for change in self._additions(window) if self._may_try(now, change)]
            if adding:
                return max(adding, key=lambda change: change.gain)
        is_rough = max(window.uncertainty, window.coarseness) > _LOSS_KEPT / 2
        if is_rough and window.seconds < WINDOW_SECONDS_MAX:
            return None  # what is compared with must be known well, where little may be lost; there is no hurry
        return next((change for change in self._savings(window) if self._may_try(now, change)), None)

    def _may_try(self, now: float, change: Change) -> bool:
        return all(self._may_set(now, setting, adds=change.adds) for setting in change.settings)

    def _may_set(self, now: float, setting: Setting, *, adds: bool) -> bool:
        experience = self._experience.get(setting.part.key)
        if experience is None or now >= experience.retry_at:
            return True
        return setting.value * _APART <= experience.ceiling if adds else setting.value > experience.floor

    def _additions(self, window: Window) -> Iterator[Change]:
        root = window.sections(self.contention, self.cores)
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
    def _may_grow(activity: Activity) -> bool:
        stage = activity.part.stage
        return stage.knob.value < stage.knob.maximum and not activity.refusals and not stage.inline

    def _more_calls(self, activities: list[Activity], root: Section) -> Change | None:
        """More workers: as many as a higher rate needs on average, or more against variation, if that gains more."""
        changes = (self._more_on_average(activities, root), self._more_against_variation(activities, root))
        return max((change for change in changes if change is not None), key=lambda change: change.gain, default=None)

    def _more_on_average(self, activities: list[Activity], root: Section) -> Change | None:
        """As many workers as a higher rate needs, of all stages at once: more in one alone may gain nothing."""
        now_bound = self._bound(root)
        if not now_bound:
            return None  # all that was done took no time: no task has ended, and the consumer has only waited
        changes = [self._workers_for(activities, root, now_bound / factor) for factor in _FACTORS]
        bounds = [self._bound(_with_workers(root, settings)) for settings in changes]
        least = min(bounds)
        if now_bound < (1 + _GAIN_PREDICTED) * least:
            return None
        settings = next(one for one, bound in zip(changes, bounds, strict=True) if _ENOUGH * bound <= least)
        return self._promising(root, settings)

    def _more_against_variation(self, activities: list[Activity], root: Section) -> Change | None:
        """Elements wait for one that takes long: more workers than are busy on average even that out."""
        settings = []
        for activity in activities:
            knob = activity.part.stage.knob
            value = min(2 * knob.value, self._most(activity))
            if activity.waited_for >= WAITED and activity.variation > _VARIES and value > knob.value:
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
        """The change, if the model says that it gains enough."""
        seconds = self._seconds(_with_workers(root, settings))
        gain = self._seconds(root) / seconds - 1 if seconds else 0.0
        if gain < _GAIN_PREDICTED:
            return None
        predicted = f"; {1 + gain:.2f} times the throughput is predicted"
        return Change(tuple(replace(one, reason=one.reason + predicted) for one in settings), gain, adds=True)

    def _workers_for(self, activities: list[Activity], root: Section, period: float) -> list[Setting]:
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

    def _most(self, activity: Activity) -> int:
        """As many workers as a stage may have, and as keep all cores busy with what they compute."""
        useful = math.ceil(self.cores / activity.computing) if activity.computing > 0 else sys.maxsize
        return min(activity.part.stage.knob.maximum, useful, self._below_ceiling(activity.part))

    def _below_ceiling(self, part: Part) -> int:
        experience = self._experience.get(part.key)
        return sys.maxsize if experience is None or self._now >= experience.retry_at else experience.highest

    def _bound(self, root: Section) -> float:
        """What a look tells: the seconds per element below which the pipeline never gets."""
        return max(lower_bounds(root, self.cores).values())

    def _seconds(self, root: Section) -> float:
        return predict(root, self.cores).seconds

    def _more_room(self, activity: Activity) -> Change | None:
        """A buffer that was both empty and full is too small for how much the times vary.

        How much those of the consumer vary is not known; it is taken to be as much as those of the elements.
        """
        knob = activity.part.stage.knob
        if activity.waited_for < WAITED or activity.rest_seconds < _RESTED * activity.seconds:
            return None
        reason = (
            f"it was empty for {activity.waited_for:.0%} of the time and full for "
            f"{min(1.0, activity.rest_seconds / activity.seconds):.0%}: times vary more than it evens out"
        )
        gain = min(activity.waited_for, activity.rest_seconds / activity.seconds)
        makes = activity.work_seconds / max(1, activity.elements)
        takes = (activity.seconds - activity.wait_seconds) / max(1, activity.taken)
        needed = buffer_needed(takes, makes, activity.variation, activity.variation, _GAIN_PREDICTED / 2)
        value = min(knob.maximum, max(2 * knob.value, min(needed, _FACTOR_MAX * knob.value)))
        return Change((Setting(activity.part, value, reason),), gain, adds=True)

    def _savings(self, window: Window) -> Iterator[Change]:
        for activity in window:
            knob = activity.part.stage.knob
            if knob.value <= knob.minimum or activity.part.stage.inline or not activity.elements:
                continue
            setting = self._less_room(activity) if activity.part.stage.relays else self._fewer_calls(activity)
            if setting is not None and setting.value < knob.value:
                yield Change((setting,), 0.0, adds=False)

    def _fewer_calls(self, activity: Activity) -> Setting | None:
        part, knob = activity.part, activity.part.stage.knob
        if knob.value < _WORTH_SAVING:
            return None  # a thread that rests costs next to nothing
        reading = min(1.0, activity.input_seconds / activity.seconds)  # by one worker at a time
        needed = max(1, math.ceil(_SPARE * (activity.busy + reading)))
        if needed <= knob.value / 2:
            return Setting(part, needed, f"{activity.busy:.1f} of its {knob.value} workers are busy")
        if self.contention.get(part.key, 0.0) >= _HALF:
            return Setting(part, math.ceil(knob.value / 2), "more calls at once have gained nothing")
        return None

    @staticmethod
    def _less_room(activity: Activity) -> Setting | None:
        part, knob = activity.part, activity.part.stage.knob
        unused = part.stage.counters.least_ready
        if activity.seconds < _LONG_SECONDS or activity.taken < 16 * knob.value or unused <= knob.value / 2:
            return None
        return Setting(part, max(2, knob.value - unused + 1), f"never fewer than {unused} elements were ready")

    # Trying it

    def _try(self, now: float, window: Window, change: Change) -> None:
        first = window.activities[change.settings[0].part.key]
        is_gauge = change.adds and len(change.settings) == 1 and first.waited_for > _HALF
        gauge = first.part.key if is_gauge else window.tops[0].key
        before = tuple(setting.knob.value for setting in change.settings)
        rate, seconds = window.activities[gauge].rate, min(window.seconds, WINDOW_SECONDS_MAX)
        self._trial = _Trial(change, before, gauge, rate, window.waited, window.uncertainty, seconds)
        for setting in change.settings:
            self._record(now, setting.part, "try", setting.knob.value, setting.value, setting.reason)
            setting.knob.value = setting.value

    def _judge(self, now: float, window: Window, trial: _Trial) -> bool:
        """Keep what is tried, or take it back; False where it has to be seen for longer."""
        change = trial.change
        rate = window.activities[trial.gauge].rate
        gain = rate / trial.rate - 1 if trial.rate > 0 else math.inf
        coarseness = 0.0 if change.adds else window.coarseness
        error = math.hypot(trial.uncertainty, window.uncertainty, coarseness) * (1 + gain)
        worth = max(_GAIN_KEPT, self._noise()) if change.adds else -_LOSS_KEPT
        if window.seconds < _TRIAL_SECONDS and abs(gain - worth) < _CLEAR * error:
            return False
        worth = max(worth, error) if change.adds else max(worth, error - 2 * _LOSS_KEPT)
        self._trial = None
        measured = f"{1 + gain:.2f} times the throughput was measured"
        if gain < worth:
            self._fail(now, trial, measured, gain, error)
        elif change.adds and self._is_over_budget(window):
            budget = f", but {window.cores_used:.1f} cores were busy, of {self.cores:g} that may be"
            self._fail(now, trial, measured + budget, gain, error)
        elif not change.adds and window.waited > trial.waited + _LOSS_KEPT:
            waited = f"; the consumer waits {window.waited:.0%} of the time instead of {trial.waited:.0%}"
            self._fail(now, trial, measured + waited, gain, error)
        else:
            self._keep(now, trial, measured)
        return True

    def _fail(self, now: float, trial: _Trial, measured: str, gain: float, error: float) -> None:
        self._take_back(now, trial, measured)
        for setting in trial.change.settings:
            self._learn_from_failure(now, setting, trial.change, gain + error)

    def _keep(self, now: float, trial: _Trial, measured: str) -> None:
        self._has_changed = True
        self._usual = {}  # how long work takes depends on what else goes on
        self._rates.clear()
        for setting, before in zip(trial.change.settings, trial.before, strict=True):
            if trial.change.adds:
                self._experience.pop(setting.part.key, None)
                self.contention.pop(setting.part.key, None)
            self._record(now, setting.part, "keep", before, setting.value, measured)

    def _learn_from_failure(self, now: float, setting: Setting, change: Change, gain: float) -> None:
        experience = self._experience.setdefault(setting.part.key, _Experience())
        experience.retry_at = now + experience.patience
        experience.patience = min(_PATIENCE_SECONDS_MAX, 2 * experience.patience)
        if not change.adds:
            experience.floor = setting.value
            self.contention.pop(setting.part.key, None)  # calls do go side by side: fewer were worse
            experience.ceiling = math.inf
            return
        experience.ceiling = setting.value
        if not setting.part.stage.relays and len(change.settings) == 1 and change.gain >= _TELLING:
            self.contention[setting.part.key] = min(1.0, max(0.0, 1 - max(0.0, gain) / change.gain))

    def _noise(self) -> float:
        """By how much windows differ in which nothing was changed, relative to their mean."""
        if len(self._rates) < _SETTLED_WINDOWS:
            return 0.0
        mean = sum(self._rates) / len(self._rates)
        if not mean:
            return 0.0
        return math.sqrt(sum((rate - mean) ** 2 for rate in self._rates) / len(self._rates)) / mean

    # Other work

    def _notice_other_work(self, now: float, window: Window) -> None:
        """Forget what was learned about work that is not like that any more."""
        seen = _character(window)
        common = seen.keys() & self._usual.keys()
        differs = any(not 1 / _CHANGED < seen[key] / self._usual[key] < _CHANGED for key in common)
        self._surprises = self._surprises + 1 if differs else 0
        if not differs or not self._usual or self._surprises >= 2:
            self._usual = seen
        if self._surprises >= 2:
            self._surprises = 0
            self._forget(now, window)

    def _forget(self, now: float, window: Window) -> None:
        if self._experience:
            self._record(now, window.tops[0], "look again", None, None, "the work, or the consumer, is not as it was")
        self._experience.clear()
        self.contention.clear()
        self._rates.clear()
        self._window_seconds = WINDOW_SECONDS


_HALF = 0.5
_KNOWN = 0.1  # the standard error of a time that may be compared with another
_SMALL = 0.2  # of the whole


def _identities(tops: Sequence[Part]) -> list[tuple[int, bool]]:
    """The stages, and which of them do work in the background."""
    return [(part.key, part.stage.inline) for top in tops for part in top]


def _character(window: Window) -> dict[tuple[int, str], float]:
    """What tells one kind of work from another: what an element takes, and how long the consumer is busy with one.

    Times of which only a small share is measured are bounded below, or a little more of them would seem much.
    """
    found = {}
    for activity in window:
        if activity.elements and activity.work_seconds > 0 and activity.uncertainty <= _KNOWN:
            each = activity.work_seconds / activity.elements
            found[activity.part.key, "wall"] = each
            found[activity.part.key, "cpu"] = max(activity.cpu_seconds / activity.elements, _SMALL * each)
    first = window.activities[window.tops[0].key]
    if first.rate > 0 and window.uncertainty <= _KNOWN:
        found[0, "consumer"] = max(1 - window.waited, _SMALL) / first.rate
    return found


def _with_workers(root: Section, settings: Sequence[Setting]) -> Section:
    """The pipeline in which stages have so many workers."""
    return _replaced(root, {section_name(setting.part): setting.value for setting in settings})


def _replaced(root: Section, workers: dict[str, int]) -> Section:
    inputs = tuple(_replaced(section, workers) for section in root.inputs)
    value = workers.get(root.name, root.workers)
    return replace(root, workers=value, buffer=root.buffer + value - root.workers, inputs=inputs)
