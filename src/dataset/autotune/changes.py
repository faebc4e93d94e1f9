"""What may be changed, and what was learned from changes that were tried."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

from dataset.autotune.windows import StageNode
from dataset.runtime.metrics.background import Tunable

_APART = 1.2  # by what factor values differ that are worth telling apart
_PATIENCE_SECONDS = 1.0  # until a change that was taken back may be tried again, doubled each time
_PATIENCE_SECONDS_MAX = 300.0
_WORSE_SECONDS = 4.0  # more, after one that did harm
_TELLING = 0.25  # as much must have been promised for calls that gained nothing to count as not going side by side


@dataclass(frozen=True, eq=False)
class Setting:
    """A knob and what it is to be set to."""

    part: StageNode
    value: int
    reason: str

    @property
    def knob(self) -> Tunable:
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
class _Lesson:
    """Of the changes of one knob that failed."""

    ceiling: float = math.inf  # a value that was no better
    floor: float = 0.0  # one that was worse
    patience: float = _PATIENCE_SECONDS
    retry_at: float = 0.0


class TrialHistory:
    """What was learned about the knobs of a pipeline.

    Attributes:
        contention: by key of a stage: the share of its work that does not go side by side.
    """

    def __init__(self) -> None:
        self.contention: dict[int, float] = {}
        self._lessons: dict[int, _Lesson] = {}

    def __bool__(self) -> bool:
        """Return whether anything has failed."""
        return bool(self._lessons)

    def may_try(self, change: Change, now: float) -> bool:
        """Return whether nothing like it has failed lately."""
        return all(self._may_set(setting, now, adds=change.adds) for setting in change.settings)

    def _may_set(self, setting: Setting, now: float, *, adds: bool) -> bool:
        lesson = self._lessons.get(setting.part.key)
        if lesson is None or now >= lesson.retry_at:
            return True
        return setting.value * _APART <= lesson.ceiling if adds else setting.value > lesson.floor

    def highest(self, part: StageNode, now: float) -> int:
        """Return what may be tried before it is time to try again what has failed: the middle, in effect."""
        lesson = self._lessons.get(part.key)
        if lesson is None or now >= lesson.retry_at or lesson.ceiling == math.inf:
            return sys.maxsize
        return int(lesson.ceiling / _APART)

    def kept(self, change: Change) -> None:
        """It was worth it."""
        for setting in change.settings if change.adds else ():
            self._lessons.pop(setting.part.key, None)
            self.contention.pop(setting.part.key, None)

    def failed(self, change: Change, gain: float, now: float) -> None:
        """It was taken back; ``gain`` was measured, or less."""
        for setting in change.settings:
            lesson = self._lessons.setdefault(setting.part.key, _Lesson())
            lesson.retry_at = now + lesson.patience
            lesson.patience = min(_PATIENCE_SECONDS_MAX, 2 * lesson.patience)
            if change.adds and gain < 0:  # clearly worse: nor is half of it any good, and it is costly to try
                lesson.ceiling = 0
                lesson.retry_at += _WORSE_SECONDS
            elif change.adds:
                lesson.ceiling = setting.value
            else:
                lesson.floor, lesson.ceiling = setting.value, math.inf
                self.contention.pop(setting.part.key, None)  # calls do go side by side: fewer were worse
        first = change.settings[0].part
        if change.adds and not first.stage.relays and len(change.settings) == 1 and change.gain >= _TELLING:
            self.contention[first.key] = min(1.0, max(0.0, 1 - max(0.0, gain) / change.gain))

    def forget(self) -> None:
        """The work is not what it was."""
        self._lessons.clear()
        self.contention.clear()
