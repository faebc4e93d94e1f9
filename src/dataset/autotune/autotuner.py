"""The autotuner of one iteration: shows the tuner the stages that run, and keeps the log of what it decides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

from dataset.autotune.report import report
from dataset.autotune.tuner import Tuner
from dataset.autotune.windows import StageNode
from dataset.options import Options
from dataset.plan.node import Node
from dataset.runtime.metrics.background import BackgroundOperator
from dataset.runtime.metrics.op_record import OpRecord
from dataset.runtime.metrics.profile import PipelineProfile
from dataset.runtime.metrics.statistics import Decision, PipelineStatistics, TuningLog

LOG_MAX = 10_000
"""Decisions that are kept; a pipeline that runs for weeks does not fill the memory with them."""


class Autotuner:
    """Looks at a pipeline now and then, and sets its knobs, unless ``options.autotune.enabled`` is False.

    It is an Observer (runtime/metrics/profile.py): whichever thread of the pipeline comes by calls ``look``.
    """

    def __init__(self, profile: PipelineProfile, options: Options) -> None:
        self._profile = profile
        self._enabled = options.autotune.enabled is not False
        self._tuner: Tuner | None = None
        self._contention: dict[int, float] = {}  # as the tuner saw it last
        self._log = TuningLog()
        self._inline: dict[int, bool] = {}  # by key of a stage, as it was when it was looked at last
        self._begun: set[int] = set()  # lines that have been set to what they were at the end of the last iteration
        self._tried: dict[int, int] = {}  # by identity of a knob that is being tried: what it was before

    def begin(self, now: float) -> None:
        """The first element is asked for: begin with what the last iteration ended with."""
        limits = self._profile.limits
        assert limits is not None  # the operators are open
        self._tuner = Tuner(limits.cores, self._record)
        self._contention = self._tuner.contention
        self._remember(now)

    def _stages(self) -> Iterator[tuple[OpRecord, BackgroundOperator]]:
        """What works in the background, as far as it is open: some operators are only opened when others have ended."""
        for record, _ in self._profile.top.walk():
            if record.stage is not None:
                yield record, record.stage

    def _remember(self, now: float) -> None:
        for record, stage in self._stages():
            if id(record) in self._begun:
                continue
            self._begun.add(id(record))
            if (settled := _settled.get(record.node)) is None:
                continue
            value, learned = settled
            knob = stage.knob
            if value != knob.value and not knob.is_fixed:
                part = StageNode(record.name, stage)
                self._record(now, part, "keep", knob.value, value, "as in the iteration before")
                knob.value = value
            stage.warm_start(learned)

    def look(self, now: float) -> float:
        """Turn knobs, perhaps; when to look again."""
        if self._enabled:
            self._remember(now)
        tops = tuple(_parts(self._profile.top))
        tuner = self._tuner
        if tuner is None or not tops:
            return now + _IDLE_SECONDS
        for top in tops:
            for part in top:
                self._note_where_it_runs(now, part)
        if not self._enabled:
            return now + _IDLE_SECONDS
        return tuner.look(now, tops)

    def _note_where_it_runs(self, now: float, part: StageNode) -> None:
        inline, was = part.stage.inline, self._inline.get(part.key)
        self._inline[part.key] = inline
        if part.stage.relays:
            if was and not inline:
                reason = "making elements and using them both take long enough to be done at once"
                self._record(now, part, "run in background", None, None, reason)
        elif inline and not was:
            reason = "the consumer is served sooner by doing the work itself than by waiting for threads"
            self._record(now, part, "run inline", None, None, reason)
        elif was and not inline:
            reason = "elements have become dearer, or it is time to see whether threads help now"
            self._record(now, part, "run in background", None, None, reason)

    def end(self) -> None:
        """The iteration is over: the next one of the same dataset begins with these values.

        What was only being tried is not kept: else short iterations would hand on one untried value after the other.
        """
        if self._tuner is None:  # nothing was asked for
            return
        for record, stage in self._stages():
            _settled[record.node] = self._tried.get(id(stage.knob), stage.knob.value), stage.learned
        self._tuner = None  # refers to this, and through the stages to all that is open

    def stats(self, elements: int) -> PipelineStatistics:
        """Return what is known so far."""
        return report(self._profile, elements, dict(self._contention))

    def tuning_log(self) -> TuningLog:
        """Return what was decided so far."""
        return TuningLog(self._log)

    def _record(
        self, now: float, part: StageNode, action: str, before: int | None, after: int | None, reason: str
    ) -> None:
        if action == "try" and before is not None:
            self._tried[id(part.stage.knob)] = before
        elif action in ("keep", "take back"):
            self._tried.pop(id(part.stage.knob), None)
        began = self._profile.began
        if len(self._log) >= LOG_MAX:
            del self._log[: LOG_MAX // 2]
        knob = part.stage.knob.name if before is not None else ""
        seconds = 0.0 if began is None else now - began
        self._log.append(Decision(seconds, part.name, action, knob, before, after, reason))


_settled: WeakKeyDictionary[Node, tuple[int, Any]] = WeakKeyDictionary()
"""What the knobs stood at when the last iteration of a plan ended, and what its stages had learned, by its nodes."""

_IDLE_SECONDS = 0.25


def _parts(record: OpRecord) -> Iterator[StageNode]:
    """Yield the stages from which the thread takes that runs the op of ``record``, with those below them."""
    for below in record.below():
        stage = below.stage
        if stage is None:
            yield from _parts(below)
        else:
            yield StageNode(below.name, stage, tuple(_parts(below)))
