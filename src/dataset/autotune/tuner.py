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
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dataset.autotune.changes import Change, Setting, TrialHistory
from dataset.autotune.proposals import Proposals
from dataset.autotune.windows import CountWindow, StageDelta, StageNode, Watch

WINDOW_SECONDS = 0.02
"""The shortest window. One that finds nothing to do is followed by one twice as long, up to the longest."""

WINDOW_SECONDS_MAX = 1.0

_WAITS = 8  # in a window, from which its rate is known well
_WAITS_MIN = 3  # in one that has lasted long
_ROUNDS = 5  # of the longest task: workers that began together end together for a while
_LONG_SECONDS = 0.5
_OVERLONG_SECONDS = 4.0
_CERTAIN = 0.05  # the standard error of a rate from which a change is tried; more is not waited for very long
_CLEAR = 2.0  # standard errors: a trial whose outcome is so far off what is asked for is decided at once
_TRIAL_SECONDS = 1.0  # after which one is decided as well as may be
_PAUSE = 4.0  # times later than usual somebody comes by: the consumer did something else
_GAIN_KEPT = 0.05  # below, it is taken back
_LOSS_KEPT = 0.03  # for which workers may be given back
_CHANGED = 1.7  # by what factor work has to differ in two windows in a row to count as other work
_SETTLED_WINDOWS = 3


@dataclass(eq=False)
class _Trial:
    change: Change
    before: tuple[int, ...]  # the values of the knobs
    gauge: int  # the key of the stage whose rate is compared
    rate: float  # of that before, of elements that were taken, or made
    by_made: bool  # which of the two: those that were made, where they are taken many at once
    nothing_had_come: bool  # to the consumer, in the window before
    waited: float
    uncertainty: float  # of that rate
    seconds: float  # of the window before, within bounds
    is_clear: bool = False  # what was under way before the change has passed


Record = Callable[[float, StageNode, str, int | None, int | None, str], None]
"""Is told what is decided: when, about which stage, the action, the values before and after, why."""


class Tuner:
    """Sets the knobs of one pipeline.

    Args:
        cores: that its computing may keep busy.
        record: is told of each decision.
    """

    def __init__(self, cores: float, record: Record) -> None:
        self._experience = TrialHistory()
        self._proposals = Proposals(cores, self._experience)
        self._record = record
        self._now = 0.0
        self._watch: Watch | None = None
        self._watched: list[tuple[int, bool]] = []
        self._due = 0.0
        self._lateness = 0.0  # that is usual, in seconds
        self._trial: _Trial | None = None
        self._window_seconds = WINDOW_SECONDS
        self._rates: deque[float] = deque(maxlen=5)  # of the windows in which nothing was changed
        self._usual: dict[tuple[int, str], float] = {}  # what work was like when it was last looked at
        self._surprises = 0  # windows in a row in which it was not
        self._quiet = 0  # windows in a row that found nothing to do
        self._has_changed = False  # a knob, since the last time that all was quiet

    @property
    def contention(self) -> dict[int, float]:
        """By key of a stage: the share of its work that does not go side by side, as far as is known."""
        return self._experience.contention

    def look(self, now: float, tops: Sequence[StageNode]) -> float:
        """Look at the counters, and perhaps set a knob; returns when to look again.

        Args:
            now: seconds, on the clock of the counters.
            tops: the stages from which the consumer's thread takes, as they are now.
        """
        self._due = self._look(now, tops)
        return self._due

    def _look(self, now: float, tops: Sequence[StageNode]) -> float:
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

    def _was_a_pause(self, now: float, window: CountWindow) -> bool:
        """Return whether nobody came by for most of the window, which is unusual: it says nothing about steady work.

        A consumer that always takes its time makes this True once, and then it is usual.
        """
        lateness = now - self._due
        is_pause = lateness > _PAUSE * self._lateness and lateness > max(window.seconds / 2, WINDOW_SECONDS)
        self._lateness = max(lateness, 0.9 * self._lateness)
        return is_pause

    def _is_same(self, tops: Sequence[StageNode]) -> bool:
        assert self._watch is not None  # asked before
        return self._watched == _identities(tops)

    def _begin(self, now: float, tops: Sequence[StageNode]) -> float:
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

    def _has_passed(self, window: CountWindow, trial: _Trial) -> bool:
        if window.seconds > max(_LONG_SECONDS, trial.seconds):
            return True
        if window.seconds < WINDOW_SECONDS / 2:
            return False
        return all(
            self._has_passed_through(window.activities[setting.part.key], max(setting.value, before))
            for setting, before in zip(trial.change.settings, trial.before, strict=True)
        )

    @staticmethod
    def _has_passed_through(activity: StageDelta, value: int) -> bool:
        under_way = value if activity.part.stage.relays else 2 * value
        return activity.elements >= under_way and activity.waits >= 1

    def _is_enough(self, window: CountWindow, trial: _Trial | None) -> bool:
        shortest = self._window_seconds if trial is None else max(WINDOW_SECONDS, trial.seconds / 2)
        if window.seconds < max(shortest, _ROUNDS * window.longest_task):
            return False
        activities = list(window) if trial is None else [window.activities[trial.gauge]]
        is_clear = window.uncertainty <= _CERTAIN and not self._proposals.is_over_budget(window)
        if trial is None and not is_clear and window.seconds < _LONG_SECONDS:
            return False
        waits = max(activity.waits for activity in activities)
        if waits >= _WAITS:
            return True
        taken = max(activity.taken for activity in activities)
        if window.seconds >= _LONG_SECONDS and (waits >= _WAITS_MIN or (not waits and taken)):
            return True
        if window.seconds >= _LONG_SECONDS and any(activity.fills for activity in activities):
            return True
        if window.seconds >= 2 * _LONG_SECONDS and taken >= 2 * _WAITS:
            return True
        return window.seconds >= _OVERLONG_SECONDS and taken > 0

    # What to change

    def _propose(self, now: float, window: CountWindow) -> None:
        self._notice_other_work(now, window)
        rate = window.activities[window.tops[0].key].rate
        if rate > 0:
            self._rates.append(rate)
        less = self._proposals.holding_back(window)
        if less is not None:
            self._hold_back(now, less)
            return
        change = self._best(now, window)
        if change is None:
            self._rest(now, window)
            return
        self._quiet = 0
        self._window_seconds = WINDOW_SECONDS
        self._try(now, window, change)

    def _rest(self, now: float, window: CountWindow) -> None:
        self._window_seconds = min(WINDOW_SECONDS_MAX, 2 * self._window_seconds)
        self._quiet += 1
        if self._quiet == _SETTLED_WINDOWS and self._has_changed:
            self._has_changed = False
            reason = f"nothing more is worth trying; the consumer waits {window.waited:.0%} of the time"
            self._record(now, window.tops[0], "settle", None, None, reason)

    def _best(self, now: float, window: CountWindow) -> Change | None:
        adding = self._proposals.best_addition(window, now)
        if adding is not None:
            return adding
        is_rough = max(window.uncertainty, window.coarseness) > _LOSS_KEPT / 2
        if is_rough and window.seconds < WINDOW_SECONDS_MAX:
            return None  # what is compared with must be known well, where little may be lost; there is no hurry
        return self._proposals.first_saving(window, now)

    def _hold_back(self, now: float, setting: Setting) -> None:
        """Not tried: the budget of cores is one to be kept."""
        self._record(now, setting.part, "hold back", setting.knob.value, setting.value, setting.reason)
        setting.knob.value = setting.value
        self._has_changed = True
        self._usual = {}
        self._rates.clear()
        self._window_seconds = WINDOW_SECONDS

    # Trying it

    def _try(self, now: float, window: CountWindow, change: Change) -> None:
        first = window.activities[change.settings[0].part.key]
        is_gauge = change.adds and len(change.settings) == 1 and first.waited_for > _HALF
        gauge = first.part.key if is_gauge else window.tops[0].key
        before = tuple(setting.knob.value for setting in change.settings)
        by_made = is_gauge and first.waits < _WAITS_MIN
        rate = first.made_rate if by_made else window.activities[gauge].rate
        seconds = min(window.seconds, WINDOW_SECONDS_MAX)
        nothing = not any(window.activities[top.key].taken for top in window.tops)
        self._trial = _Trial(change, before, gauge, rate, by_made, nothing, window.waited, window.uncertainty, seconds)
        for setting in change.settings:
            self._record(now, setting.part, "try", setting.knob.value, setting.value, setting.reason)
            setting.knob.value = setting.value

    def _judge(self, now: float, window: CountWindow, trial: _Trial) -> bool:
        """Keep what is tried, or take it back; False where it has to be seen for longer."""
        change = trial.change
        gauge = window.activities[trial.gauge]
        begun = trial.nothing_had_come and any(window.activities[top.key].taken for top in window.tops)
        if begun or (trial.by_made and gauge.waits >= _WAITS_MIN):  # a buffer above is full by now
            self._give_up(now, trial)
            return True
        rate = gauge.made_rate if trial.by_made else gauge.rate
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
        elif change.adds and self._proposals.is_over_budget(window):
            budget = f", but {window.cores_used:.1f} cores were busy, of {self._proposals.cores:g} that may be"
            self._fail(now, trial, measured + budget, gain, error)
        elif not change.adds and window.waited > trial.waited + _LOSS_KEPT:
            waited = f"; the consumer waits {window.waited:.0%} of the time instead of {trial.waited:.0%}"
            self._fail(now, trial, measured + waited, gain, error)
        else:
            self._keep(now, trial, measured)
        return True

    def _fail(self, now: float, trial: _Trial, measured: str, gain: float, error: float) -> None:
        self._take_back(now, trial, measured)
        self._experience.failed(trial.change, gain + error, now)

    def _keep(self, now: float, trial: _Trial, measured: str) -> None:
        self._has_changed = True
        self._usual = {}  # how long work takes depends on what else goes on
        self._rates.clear()
        self._experience.kept(trial.change)
        for setting, before in zip(trial.change.settings, trial.before, strict=True):
            self._record(now, setting.part, "keep", before, setting.value, measured)

    def _noise(self) -> float:
        """By how much windows differ in which nothing was changed, relative to their mean."""
        if len(self._rates) < _SETTLED_WINDOWS:
            return 0.0
        mean = sum(self._rates) / len(self._rates)
        if not mean:
            return 0.0
        return math.sqrt(sum((rate - mean) ** 2 for rate in self._rates) / len(self._rates)) / mean

    # Other work

    def _notice_other_work(self, now: float, window: CountWindow) -> None:
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

    def _forget(self, now: float, window: CountWindow) -> None:
        if self._experience:
            self._record(now, window.tops[0], "look again", None, None, "the work, or the consumer, is not as it was")
        self._experience.forget()
        self._rates.clear()
        self._window_seconds = WINDOW_SECONDS


_HALF = 0.5
_KNOWN = 0.1  # the standard error of a time that may be compared with another
_SMALL = 0.2  # of the whole


def _identities(tops: Sequence[StageNode]) -> list[tuple[int, bool]]:
    """Return the stages, and which of them do work in the background."""
    return [(part.key, part.stage.inline) for top in tops for part in top]


def _character(window: CountWindow) -> dict[tuple[int, str], float]:
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
