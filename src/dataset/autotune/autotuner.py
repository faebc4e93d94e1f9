"""Autotuner of one iteration: passes the running stages to the tuner, and keeps the log of its decisions."""

from __future__ import annotations

import contextlib

from dataset import autotune
from dataset.autotune.tuner import Tuner
from dataset.autotune.tuning_memory import recall, remember
from dataset.autotune.windows import stages_of
from dataset.options import Options
from dataset.plan.fingerprints.work_key import work_key
from dataset.runtime.choice import Learned
from dataset.runtime.metrics.background import BackgroundOperator
from dataset.runtime.metrics.op_record import OpRecord
from dataset.runtime.metrics.profile import PipelineProfile
from dataset.runtime.metrics.tuning_log import Decision, TuningLog


class Autotuner:
    """Observer that checks a pipeline periodically, and sets its knobs unless ``options.autotune.enabled`` is False.

    It is an Observer (runtime/metrics/profile.py): any thread of the pipeline may call ``look``.
    """

    def __init__(self, profile: PipelineProfile, options: Options) -> None:
        self._profile = profile
        self._enabled = options.autotune.enabled is not False
        self._tuner: Tuner | None = None
        self._log = TuningLog()
        self._memory = options.autotune.memory
        self._keys: dict[OpRecord, str] = {}  # of those that have begun with what was remembered
        self._tried: dict[OpRecord, int] = {}  # the previous values of the knobs that are being tried

    def begin(self, now: float) -> None:
        """Begin when the first element is requested, with the final values of the last iteration."""
        self._tuner = Tuner(self._profile.limits.cores, self._record)
        self._remember(now)

    def _remember(self, now: float) -> None:
        for record, stage in stages_of([self._profile.top]).items():  # some are only opened after others have ended
            if record in self._keys:
                continue
            key = self._keys[record] = work_key(record.node)
            if (learned := recall(key, self._memory)) is None:
                continue
            knob, value = stage.knob, learned.value
            if knob.minimum <= value <= knob.maximum and value != knob.value:
                self._record(now, record, "keep", knob.value, value, "as in the previous iteration")
                knob.value = value
            stage.warm_start(learned)

    def look(self, now: float) -> float:
        """Check the pipeline, set knobs if necessary, and return when to look again."""
        if self._enabled:
            self._remember(now)
        tops = tuple(self._profile.top.stages())
        tuner = self._tuner
        if tuner is None or not tops:
            return now + _IDLE_SECONDS
        for record, stage in stages_of(tops).items():
            self._collect(record, stage)
        return tuner.look(now, tops) if self._enabled else now + _IDLE_SECONDS

    def _collect(self, record: OpRecord, stage: BackgroundOperator) -> None:
        """Log the stage's own decisions."""
        with contextlib.suppress(IndexError):  # no more; another thread may collect them, too
            while True:
                now, *decision = stage.actions.popleft()
                self._record(now, record, *decision)

    def end(self) -> None:
        """End the iteration; the next one of the same dataset begins with its values.

        Values of an unfinished trial are not kept, since short iterations would otherwise accumulate untested values.
        """
        if self._tuner is None:  # no element was requested
            return
        found = {}
        for record, stage in stages_of([self._profile.top]).items():
            self._collect(record, stage)
            if record in self._keys:
                learned = stage.learned or Learned("", 0)
                found[self._keys[record]] = learned._replace(value=self._tried.get(record, stage.knob.value))
        remember(found, self._memory)
        self._tuner = None  # breaks a reference cycle that also includes everything open

    def measured(self, elements: int) -> autotune.Measured:
        """Return the measurements so far, with the model that predicts what changes gain."""
        return autotune.Measured(self._profile, elements)

    def tuning_log(self) -> TuningLog:
        """Return the decisions so far that are kept, in a copy of the log."""
        for record, stage in stages_of([self._profile.top]).items():
            self._collect(record, stage)
        log = TuningLog(self._log)
        log.omitted = self._log.omitted
        if not log:
            log.advice = autotune.untuned_advice(list(self._profile.top.walk()))
        return log

    def _record(
        self, now: float, record: OpRecord, action: str, before: int | None, after: int | None, reason: str
    ) -> None:
        if action == "try" and before is not None:
            self._tried[record] = before
        elif action in ("keep", "take back"):
            self._tried.pop(record, None)
        began = self._profile.began
        knob = "" if before is None or record.knob is None else record.knob.name
        seconds = 0.0 if began is None else now - began
        self._log.add(Decision(seconds, record.name, action, knob, before, after, reason))


_IDLE_SECONDS = 0.25
