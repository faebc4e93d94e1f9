"""What the stages of a pipeline did between two moments, and what follows from it for the model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dataset.autotune.model import Section
from dataset.runtime.metrics.background import BackgroundOperator, Counters

_VARIATION_MAX = 16.0  # one element that took very long says little about the next
_CROWDED = 0.8  # of the cores: above, who computes waits for one now and then
_COMPUTES = 0.3  # of its time: who does less has something else to wait for
_TASKS_MANY = 8
_ALL = 0.95
_RECENT = 0.5  # of the window: a wait that is no farther from its beginning, or its end, stands for that


@dataclass(frozen=True, eq=False)
class StageNode:
    """A stage in its place in the pipeline.

    Attributes:
        name: of the op.
        stage: what it counts, and its knob.
        inputs: the stages that it reads from, through ops that run in its threads.
    """

    name: str
    stage: BackgroundOperator
    inputs: tuple[StageNode, ...] = ()

    @property
    def key(self) -> int:
        """Names are not unique in a pipeline. This is, and stays when a stage is opened anew."""
        return id(self.stage.counters)

    def __iter__(self) -> Iterator[StageNode]:
        """Yield the part and all below it."""
        yield self
        for part in self.inputs:
            yield from part


class PipelineSnapshot:
    """The counts of a stage at a time, with the wait that goes on as far as it has gone."""

    __slots__ = ("values",)

    def __init__(self, counters: Counters, now: float) -> None:
        self.values = {name: getattr(counters, name) for name in Counters.__slots__}
        since = self.values["waiting_since"]
        if since:
            self.values["wait_seconds"] += max(0.0, now - since)


@dataclass(frozen=True, eq=False)
class StageDelta:
    """What a stage did in a window.

    Attributes:
        part: which.
        seconds: of the window.
        rate: elements per second that were taken. Exact where the consumer has waited: from one wait to another. While
            it waits for so many at once that it has got none yet, those that were made.
        taken, elements, tasks, waits, refusals: as counted.
        work_seconds, cpu_seconds, input_seconds, wait_seconds, rest_seconds: as counted.
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
        """Return what the stage has counted since that moment, which was at ``began``."""
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
        """Elements per second that were made."""
        return self.elements / self.seconds

    @property
    def busy(self) -> float:
        """How many workers were at work, on average."""
        return self.work_seconds / self.seconds

    @property
    def computing(self) -> float:
        """The share of its work in which the processor was busy; the rest was waiting."""
        return self.cpu_seconds / self.work_seconds if self.work_seconds > 0 else 1.0

    @property
    def uncertainty(self) -> float:
        """The relative standard error of a rate that its work decides: of few tasks that vary, it says little."""
        return math.sqrt(self.variation / max(1, self.tasks))

    @property
    def waited_for(self) -> float:
        """The share of the window in which its consumer waited for it."""
        return min(1.0, self.wait_seconds / self.seconds)

    @property
    def fills(self) -> bool:
        """Whether its consumer takes so many at once, to fill a buffer of its own, that it waited all the time."""
        return not self.waits and self.tasks >= _TASKS_MANY and self.waited_for > _ALL


_COUNTED = (
    "taken", "elements", "tasks", "waits", "refusals",
    "work_seconds", "cpu_seconds", "input_seconds", "wait_seconds", "rest_seconds",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class CountWindow:
    """What all stages did between two moments.

    Attributes:
        tops: the stages from which the consumer's thread takes.
        seconds: of the window.
        activities: by the keys of the parts, from the consumer's side down.
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
        """Return what the thread waited that takes from the part: where that works inline, for those below it."""
        seconds = self.activities[part.key].wait_seconds
        return seconds + (sum(map(self._wait_seconds, part.inputs)) if part.stage.inline else 0.0)

    @property
    def uncertainty(self) -> float:
        """How well rates are known: the relative standard error, by the stage whose tasks say least.

        What a relay takes varies with what it waits for below, which is not chance; those below say what is.
        """
        known = (a.uncertainty for a in self if not (a.part.stage.relays and a.part.inputs))
        return max(known, default=0.0)

    @property
    def coarseness(self) -> float:
        """What workers that end together may add to a rate, or take from it, relatively."""
        return max(
            (a.part.stage.knob.value / a.elements for a in self if a.elements and not a.part.stage.relays), default=0.0
        )

    @property
    def longest_task(self) -> float:
        """Seconds that a task takes, on average, of the stage whose tasks take longest."""
        return max((a.work_seconds / a.tasks for a in self if a.tasks and not a.part.stage.relays), default=0.0)

    @property
    def cores_used(self) -> float:
        """By the work of the stages, on average."""
        return sum(a.cpu_seconds for a in self if not a.part.stage.relays) / self.seconds

    def sections(self, contention: dict[int, float], cores: float) -> Section | None:
        """Return the pipeline as the model sees it, per element of the first top; None where nothing was taken.

        The model wants times as they are with nothing else going on. What stages have waited for is not known: where
        all cores are busy, it is taken to be cores.

        Args:
            contention: by the keys of the parts: the share of its work under a lock, as far as is known.
            cores: that there are.
        """
        is_crowded = self.cores_used >= _CROWDED * cores
        first = self.activities[self.tops[0].key]
        if first.rate <= 0:  # something between, such as a shuffle, takes in a lot before it gives anything
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
        if stage.inline:  # what it does is counted where it is done: with who takes from it
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
    """Return what the model calls it."""
    return f"{part.name}#{part.key:x}"


class Watch:
    """Remembers a moment, and tells what was done since."""

    def __init__(self, tops: Sequence[StageNode], now: float) -> None:
        self.began = now
        self.tops = tuple(tops)
        self._moments = [(part, PipelineSnapshot(part.stage.counters, now)) for top in tops for part in top]

    def window(self, now: float) -> CountWindow:
        """From then until now."""
        activities = {part.key: StageDelta.between(part, moment, self.began, now) for part, moment in self._moments}
        return CountWindow(self.tops, max(now - self.began, 1e-9), activities)
