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
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from dataset.autotune.model import Section, predict
from dataset.autotune.windows import Activity, Part, Watch, Window, section_name

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
_GAIN_PREDICTED = 0.05  # below, a change is not tried
_GAIN_KEPT = 0.05  # below, it is taken back
_LOSS_KEPT = 0.03  # for which workers may be given back
_FACTORS = (1.5, 2.0, 3.0, 4.0)  # by which a number of calls may grow at once
_ENOUGH = 0.95  # of the gain of the largest step: a smaller one that gets as much is taken
_PATIENCE_SECONDS = 4.0  # until a change that was taken back may be tried again, doubled each time
_PATIENCE_SECONDS_MAX = 300.0
_CHANGED = 1.4  # by what factor work has to differ in two windows in a row to count as other work
_BUSY_MIN = 0.5  # of its workers: a stage below does not hold up anything
_SPARE = 1.25  # as many workers as this above those that were busy are kept
_SETTLED_WINDOWS = 3


@dataclass(frozen=True, eq=False)
class Change:
    """A knob that is to be set.

    Attributes:
        part: whose.
        value: to what.
        gain: what the model predicts: 0.5 for one and a half times the throughput.
        reason: why.
        adds: whether it takes more threads or memory, and so has to pay.
    """

    part: Part
    value: int
    gain: float
    reason: str
    adds: bool


@dataclass(eq=False)
class _Trial:
    change: Change
    before: int
    gauge: int  # the key of the stage whose rate is compared
    rate: float  # of that before
    waited: float
    seconds: float  # of the window before
    is_clear: bool = False  # what was under way before the change has passed


@dataclass(eq=False)
class _Experience:
    """With one knob."""

    ceiling: float = math.inf  # a value that was no better
    floor: float = 0.0  # one that was worse
    patience: float = _PATIENCE_SECONDS
    retry_at: float = 0.0


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
        self._watch: Watch | None = None
        self._watched: list[tuple[int, bool]] = []
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
        if self._watch is None or not self._is_same(tops):
            return self._begin(now, tops)
        window = self._watch.window(now)
        trial = self._trial
        if trial is not None and not trial.is_clear:
            if self._has_passed(window, trial):
                trial.is_clear = True
                return self._begin(now, tops)
        elif self._is_enough(window, trial):
            if trial is None:
                self._propose(now, window)
            else:
                self._judge(now, window, trial)
            return self._begin(now, tops)
        return now + self._window_seconds / 4

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
        knob = trial.change.part.stage.knob
        self._record(
            now, trial.change.part, "take back", knob.value, trial.before, "other things have changed meanwhile"
        )
        knob.value = trial.before
        self._trial = None

    # Whether a window says enough

    def _has_passed(self, window: Window, trial: _Trial) -> bool:
        activity = window.activities[trial.change.part.key]
        passed = 2 * max(trial.before, trial.change.value) if not activity.part.stage.relays else trial.change.value
        return (
            activity.elements >= passed and activity.waits >= 1 and window.seconds >= WINDOW_SECONDS / 2
        ) or window.seconds > max(_LONG_SECONDS, trial.seconds)

    def _is_enough(self, window: Window, trial: _Trial | None) -> bool:
        shortest = self._window_seconds if trial is None else max(WINDOW_SECONDS, trial.seconds / 2)
        if window.seconds < max(shortest, _ROUNDS * window.longest_task):
            return False
        activities = list(window) if trial is None else [window.activities[trial.gauge]]
        waits = max(activity.waits for activity in activities)
        if waits >= _WAITS:
            return True
        taken = max(activity.taken for activity in activities)
        if window.seconds >= _LONG_SECONDS and (waits >= _WAITS_MIN or (not waits and taken)):
            return True
        return window.seconds >= _OVERLONG_SECONDS and taken > 0

    # What to change

    def _propose(self, now: float, window: Window) -> None:
        self._notice_other_work(now, window)
        self._rates.append(window.activities[window.tops[0].key].rate)
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
        return next((change for change in self._savings(window) if self._may_try(now, change)), None)

    def _may_try(self, now: float, change: Change) -> bool:
        experience = self._experience.get(change.part.key)
        if experience is None or now >= experience.retry_at:
            return True
        if change.adds:
            return change.value * 1.2 <= experience.ceiling
        return change.value > experience.floor

    def _additions(self, window: Window) -> Iterator[Change]:
        root = window.sections(self.contention)
        if root is None:
            return
        for activity in window:
            knob = activity.part.stage.knob
            if knob.value >= knob.maximum or activity.refusals or activity.part.stage.inline:
                continue
            change = self._more_room(activity) if activity.part.stage.relays else self._more_calls(activity, root)
            if change is not None:
                yield change

    def _more_calls(self, activity: Activity, root: Section) -> Change | None:
        part, knob = activity.part, activity.part.stage.knob
        if activity.busy < _BUSY_MIN * knob.value:
            return None
        ceiling = self._ceiling(part)
        values = sorted({min(knob.maximum, max(knob.value + 1, round(knob.value * f))) for f in _FACTORS})
        values = [value for value in values if value * 1.2 <= ceiling] or values[:1]
        now_seconds = predict(root, self.cores).seconds
        gains = [now_seconds / predict(_with_workers(root, part, value), self.cores).seconds - 1 for value in values]
        best = max(gains)
        if best < _GAIN_PREDICTED:
            return None
        value, gain = next(pair for pair in zip(values, gains, strict=True) if pair[1] >= _ENOUGH * best)
        reason = (
            f"{activity.busy:.1f} of its {knob.value} workers are busy and compute {activity.computing:.0%} of that "
            f"time; {1 + gain:.2f} times the throughput is predicted"
        )
        return Change(part, value, gain, reason, adds=True)

    def _ceiling(self, part: Part) -> float:
        experience = self._experience.get(part.key)
        return math.inf if experience is None else experience.ceiling

    def _more_room(self, activity: Activity) -> Change | None:
        """A buffer that was both empty and full is too small for how much the times vary."""
        knob = activity.part.stage.knob
        if activity.waited_for < WAITED or activity.rest_seconds < WAITED * activity.seconds:
            return None
        reason = (
            f"it was empty for {activity.waited_for:.0%} of the time and full for "
            f"{min(1.0, activity.rest_seconds / activity.seconds):.0%}: times vary more than it evens out"
        )
        gain = min(activity.waited_for, activity.rest_seconds / activity.seconds)
        return Change(activity.part, min(knob.maximum, 2 * knob.value), gain, reason, adds=True)

    def _savings(self, window: Window) -> Iterator[Change]:
        for activity in window:
            knob = activity.part.stage.knob
            if knob.value <= knob.minimum or activity.part.stage.inline:
                continue
            change = self._less_room(activity) if activity.part.stage.relays else self._fewer_calls(activity)
            if change is not None:
                yield change

    def _fewer_calls(self, activity: Activity) -> Change | None:
        part, knob = activity.part, activity.part.stage.knob
        if not activity.elements:
            return None
        needed = max(1, math.ceil(_SPARE * activity.busy))
        if needed <= knob.value / _SPARE and needed < knob.value:
            return Change(part, needed, 0.0, f"{activity.busy:.1f} of its {knob.value} workers are busy", adds=False)
        if self.contention.get(part.key, 0.0) >= _HALF and knob.value > 1:
            return Change(part, math.ceil(knob.value / 2), 0.0, "more calls at once have gained nothing", adds=False)
        return None

    def _less_room(self, activity: Activity) -> Change | None:
        part, knob = activity.part, activity.part.stage.knob
        unused = part.stage.counters.least_ready
        if activity.seconds < _LONG_SECONDS or unused < 2 or activity.taken < 4 * knob.value or knob.value <= 2:
            return None
        value = max(2, knob.value - unused + 1)
        return Change(part, value, 0.0, f"never fewer than {unused} elements were ready", adds=False)

    # Trying it

    def _try(self, now: float, window: Window, change: Change) -> None:
        knob = change.part.stage.knob
        mine = window.activities[change.part.key]
        gauge = mine.part.key if mine.waits else window.tops[0].key
        rate = window.activities[gauge].rate
        self._trial = _Trial(change, knob.value, gauge, rate, window.waited, window.seconds)
        self._record(now, change.part, "try", knob.value, change.value, change.reason)
        knob.value = change.value

    def _judge(self, now: float, window: Window, trial: _Trial) -> None:
        change, knob = trial.change, trial.change.part.stage.knob
        self._trial = None
        rate = window.activities[trial.gauge].rate
        gain = rate / trial.rate - 1 if trial.rate > 0 else math.inf
        worth = max(_GAIN_KEPT, self._noise()) if change.adds else -_LOSS_KEPT
        is_kept = gain >= worth and (change.adds or window.waited <= trial.waited + _LOSS_KEPT)
        measured = f"{1 + gain:.2f} times the throughput was measured"
        if is_kept:
            self._has_changed = True
            self._usual = {}  # how long work takes depends on what else goes on
            if change.adds:
                self._experience.pop(change.part.key, None)
                self.contention.pop(change.part.key, None)
            self._record(now, change.part, "keep", trial.before, change.value, measured)
        else:
            knob.value = trial.before
            self._learn_from_failure(now, trial, gain)
            self._record(now, change.part, "take back", change.value, trial.before, measured)

    def _learn_from_failure(self, now: float, trial: _Trial, gain: float) -> None:
        change = trial.change
        experience = self._experience.setdefault(change.part.key, _Experience())
        experience.retry_at = now + experience.patience
        experience.patience = min(_PATIENCE_SECONDS_MAX, 2 * experience.patience)
        if not change.adds:
            experience.floor = change.value
            return
        experience.ceiling = change.value
        if not change.part.stage.relays and change.gain > 0:
            self.contention[change.part.key] = min(1.0, max(0.0, 1 - max(0.0, gain) / change.gain))

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


def _identities(tops: Sequence[Part]) -> list[tuple[int, bool]]:
    """The stages, and which of them do work in the background."""
    return [(part.key, part.stage.inline) for top in tops for part in top]


def _character(window: Window) -> dict[tuple[int, str], float]:
    """What tells one kind of work from another: CPU time of an element, and how long the consumer is busy with one."""
    found = {}
    for activity in window:
        if activity.elements and activity.cpu_seconds > 0:
            found[activity.part.key, "cpu"] = activity.cpu_seconds / activity.elements
            found[activity.part.key, "wall"] = activity.work_seconds / activity.elements
    first = window.activities[window.tops[0].key]
    if first.rate > 0 and window.waited < 1 - WAITED:
        found[0, "consumer"] = (1 - window.waited) / first.rate
    return found


def _with_workers(root: Section, part: Part, workers: int) -> Section:
    """The pipeline in which a stage has so many workers."""
    inputs = tuple(_with_workers(section, part, workers) for section in root.inputs)
    if root.name != section_name(part):
        return replace(root, inputs=inputs)
    return replace(root, workers=workers, buffer=root.buffer + workers - root.workers, inputs=inputs)
