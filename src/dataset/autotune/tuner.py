"""Tuner: small changes of the numbers of parallel calls and buffered elements of a settled pipeline.

Who does the work of a stage, and how many calls a function that waits needs, is decided by the stage itself
(runtime/parallel/controller.py). Meanwhile, the tuner only watches. Then it observes windows of time, proposes a change
from what was counted (proposals.py), and *tries* it: windows with the old and the new values take turns, as in any
other comparison (runtime/choice.py). The larger values must be clearly faster; otherwise the smaller ones are used.

After a change that was *taken back*, and after one that reverts an earlier one, the knob rests for as long as the
pipeline has run, up to a minute, unless the work changes. So trials soon become rare. If a trial has made the pipeline
slower, the knob rests until the loss is a small share of the time.

The tuner only reads counts and sets knobs; it uses no clock, thread or lock. The caller of ``look`` passes the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dataset.autotune.proposals import LONG_SECONDS, WAITED, Setting, additions, holding_back, is_over_budget, savings
from dataset.autotune.windows import CountWindow, PipelineSnapshot
from dataset.runtime.choice import Choice, Segment, Watch
from dataset.runtime.metrics.op_record import OpRecord

WINDOW_SECONDS = 0.02
"""The shortest window. A window in which nothing changes is followed by one twice as long, up to the longest."""

WINDOW_SECONDS_MAX = 1.0

_ROUNDS = 5  # minimum length of a window in tasks: workers that start together finish together for a while
_EVENTS = 8  # waits or tasks in a window with which a rate is well known
_CERTAIN = 0.05  # standard error of a rate that is worth waiting for, for half a second
_REST_SECONDS_MAX = 60.0  # at most one change back and forth in this time


@dataclass(eq=False)
class _Trial:
    """Comparison of two values of some knobs.

    Attributes:
        settings: the new values.
        adds: whether they are larger than the old ones.
        choice: the choice between the smaller values and the larger ones.
    """

    settings: list[Setting]
    adds: bool
    choice: Choice[bool]

    def apply(self) -> None:
        """Set the values of the current turn."""
        for setting in self.settings:
            setting.knob.value = (max if self.choice.way else min)(setting.value, setting.delta.value)


@dataclass(eq=False)
class _Pause:
    """When a knob may be changed again, and whether its last change that was kept has enlarged it."""

    until: float = 0.0
    adds: bool | None = None


Record = Callable[[float, OpRecord, str, int | None, int | None, str], None]
"""Callback for decisions: time, record of the stage, action, value before, value after, reason."""


class Tuner:
    """Tuner of the knobs of one pipeline.

    Args:
        cores: the number of cores that the pipeline may keep busy.
        record: is called with each decision.
    """

    def __init__(self, cores: float, record: Record) -> None:
        self._cores = cores
        self._record = record
        self._snapshot: PipelineSnapshot | None = None
        self._began: float | None = None
        self._due = 0.0
        self._lateness = 0.0  # usual delay of looks, in seconds
        self._trial: _Trial | None = None
        self._rests: dict[OpRecord, _Pause] = {}
        self._watches: dict[OpRecord | None, Watch] = {}  # of the work of the stages, and of the consumer
        self._window_seconds = WINDOW_SECONDS
        self._is_passing = False  # whether elements are in progress that began before the last change
        self._has_changed = False  # whether a knob has changed since the tuner last settled

    def look(self, now: float, tops: Sequence[OpRecord]) -> float:
        """Read the counters, set knobs if necessary, and return when to look again.

        Args:
            now: the time in seconds, on the clock of the counters.
            tops: the records of the stages from which the consumer's thread currently takes elements.
        """
        if self._began is None:
            self._began = now
        self._due = self._look(now, tops)
        return self._due

    def _look(self, now: float, tops: Sequence[OpRecord]) -> float:
        snapshot = self._snapshot
        if snapshot is None or not snapshot.is_steady(tops):
            self._give_up(now)
            return self._begin(now, tops)
        seconds = now - snapshot.began
        if self._was_a_pause(now, seconds):
            return self._begin(now, tops)
        if seconds >= self._window_seconds and self._is_enough(window := snapshot.window(now)):
            if self._trial is None and self._is_passing:
                self._is_passing = False
            elif self._trial is None:
                self._propose(now, window)
            else:
                self._compare(now, window, self._trial)
            return self._begin(now, tops)
        return now + max(self._window_seconds, seconds / 2) / 4

    def _begin(self, now: float, tops: Sequence[OpRecord]) -> float:
        self._snapshot = PipelineSnapshot(tops, now) if tops else None
        for stage in self._snapshot.stages.values() if self._snapshot else ():
            stage.counters.reset_least_ready()
        return now + self._window_seconds

    def _was_a_pause(self, now: float, seconds: float) -> bool:
        """Return whether there was a pause without looks that is longer than usual, which makes the window unusable.

        A consumer that is always slow makes this True once; then it counts as usual.
        """
        lateness = now - self._due
        is_pause = lateness > max(self._lateness, seconds / 2, WINDOW_SECONDS)
        self._lateness = max(lateness, 0.9 * self._lateness)
        return is_pause

    def _is_enough(self, window: CountWindow) -> bool:
        """Return whether a window is long enough for what it says about rates."""
        seconds, trial, gauges = window.seconds, self._trial, list(window)
        if trial is not None:
            gauges = [window.deltas[trial.settings[0].record]]
        if seconds < _ROUNDS * window.longest_task or not any(delta.rate for delta in gauges):
            return False
        has_events = any(delta.events >= _EVENTS for delta in gauges)
        if seconds < LONG_SECONDS:
            is_urgent = trial is None or (trial.adds and not gauges[0].stage.relays)
            return is_urgent and has_events and window.uncertainty <= _CERTAIN
        return has_events or seconds >= _EVENTS * LONG_SECONDS or all(delta.waited_for < WAITED for delta in gauges)

    # What to change

    def _propose(self, now: float, window: CountWindow) -> None:
        self._notice_other_work(now, window)
        less = holding_back(window, self._cores)
        if less is not None:  # without a trial, because the CPU budget must be respected
            self._record(now, less.record, "hold back", less.delta.value, less.value, less.reason)
            less.knob.value = less.value
            self._changed(now, [less], adds=False)
            return
        for adds, proposals in ((True, additions(window, self._cores)), (False, savings(window))):
            for proposed in proposals:
                settings = [one for one in proposed if now >= self._rest(one).until]
                if settings:
                    self._try(now, window, settings, adds=adds)
                    return
        self._window_seconds = min(WINDOW_SECONDS_MAX, 2 * self._window_seconds)
        if self._window_seconds >= LONG_SECONDS and self._has_changed:
            self._has_changed = False
            reason = f"nothing more is worth trying; the consumer waits {window.waited:.0%} of the time"
            self._record(now, next(iter(window)).record, "settle", None, None, reason)

    def _rest(self, setting: Setting) -> _Pause:
        return self._rests.setdefault(setting.record, _Pause())

    def _let_rest(self, now: float, settings: list[Setting], least: float = 0.0) -> None:
        assert self._began is not None  # there has been a window
        for setting in settings:
            self._rest(setting).until = now + max(least, min(_REST_SECONDS_MAX, now - self._began))

    def _changed(self, now: float, settings: list[Setting], *, adds: bool) -> None:
        """Note a change that lasts."""
        self._let_rest(now, [setting for setting in settings if self._rest(setting).adds not in (None, adds)])
        for setting in settings:
            self._rest(setting).adds = adds
        self._has_changed = self._is_passing = True
        self._window_seconds = WINDOW_SECONDS
        self._watches.clear()  # times of work depend on what else is running

    def _notice_other_work(self, now: float, window: CountWindow) -> None:
        """Let no knob rest if the work has changed."""
        workers = [delta for delta in window if delta.elements and not delta.stage.relays]
        each: dict[OpRecord | None, float] = {delta.record: delta.work_seconds / delta.elements for delta in workers}
        first = next(iter(window))
        if first.rate and not first.is_short:  # otherwise hardly anything is known about the consumer
            each[None] = (1 - window.waited) / first.rate
        have_changed = [self._watches.setdefault(key, Watch()).has_changed(each[key]) for key in each]
        if any(have_changed):
            self._watches.clear()
            resting = [rest for rest in self._rests.values() if rest.until > now]
            for rest in resting:
                rest.until = now
            if resting:
                self._record(now, first.record, "look again", None, None, "the work or the consumer has changed")

    # Trials

    def _try(self, now: float, window: CountWindow, settings: list[Setting], *, adds: bool) -> None:
        values = False, True  # whether the larger ones are set
        self._trial = _Trial(settings, adds, Choice(values, unseen=values))
        self._trial.choice.challenge(True, now, self._segment(window, self._trial) if adds else None)
        for setting in settings:
            self._record(now, setting.record, "try", setting.delta.value, setting.value, setting.reason)
        self._trial.apply()
        self._window_seconds = WINDOW_SECONDS

    @staticmethod
    def _segment(window: CountWindow, trial: _Trial) -> Segment | None:
        rate = window.deltas[trial.settings[0].record].rate
        return Segment(1, 1 / rate, window.cores_used / rate) if rate else None

    def _compare(self, now: float, window: CountWindow, trial: _Trial) -> None:
        segment = self._segment(window, trial)
        assert segment is not None  # otherwise the window is not long enough
        trial.choice.report(segment, now)
        trial.apply()
        verdict = trial.choice.verdict
        if verdict is None:
            return
        is_kept = verdict.accepted == trial.adds
        gain = 1 / verdict.ratio if is_kept else verdict.ratio
        reason = f"{gain:.2f} times the throughput was measured; the comparison took {verdict.seconds * 1e3:.0f} ms"
        if is_kept and trial.adds and is_over_budget(window, self._cores):
            is_kept = False
            reason += f", but {window.cores_used:.1f} cores were busy, of {self._cores:g} allowed"
        if not is_kept:
            self._let_rest(now, trial.settings, least=trial.choice.rest(now))
            self._take_back(now, trial, reason)
            return
        self._trial = None
        for setting in trial.settings:
            self._record(now, setting.record, "keep", setting.delta.value, setting.value, reason)
        self._changed(now, trial.settings, adds=trial.adds)

    def _give_up(self, now: float) -> None:
        """Take a change back because its result can no longer be compared."""
        if self._trial is not None:
            self._let_rest(now, self._trial.settings)  # the trial itself may have been the reason
            self._take_back(now, self._trial, "other things have changed in the meantime")

    def _take_back(self, now: float, trial: _Trial, reason: str) -> None:
        self._trial, self._is_passing = None, True
        for setting in trial.settings:
            knob, before = setting.knob, setting.delta.value
            if knob.value in (before, setting.value):  # otherwise the stage has set it meanwhile
                self._record(now, setting.record, "take back", setting.value, before, reason)
                knob.value = before
