"""Count windows: what the stages of a pipeline did in an interval, and the model derived from it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dataset.autotune.model import Section
from dataset.runtime.metrics.background import BackgroundOperator, Counters

_VARIATION_MAX = 16.0  # a single very slow element says little about the next ones
_CROWDED = 0.8  # of the cores: above this load, workers sometimes wait for a core
_COMPUTES = 0.3  # of its time: a stage that computes less waits for something else
_TASKS_MANY = 8
_ALL = 0.95
_RECENT = 0.5  # of the window: a wait this close to its beginning or end marks that boundary


@dataclass(frozen=True, eq=False)
class StageNode:
    """Stage at its position in the pipeline.

    Attributes:
        name: the name of the op.
        stage: the counters and the knob.
        inputs: the stages from which it reads, through ops that run in its threads.
    """

    name: str
    stage: BackgroundOperator
    inputs: tuple[StageNode, ...] = ()

    @property
    def key(self) -> int:
        """A key that is unique in the pipeline, unlike the name, and does not change when a stage is reopened."""
        return id(self.stage.counters)

    def __iter__(self) -> Iterator[StageNode]:
        """Yield the stage and everything upstream of it."""
        yield self
        for part in self.inputs:
            yield from part


class PipelineSnapshot:
    """Snapshot of the counters of a stage, including the current wait so far."""

    __slots__ = ("values",)

    def __init__(self, counters: Counters, now: float) -> None:
        self.values = {name: getattr(counters, name) for name in Counters.__slots__}
        since = self.values["waiting_since"]
        if since:
            self.values["wait_seconds"] += max(0.0, now - since)


@dataclass(frozen=True, eq=False)
class StageDelta:
    """Counts of a stage in a window.

    Attributes:
        part: the stage.
        seconds: the length of the window.
        rate: the elements per second that were taken. If the consumer has waited, it is measured exactly, from one wait
            to another. If the consumer is waiting for many elements at once and has got none yet, the elements that
            were produced count instead.
        taken, elements, tasks, waits, refusals: the changes of these counters.
        work_seconds, cpu_seconds, input_seconds, wait_seconds, rest_seconds: the changes of these counters.
        variation: squared coefficient of variation of the work of an element.
    """

    part: StageNode
    seconds: float
    rate: float
    taken: int
    elements: int
    tasks: int
    waits: int
    refusals: int
    work_seconds: float
    cpu_seconds: float
    input_seconds: float
    wait_seconds: float
    rest_seconds: float
    variation: float

    @classmethod
    def between(cls, part: StageNode, since: PipelineSnapshot, began: float, now: float) -> StageDelta:
        """Return what the stage has counted since the snapshot ``since``, taken at ``began``."""
        before, counters = since.values, part.stage.counters
        after = PipelineSnapshot(counters, now).values
        change = {name: after[name] - before[name] for name in Counters.__slots__}
        elements, work = change["elements"], change["work_seconds"]
        seconds = max(now - began, 1e-9)
        rate = change["taken"] / seconds
        begins_marked = before["waits"] and began - before["waited_until"] < _RECENT * seconds
        ends_marked = change["waits"] and now - after["waited_until"] < _RECENT * seconds
        if begins_marked and ends_marked and change["waited_until"] > 0:
            rate = change["taken_before"] / change["waited_until"]
        elif not change["waits"] and after["waiting_since"] and change["tasks"] >= _TASKS_MANY:
            rate = elements / seconds
        mean_square = (work / elements) ** 2 if elements else 0.0
        return cls(
            part=part,
            seconds=seconds,
            rate=rate,
            variation=min(_VARIATION_MAX, max(0.0, change["squares"] / elements / mean_square - 1))
            if mean_square
            else 0.0,
            **{name: change[name] for name in _COUNTED},
        )

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


_COUNTED = (
    "taken", "elements", "tasks", "waits", "refusals",
    "work_seconds", "cpu_seconds", "input_seconds", "wait_seconds", "rest_seconds",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class CountWindow:
    """Counts of all stages in a window.

    Attributes:
        tops: the stages from which the consumer's thread takes elements.
        seconds: the length of the window.
        activities: by the keys of the stages, starting at the consumer.
    """

    tops: tuple[StageNode, ...]
    seconds: float
    activities: dict[int, StageDelta] = field(repr=False)

    def __iter__(self) -> Iterator[StageDelta]:
        return iter(self.activities.values())

    @property
    def waited(self) -> float:
        """The share of the time in which the consumer waited."""
        return min(1.0, sum(self._wait_seconds(top) for top in self.tops) / self.seconds)

    def _wait_seconds(self, part: StageNode) -> float:
        """Return how long the consumer of a stage waited for it; for an inline stage, also for its inputs."""
        seconds = self.activities[part.key].wait_seconds
        return seconds + (sum(map(self._wait_seconds, part.inputs)) if part.stage.inline else 0.0)

    @property
    def uncertainty(self) -> float:
        """The relative standard error of rates, by the stage with the largest error.

        Relays with inputs are ignored: their times include waits for their inputs, which are counted there.
        """
        known = (a.uncertainty for a in self if not (a.part.stage.relays and a.part.inputs))
        return max(known, default=0.0)

    @property
    def coarseness(self) -> float:
        """The relative error of a rate due to workers that finish together."""
        return max(
            (a.part.stage.knob.value / a.elements for a in self if a.elements and not a.part.stage.relays), default=0.0
        )

    @property
    def longest_task(self) -> float:
        """The mean time of a task, in seconds, of the stage with the longest tasks."""
        return max((a.work_seconds / a.tasks for a in self if a.tasks and not a.part.stage.relays), default=0.0)

    @property
    def cores_used(self) -> float:
        """The mean number of cores that the stages' work kept busy."""
        return sum(a.cpu_seconds for a in self if not a.part.stage.relays) / self.seconds

    def sections(self, contention: dict[int, float], cores: float) -> Section | None:
        """Return the model of the pipeline, per element of the first top; None if nothing was taken.

        The model needs times without contention. It is unknown what stages have waited for: if all cores are busy, they
        are assumed to have waited for cores.

        Args:
            contention: by the keys of the stages: the share of their work under a lock, as far as is known.
            cores: the number of cores.
        """
        is_crowded = self.cores_used >= _CROWDED * cores
        first = self.activities[self.tops[0].key]
        if first.rate <= 0:  # an op in between, such as a shuffle, reads many elements before it outputs any
            first = next((activity for activity in self if activity.rate > 0), first)
            if first.rate <= 0:
                return None
            below = self._section(first.part, first.rate, contention, is_crowded=is_crowded)
            return Section(CONSUMER, inputs=(below,))
        own = max(0.0, 1 - self.waited) / first.rate
        inputs = tuple(self._section(top, first.rate, contention, is_crowded=is_crowded) for top in self.tops)
        return Section(CONSUMER, wall_seconds=own, inputs=inputs)

    def _section(self, part: StageNode, unit: float, contention: dict[int, float], *, is_crowded: bool) -> Section:
        activity, stage = self.activities[part.key], part.stage
        elements = max(activity.elements, 1)
        waited = sum(map(self._wait_seconds, part.inputs))
        inputs = tuple(self._section(below, unit, contention, is_crowded=is_crowded) for below in part.inputs)
        if stage.inline:  # its work is counted in its consumer
            return Section(section_name(part), ratio=activity.rate / unit, inputs=inputs)
        reading = max(0.0, activity.input_seconds - waited) / elements
        work = activity.work_seconds - (waited if stage.relays else 0.0)
        cpu = min(activity.cpu_seconds, max(work, 0.0)) / elements
        shared = contention.get(part.key, 0.0)
        wall = max(work, 0.0) / elements
        return Section(
            section_name(part),
            ratio=activity.rate / unit,
            wall_seconds=cpu + (wall - cpu) * (1 - shared) * (not is_crowded or activity.computing < _COMPUTES),
            cpu_seconds=cpu,
            lock_seconds=cpu * shared,
            serial_seconds=reading,
            workers=1 if stage.relays else stage.knob.value,
            variation=activity.variation,
            buffer=stage.capacity,
            inputs=inputs,
        )


CONSUMER = "the consumer"


def section_name(part: StageNode) -> str:
    """Return the name of the stage in the model."""
    return f"{part.name}#{part.key:x}"


class Watch:
    """Snapshot of all stages at a time, from which windows are computed."""

    def __init__(self, tops: Sequence[StageNode], now: float) -> None:
        self.began = now
        self.tops = tuple(tops)
        self._moments = [(part, PipelineSnapshot(part.stage.counters, now)) for top in tops for part in top]

    def window(self, now: float) -> CountWindow:
        """Return the window from the snapshot until now."""
        activities = {part.key: StageDelta.between(part, moment, self.began, now) for part, moment in self._moments}
        return CountWindow(self.tops, max(now - self.began, 1e-9), activities)
