"""Count windows: what the stages of a pipeline did in an interval, and the model derived from it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from dataset.autotune.model import Section
from dataset.runtime.metrics.background import BackgroundOperator, Counters
from dataset.runtime.metrics.op_record import OpRecord

CONSUMER = "the consumer"

_COUNTERS = tuple(name for name in Counters.__slots__ if name not in ("by_source", "core_wait"))  # the numbers
_VARIATION_MAX = 16.0  # a single very slow element says little about the next ones
_CROWDED = 0.8  # of the cores: above this load, workers sometimes wait for a core
_COMPUTES = 0.3  # of its time: a stage that computes less waits for something else
_TASKS_MANY = 8
_ALL = 0.95
_RECENT = 0.5  # of the window: a wait this close to its beginning or end marks that boundary


class StageDelta(Counters):
    """Counts of a stage in a window: the changes of its counters, and what follows from them.

    Attributes:
        record: the record of the stage.
        stage: the operator that was open at the beginning of the window.
        value: the value of its knob.
        seconds: the length of the window.
        rate: the elements per second that were taken. If the consumer has waited, it is measured exactly, from one wait
            to another. If the consumer is waiting for many elements at once and has got none yet, the elements that
            were produced count instead.
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
        self.rate = self.taken / seconds
        begins_marked = before["waits"] and began - before["waited_until"] < _RECENT * seconds
        ends_marked = self.waits and now - after["waited_until"] < _RECENT * seconds
        if begins_marked and ends_marked and self.waited_until > 0:
            self.rate = self.taken_before / self.waited_until
        elif not self.waits and after["waiting_since"] and self.tasks >= _TASKS_MANY:
            self.rate = self.made_rate
        mean_square = (self.work_seconds / self.elements) ** 2 if self.elements else 0.0
        squared = self.squares / self.elements / mean_square - 1 if mean_square else 0.0
        self.variation = min(_VARIATION_MAX, max(0.0, squared))

    @property
    def made_rate(self) -> float:
        """The elements per second that were produced."""
        return self.elements / self.seconds

    @property
    def busy(self) -> float:
        """The mean number of busy workers."""
        return self.work_seconds / self.seconds

    @property
    def computing(self) -> float:
        """The share of its work in which a core was busy; the rest was waiting."""
        return self.cpu_seconds / self.work_seconds if self.work_seconds > 0 else 1.0

    @property
    def uncertainty(self) -> float:
        """The relative standard error of a rate that its work determines; large for few, varying tasks."""
        return math.sqrt(self.variation / max(1, self.tasks))

    @property
    def waited_for(self) -> float:
        """The share of the window in which its consumer waited for it."""
        return min(1.0, self.wait_seconds / self.seconds)

    @property
    def fills(self) -> bool:
        """Whether its consumer waited all the time, because it takes many elements at once to fill its own buffer."""
        return not self.waits and self.tasks >= _TASKS_MANY and self.waited_for > _ALL


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
        self._values = {record: stage.knob.value for record, stage in self.stages.items()}

    @property
    def is_steady(self) -> bool:
        """Whether no stage compares anything now, or has set its own knob since."""
        return all(
            stage.is_settled and stage.knob.value == self._values[record] for record, stage in self.stages.items()
        )

    def window(self, now: float) -> CountWindow:
        """Return the window from the snapshot until now."""
        return CountWindow(
            self.tops,
            max(now - self.began, 1e-9),
            {
                record: StageDelta(record, stage, self._counts[record], self.began, now)
                for record, stage in self.stages.items()
            },
        )


def stages_of(tops: Sequence[OpRecord]) -> dict[OpRecord, BackgroundOperator]:
    """Return the open stages at and below ``tops`` by their records, starting at the consumer."""
    return {record: stage for top in tops for record in top.walk() if (stage := record.stage) is not None}


class CountWindow:
    """Counts of all stages in a window.

    Attributes:
        tops: the records of the stages from which the consumer's thread takes elements.
        seconds: the length of the window.
        deltas: by the records of the stages, starting at the consumer.
    """

    def __init__(self, tops: tuple[OpRecord, ...], seconds: float, deltas: Mapping[OpRecord, StageDelta]) -> None:
        self.tops, self.seconds, self.deltas = tops, seconds, deltas

    def __iter__(self) -> Iterator[StageDelta]:
        return iter(self.deltas.values())

    @property
    def first(self) -> StageDelta:
        """The counts of the first of ``tops``."""
        return self.deltas[self.tops[0]]

    @property
    def has_output(self) -> bool:
        """Whether the consumer's thread has taken elements."""
        return any(self.deltas[top].taken for top in self.tops)

    @property
    def waited(self) -> float:
        """The share of the time in which the consumer waited."""
        return min(1.0, sum(self._wait_seconds(self.deltas[top]) for top in self.tops) / self.seconds)

    def _inputs(self, delta: StageDelta) -> list[StageDelta]:
        """Return the counts of the stages from which a stage takes elements; those opened meanwhile have none."""
        return [self.deltas[record] for record in delta.record.stages() if record in self.deltas]

    def _wait_seconds(self, delta: StageDelta) -> float:
        """Return how long the consumer of a stage waited for it; for an inline stage, also for its inputs."""
        inputs = self._inputs(delta) if delta.stage.inline else ()
        return delta.wait_seconds + sum(map(self._wait_seconds, inputs))

    @property
    def uncertainty(self) -> float:
        """The relative standard error of rates, by the stage with the largest error.

        Relays with inputs are ignored: their times include waits for their inputs, which are counted there.
        """
        return max((a.uncertainty for a in self if not (a.stage.relays and self._inputs(a))), default=0.0)

    @property
    def coarseness(self) -> float:
        """The relative error of a rate due to workers that finish together."""
        return max((a.value / a.elements for a in self if a.elements and not a.stage.relays), default=0.0)

    @property
    def longest_task(self) -> float:
        """The mean time of a task, in seconds, of the stage with the longest tasks."""
        return max((a.work_seconds / a.tasks for a in self if a.tasks and not a.stage.relays), default=0.0)

    @property
    def cores_used(self) -> float:
        """The mean number of cores that the stages' work kept busy."""
        return sum(a.cpu_seconds for a in self if not a.stage.relays) / self.seconds

    def sections(self, contention: Mapping[OpRecord, float], cores: float) -> Section | None:
        """Return the model of the pipeline, per element of the first top; None if nothing was taken.

        The model needs times without contention. It is unknown what stages have waited for: if all cores are busy, they
        are assumed to have waited for cores.

        Args:
            contention: by stage: the share of its work under a lock, as far as is known.
            cores: the number of cores.
        """
        is_crowded = self.cores_used >= _CROWDED * cores
        first, own, tops = self.first, 0.0, [self.deltas[top] for top in self.tops]
        if first.rate > 0:
            own = max(0.0, 1 - self.waited) / first.rate
        else:  # an op in between, such as a shuffle, reads many elements before it outputs any
            first = next((delta for delta in self if delta.rate > 0), first)
            tops = [first]
        if first.rate <= 0:
            return None

        def section(delta: StageDelta) -> Section:
            stage, inputs = delta.stage, self._inputs(delta)
            ratio, below = delta.rate / first.rate, tuple(map(section, inputs))
            if stage.inline:  # its work is counted in its consumer
                return Section(delta.record, ratio=ratio, inputs=below)
            elements = max(delta.elements, 1)
            waited = sum(map(self._wait_seconds, inputs))
            work = max(0.0, delta.work_seconds - (waited if stage.relays else 0.0))
            cpu, wall = min(delta.cpu_seconds, work) / elements, work / elements
            shared = contention.get(delta.record, 0.0)
            return Section(
                delta.record,
                ratio=ratio,
                wall_seconds=cpu + (wall - cpu) * (1 - shared) * (not is_crowded or delta.computing < _COMPUTES),
                cpu_seconds=cpu,
                lock_seconds=cpu * shared,
                serial_seconds=max(0.0, delta.input_seconds - waited) / elements,
                workers=1 if stage.relays else delta.value,
                variation=delta.variation,
                buffer=stage.capacity,
                inputs=below,
            )

        return Section(CONSUMER, wall_seconds=own, inputs=tuple(map(section, tops)))
