"""Count windows: what the stages of a pipeline did in an interval."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from dataset.runtime.metrics.background import BackgroundOperator, Counters
from dataset.runtime.metrics.op_record import OpRecord

_COUNTERS = tuple(name for name in Counters.__slots__ if name not in ("by_source", "core_wait", "trace"))  # the numbers
_HALF = 0.5  # of the window: a wait this close to its beginning or end marks that boundary


class StageDelta(Counters):
    """Counts of a stage in a window: the changes of its counters, and what follows from them.

    Attributes:
        record: the record of the stage.
        stage: the operator that was open at the beginning of the window.
        value: the value of its knob.
        seconds: the length of the window.
        rate: the elements per second that were taken. If the consumer has waited, it is measured exactly, from one wait
            to another. If it has waited most of the time for many elements at once, those that were computed count.
        variation: squared coefficient of variation of the work of an element.
    """

    __slots__ = ("rate", "record", "seconds", "stage", "value", "variation")

    def __init__(
        self, record: OpRecord, stage: BackgroundOperator, before: Mapping[str, float], began: float, now: float
    ) -> None:
        self.record, self.stage, self.value = record, stage, stage.knob.value
        after = _counts(stage.counters, now)
        for name in _COUNTERS:
            setattr(self, name, after[name] - before[name])
        seconds = self.seconds = max(now - began, 1e-9)
        begins_marked = before["waits"] and began - before["waited_until"] < _HALF * seconds
        ends_marked = self.waits and now - after["waited_until"] < _HALF * seconds
        if begins_marked and ends_marked and self.waited_until > 0:
            self.rate = self.taken_before / self.waited_until
        else:
            self.rate = (self.elements if self.is_short else self.taken) / seconds
        mean_square = (self.work_seconds / self.elements) ** 2 if self.elements else 0.0
        squared = self.squares / self.elements / mean_square - 1 if mean_square else 0.0
        self.variation = max(0.0, squared)

    @property
    def busy(self) -> float:
        """The mean number of busy workers."""
        return self.work_seconds / self.seconds

    @property
    def computing(self) -> float:
        """The share of its work in which a core was busy; the rest was waiting."""
        return self.cpu_seconds / self.work_seconds if self.work_seconds > 0 else 1.0

    @property
    def waited_for(self) -> float:
        """The share of the window in which its consumer waited for it."""
        return min(1.0, self.wait_seconds / self.seconds)

    @property
    def rested(self) -> float:
        """The share of the window in which its thread waited for room; the buffer was not empty then."""
        return min(1 - self.waited_for, self.rest_seconds / self.seconds)

    @property
    def is_short(self) -> bool:
        """Whether its consumer waited most of the time, so that its buffer was empty."""
        return self.waited_for > _HALF

    @property
    def events(self) -> float:
        """At least how often its consumer has taken elements, or was given one that it waited for."""
        taken = self.taken / max(1, self.stage.capacity)  # without waiting, it takes what is in the buffer at most
        return max(self.waits, taken, self.tasks if self.is_short else 0)


def _counts(counters: Counters, now: float) -> dict[str, float]:
    """Return the values of the counters, including the current wait so far."""
    values = {name: getattr(counters, name) for name in _COUNTERS}
    if values["waiting_since"]:
        values["wait_seconds"] += max(0.0, now - values["waiting_since"])
    return values


class PipelineSnapshot:
    """Snapshot of the counters of all stages at a time, by record, from which windows are computed.

    Args:
        tops: the records of the stages from which the consumer's thread takes elements.
        now: the time on the clock of the counters.
    """

    def __init__(self, tops: Sequence[OpRecord], now: float) -> None:
        self.began = now
        self.tops = tuple(tops)
        self.stages = stages_of(tops)
        self._counts = {record: _counts(stage.counters, now) for record, stage in self.stages.items()}
        self._settings = _settings(self.stages)

    def is_steady(self, tops: Sequence[OpRecord]) -> bool:
        """Return whether the stages are the same, none compares anything now, and none has set its knob since."""
        stages = stages_of(tops)
        return _settings(stages) == self._settings and all(stage.is_settled for stage in stages.values())

    def window(self, now: float) -> CountWindow:
        """Return the window from the snapshot until now."""
        deltas = [
            StageDelta(record, stage, self._counts[record], self.began, now) for record, stage in self.stages.items()
        ]
        return CountWindow(self.tops, max(now - self.began, 1e-9), deltas)


def stages_of(tops: Sequence[OpRecord]) -> dict[OpRecord, BackgroundOperator]:
    """Return the open stages at and below ``tops`` by their records, starting at the consumer."""
    return {record: stage for top in tops for record in top.walk() if (stage := record.stage) is not None}


def _settings(stages: Mapping[OpRecord, BackgroundOperator]) -> list[tuple[OpRecord, bool, int]]:
    return [(record, stage.inline, stage.knob.value) for record, stage in stages.items()]


class CountWindow:
    """Counts of all stages in a window.

    Attributes:
        tops: the records of the stages from which the consumer's thread takes elements.
        seconds: the length of the window.
        deltas: by the records of the stages, starting at the consumer.
    """

    def __init__(self, tops: tuple[OpRecord, ...], seconds: float, deltas: Sequence[StageDelta]) -> None:
        self.tops, self.seconds = tops, seconds
        self.deltas = {delta.record: delta for delta in deltas}

    def __iter__(self) -> Iterator[StageDelta]:
        return iter(self.deltas.values())

    @property
    def waited(self) -> float:
        """The share of the time in which the consumer waited."""
        return min(1.0, sum(map(self._wait_seconds, self.tops)) / self.seconds)

    def _wait_seconds(self, record: OpRecord) -> float:
        """Return how long the consumer of a stage waited for it; for an inline stage, also for its inputs."""
        if (delta := self.deltas.get(record)) is None:
            return 0.0  # it was opened meanwhile
        below = sum(map(self._wait_seconds, record.stages())) if delta.stage.inline else 0.0
        return delta.wait_seconds + below

    @property
    def uncertainty(self) -> float:
        """The relative standard error of rates, by the stage of calls with the largest error."""
        return max((math.sqrt(a.variation / max(1, a.tasks)) for a in self if not a.stage.relays), default=0.0)

    @property
    def longest_task(self) -> float:
        """The mean time of a task, in seconds, of the stage with the longest tasks."""
        return max((a.work_seconds / a.tasks for a in self if a.tasks and not a.stage.relays), default=0.0)

    @property
    def cores_used(self) -> float:
        """The mean number of cores that the stages' work kept busy."""
        return sum(a.cpu_seconds for a in self if not a.stage.relays) / self.seconds
