"""Changes of knobs, and the history of trials."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

from dataset.autotune.windows import StageDelta
from dataset.runtime.metrics.background import Tunable
from dataset.runtime.metrics.op_record import OpRecord

_APART = 1.2  # values that differ by a smaller factor count as the same
_PATIENCE_SECONDS = 1.0  # until a change that was taken back may be tried again, doubled each time
_PATIENCE_SECONDS_MAX = 300.0
_WORSE_SECONDS = 4.0  # added after a change that did harm
_TELLING = 0.25  # a failed trial with at least this predicted gain counts as evidence of contention


@dataclass(frozen=True, eq=False)
class Setting:
    """Setting of a knob.

    Attributes:
        delta: what the stage counted with the value before.
        value: the new value.
        reason: why it should be set.
    """

    delta: StageDelta
    value: int
    reason: str

    @property
    def record(self) -> OpRecord:
        return self.delta.record

    @property
    def knob(self) -> Tunable:
        return self.delta.stage.knob


@dataclass(frozen=True, eq=False)
class Change:
    """Change of one or more knobs that are set together.

    Attributes:
        settings: the settings; at least one.
        gain: the predicted gain: 0.5 for one and a half times the throughput.
        adds: whether it takes more threads or memory, and therefore must improve the throughput.
    """

    settings: tuple[Setting, ...]
    gain: float
    adds: bool


@dataclass(eq=False)
class _Lesson:
    """Record of the failed changes of one knob."""

    ceiling: float = math.inf  # a value that was not better
    floor: float = 0.0  # a value that was worse
    patience: float = _PATIENCE_SECONDS
    retry_at: float = 0.0


class TrialHistory:
    """History of the trials of a pipeline's knobs.

    Attributes:
        contention: by stage: the share of its work that does not run concurrently.
    """

    def __init__(self) -> None:
        self.contention: dict[OpRecord, float] = {}
        self._lessons: dict[OpRecord, _Lesson] = {}

    def __bool__(self) -> bool:
        """Return whether anything has failed."""
        return bool(self._lessons)

    def may_try(self, change: Change, now: float) -> bool:
        """Return whether no similar change has failed recently."""
        return all(self._may_set(setting, now, adds=change.adds) for setting in change.settings)

    def _may_set(self, setting: Setting, now: float, *, adds: bool) -> bool:
        lesson = self._lessons.get(setting.record)
        if lesson is None or now >= lesson.retry_at:
            return True
        return setting.value * _APART <= lesson.ceiling if adds else setting.value > lesson.floor

    def highest(self, record: OpRecord, now: float) -> int:
        """Return the highest value to try before the failed value may be tried again."""
        lesson = self._lessons.get(record)
        if lesson is None or now >= lesson.retry_at or lesson.ceiling == math.inf:
            return sys.maxsize
        return int(lesson.ceiling / _APART)

    def kept(self, change: Change) -> None:
        """Record that a change was kept."""
        for setting in change.settings if change.adds else ():
            self._lessons.pop(setting.record, None)
            self.contention.pop(setting.record, None)

    def failed(self, change: Change, gain: float, now: float) -> None:
        """Record that a change was taken back; its gain was at most ``gain``."""
        for setting in change.settings:
            lesson = self._lessons.setdefault(setting.record, _Lesson())
            lesson.retry_at = now + lesson.patience
            lesson.patience = min(_PATIENCE_SECONDS_MAX, 2 * lesson.patience)
            if change.adds and gain < 0:  # clearly worse: half of it would not help either, and trying it is expensive
                lesson.ceiling = 0
                lesson.retry_at += _WORSE_SECONDS
            elif change.adds:
                lesson.ceiling = setting.value
            else:
                lesson.floor, lesson.ceiling = setting.value, math.inf
                self.contention.pop(setting.record, None)  # calls do run concurrently: fewer calls were worse
        first = change.settings[0].delta
        if change.adds and not first.stage.relays and len(change.settings) == 1 and change.gain >= _TELLING:
            self.contention[first.record] = min(1.0, max(0.0, 1 - max(0.0, gain) / change.gain))

    def forget(self) -> None:
        """Forget everything, because the work has changed."""
        self._lessons.clear()
        self.contention.clear()
