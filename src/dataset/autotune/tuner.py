"""Tuner: sets the numbers of parallel calls and buffered elements of a running pipeline, by a model and by trials.

The tuner observes windows of time in which no knob changes. From the counts of a window, the model (model.py) predicts
the gain of each change, and the best one is *tried*: the knob is set, the elements already in progress pass through,
and the next window shows whether the pipeline has become faster. If not, the knob is *taken back*, and the change is
not tried again soon. So a wrong prediction costs little and has no lasting effect.

The goal is what the consumer needs: as long as the consumer hardly ever waits, nothing is added, and workers that are
not needed are removed, which is verified in the same way.

The tuner only reads counts and sets knobs; it uses no clock, thread or lock. The caller of ``look`` passes the time.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dataset.autotune.changes import Change, Setting, TrialHistory
from dataset.autotune.proposals import Proposals
from dataset.autotune.windows import CountWindow, PipelineSnapshot, StageDelta, stages_of
from dataset.runtime.metrics.background import BackgroundOperator
from dataset.runtime.metrics.op_record import OpRecord

WINDOW_SECONDS = 0.02
"""The shortest window. A window in which nothing changes is followed by one twice as long, up to the longest."""

WINDOW_SECONDS_MAX = 1.0

_LONGER = 1 / 8  # of its length: the time after which a window that was not conclusive is looked at again
_WAITS = 8  # number of waits in a window with which its rate is well known
_WAITS_MIN = 3  # the same for a long window
_ROUNDS = 5  # minimum length of a window in tasks: workers that start together finish together for a while
_LONG_SECONDS = 0.5
_OVERLONG_SECONDS = 4.0
_CERTAIN = 0.05  # standard error of a rate below which a change is tried; the wait for it is limited
_CLEAR = 2.0  # standard errors from the threshold at which a trial is decided early
_TRIAL_SECONDS = 1.0  # after which a trial is decided in any case
_PAUSE = 4.0  # a look that is this many times later than usual means that the consumer paused
_GAIN_KEPT = 0.05  # below this gain, a change is taken back
_LOSS_KEPT = 0.03  # acceptable loss when workers are removed
_CHANGED = 1.7  # the factor by which times must differ in two consecutive windows to count as changed work
_SETTLED_WINDOWS = 3


@dataclass(eq=False)
class _Trial:
    change: Change
    window: CountWindow  # before the change
    gauge: StageDelta  # the stage whose rate is compared, in that window
    by_made: bool  # whether the rate counts produced elements, because many are taken at once
    is_clear: bool = False  # whether the elements in progress before the change have passed

    @property
    def seconds(self) -> float:
        """The length of the window before, within limits."""
        return min(self.window.seconds, WINDOW_SECONDS_MAX)

    def rate_of(self, delta: StageDelta) -> float:
        return delta.made_rate if self.by_made else delta.rate


Record = Callable[[float, OpRecord, str, int | None, int | None, str], None]
"""Callback for decisions: time, record of the stage, action, value before, value after, reason."""


class Tuner:
    """Tuner of the knobs of one pipeline.

    Args:
        cores: the number of cores that the pipeline may keep busy.
        record: is called with each decision.
    """

    def __init__(self, cores: float, record: Record) -> None:
        self._experience = TrialHistory()
        self._proposals = Proposals(cores, self._experience)
        self._record = record
        self._snapshot: PipelineSnapshot | None = None
        self._seen: list[tuple[OpRecord, bool]] = []  # the stages, and whether each ran inline
        self._due = 0.0
        self._lateness = 0.0  # usual delay of looks, in seconds
        self._trial: _Trial | None = None
        self._window_seconds = WINDOW_SECONDS
        self._rates: deque[float] = deque(maxlen=5)  # in windows without changes
        self._usual: dict[tuple[OpRecord | None, str], float] = {}  # the last known character of the work
        self._surprises = 0  # consecutive windows with a different character
        self._quiet = 0  # consecutive windows in which nothing was changed
        self._has_changed = False  # whether a knob has changed since the tuner last settled

    @property
    def contention(self) -> dict[OpRecord, float]:
        """By stage: the share of its work that does not run concurrently, as far as is known."""
        return self._experience.contention

    def look(self, now: float, tops: Sequence[OpRecord]) -> float:
        """Read the counters, set knobs if necessary, and return when to look again.

        Args:
            now: the time in seconds, on the clock of the counters.
            tops: the records of the stages from which the consumer's thread currently takes elements.
        """
        self._due = self._look(now, tops)
        return self._due

    def _look(self, now: float, tops: Sequence[OpRecord]) -> float:
        if self._snapshot is None or _seen(stages_of(tops)) != self._seen:
            return self._begin(now, tops)
        if not self._snapshot.is_steady:
            if self._trial is not None:
                self._give_up(now, self._trial)
            return self._begin(now, tops)
        seconds = now - self._snapshot.began
        if self._was_a_pause(now, seconds):
            return self._begin(now, tops)
        if seconds >= self._shortest() and self._is_done_with(now, self._snapshot.window(now)):
            return self._begin(now, tops)
        return now + max(self._window_seconds / 4, seconds * _LONGER)

    def _shortest(self) -> float:
        """Return the length below which a window says nothing; then it is not even computed."""
        if self._trial is None:
            return self._window_seconds
        return max(WINDOW_SECONDS, self._trial.seconds / 2) if self._trial.is_clear else WINDOW_SECONDS / 2

    def _is_done_with(self, now: float, window: CountWindow) -> bool:
        """Do what the window suggests; return False if it must become longer."""
        trial = self._trial
        if trial is not None and not trial.is_clear:
            trial.is_clear = self._has_passed(window, trial)
            return trial.is_clear
        if not self._is_enough(window, trial):
            return False
        if trial is not None:
            return self._judge(now, window, trial)
        self._propose(now, window)
        return True

    def _was_a_pause(self, now: float, seconds: float) -> bool:
        """Return whether there was an unusually long pause without looks, which makes the window unusable.

        A consumer that is always slow makes this True once; then it counts as usual.
        """
        lateness = now - self._due
        is_pause = lateness > _PAUSE * self._lateness and lateness > max(seconds / 2, WINDOW_SECONDS)
        self._lateness = max(lateness, 0.9 * self._lateness)
        return is_pause

    def _begin(self, now: float, tops: Sequence[OpRecord]) -> float:
        snapshot = PipelineSnapshot(tops, now)
        seen = _seen(snapshot.stages)
        if self._trial is not None and seen != self._seen:
            self._give_up(now, self._trial)
        self._snapshot, self._seen = snapshot if tops else None, seen
        for stage in snapshot.stages.values():
            stage.counters.reset_least_ready()
        return now + self._window_seconds

    def _give_up(self, now: float, trial: _Trial) -> None:
        """Take a change back because its result can no longer be compared."""
        self._take_back(now, trial, "other things have changed in the meantime")
        self._trial = None

    def _take_back(self, now: float, trial: _Trial, reason: str) -> None:
        for setting in trial.change.settings:
            if setting.knob.value == setting.value:  # otherwise the stage has set it meanwhile
                self._record(now, setting.record, "take back", setting.value, setting.delta.value, reason)
                setting.knob.value = setting.delta.value

    # Whether a window is informative

    def _has_passed(self, window: CountWindow, trial: _Trial) -> bool:
        if window.seconds > max(_LONG_SECONDS, trial.seconds):
            return True
        return all(
            self._has_passed_through(window.deltas[setting.record], max(setting.value, setting.delta.value))
            for setting in trial.change.settings
        )

    @staticmethod
    def _has_passed_through(activity: StageDelta, value: int) -> bool:
        under_way = value if activity.stage.relays else 2 * value
        return activity.elements >= under_way and activity.waits >= 1

    def _is_enough(self, window: CountWindow, trial: _Trial | None) -> bool:
        if window.seconds < _ROUNDS * window.longest_task:
            return False
        activities = list(window) if trial is None else [window.deltas[trial.gauge.record]]
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
        if window.first.rate > 0:
            self._rates.append(window.first.rate)
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
            return None  # savings need a precise baseline, since only a small loss is acceptable; they are not urgent
        return self._proposals.first_saving(window, now)

    def _hold_back(self, now: float, setting: Setting) -> None:
        """Apply a setting without a trial, because the CPU budget must be respected."""
        self._record(now, setting.record, "hold back", setting.delta.value, setting.value, setting.reason)
        setting.knob.value = setting.value
        self._has_changed = True
        self._usual = {}
        self._rates.clear()
        self._window_seconds = WINDOW_SECONDS

    # Trials

    def _try(self, now: float, window: CountWindow, change: Change) -> None:
        first = change.settings[0].delta
        is_gauge = change.adds and len(change.settings) == 1 and first.waited_for > _HALF
        by_made = is_gauge and first.waits < _WAITS_MIN
        self._trial = _Trial(change, window, first if is_gauge else window.first, by_made)
        for setting in change.settings:
            self._record(now, setting.record, "try", setting.delta.value, setting.value, setting.reason)
            setting.knob.value = setting.value

    def _judge(self, now: float, window: CountWindow, trial: _Trial) -> bool:
        """Keep a tried change or take it back; return False if it must be observed for longer."""
        change = trial.change
        gauge = window.deltas[trial.gauge.record]
        begun = window.has_output and not trial.window.has_output
        if begun or (trial.by_made and gauge.waits >= _WAITS_MIN):  # a downstream buffer has become full
            self._give_up(now, trial)
            return True
        before, rate = trial.rate_of(trial.gauge), trial.rate_of(gauge)
        gain = rate / before - 1 if before > 0 else math.inf
        coarseness = 0.0 if change.adds else window.coarseness
        error = math.hypot(trial.window.uncertainty, window.uncertainty, coarseness) * (1 + gain)
        worth = max(_GAIN_KEPT, self._noise()) if change.adds else -_LOSS_KEPT
        if window.seconds < _TRIAL_SECONDS and abs(gain - worth) < _CLEAR * error:
            return False
        worth = max(worth, error) if change.adds else max(worth, error - 2 * _LOSS_KEPT)
        self._trial = None
        measured = f"{1 + gain:.2f} times the throughput was measured"
        if gain < worth:
            self._fail(now, trial, measured, gain, error)
        elif change.adds and self._proposals.is_over_budget(window):
            budget = f", but {window.cores_used:.1f} cores were busy, of {self._proposals.cores:g} allowed"
            self._fail(now, trial, measured + budget, gain, error)
        elif not change.adds and window.waited > trial.window.waited + _LOSS_KEPT:
            waited = f"; the consumer waits {window.waited:.0%} of the time instead of {trial.window.waited:.0%}"
            self._fail(now, trial, measured + waited, gain, error)
        else:
            self._keep(now, trial, measured)
        return True

    def _fail(self, now: float, trial: _Trial, measured: str, gain: float, error: float) -> None:
        self._take_back(now, trial, measured)
        self._experience.failed(trial.change, gain + error, now)

    def _keep(self, now: float, trial: _Trial, measured: str) -> None:
        self._has_changed = True
        self._usual = {}  # times of work depend on what else is running
        self._rates.clear()
        self._experience.kept(trial.change)
        for setting in trial.change.settings:
            self._record(now, setting.record, "keep", setting.delta.value, setting.value, measured)

    def _noise(self) -> float:
        """Return the relative standard deviation of the rates in windows without changes."""
        if len(self._rates) < _SETTLED_WINDOWS:
            return 0.0
        mean = sum(self._rates) / len(self._rates)
        if not mean:
            return 0.0
        return math.sqrt(sum((rate - mean) ** 2 for rate in self._rates) / len(self._rates)) / mean

    # Changes of the work

    def _notice_other_work(self, now: float, window: CountWindow) -> None:
        """Forget what was learned if the work has changed."""
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
            self._record(now, window.tops[0], "look again", None, None, "the work or the consumer has changed")
        self._experience.forget()
        self._rates.clear()
        self._window_seconds = WINDOW_SECONDS


_HALF = 0.5
_KNOWN = 0.1  # the largest standard error of times that are compared
_SMALL = 0.2  # the smallest share of a time that is compared


def _seen(stages: Mapping[OpRecord, BackgroundOperator]) -> list[tuple[OpRecord, bool]]:
    """Return the stages, and whether each runs inline."""
    return [(record, stage.inline) for record, stage in stages.items()]


def _character(window: CountWindow) -> dict[tuple[OpRecord | None, str], float]:
    """Return the character of the work: the times per element of the stages and of the consumer.

    Times that are a small share of the whole are bounded below; otherwise small changes would look large.
    """
    found: dict[tuple[OpRecord | None, str], float] = {}
    for activity in window:
        if activity.elements and activity.work_seconds > 0 and activity.uncertainty <= _KNOWN:
            each = activity.work_seconds / activity.elements
            found[activity.record, "wall"] = each
            found[activity.record, "cpu"] = max(activity.cpu_seconds / activity.elements, _SMALL * each)
    if window.first.rate > 0 and window.uncertainty <= _KNOWN:
        found[None, "consumer"] = max(1 - window.waited, _SMALL) / window.first.rate
    return found
