"""Statistics report of a running pipeline, from the counters of stages, the meters of ops, and the model."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from dataset.autotune.model import Section, predict
from dataset.autotune.windows import CONSUMER
from dataset.runtime.metrics.op_record import OpRecord
from dataset.runtime.metrics.profile import PipelineProfile
from dataset.runtime.metrics.statistics import Bottleneck, OperatorStatistics, PipelineStatistics
from dataset.runtime.resources.ledger import UNBOUNDED


def report(profile: PipelineProfile, elements: int, contention: dict[int, float]) -> PipelineStatistics:
    """Return the statistics of a pipeline from the first requested element until now, or until its end.

    Args:
        profile: the profile of the iteration.
        elements: the number of elements that the consumer has received.
        contention: by key of a stage: the share of its work that does not run concurrently.
    """
    return _Report(profile, elements, contention).statistics()


@dataclass(eq=False)
class _Own:
    """Own cost of an op without its inputs, over all elements and threads."""

    record: OpRecord
    runs: str
    depth: int
    elements: float
    seconds: float
    cpu_seconds: float
    input_wait_seconds: float


@dataclass
class _Took:
    """Total cost of all pulls of an op, including those of its inputs."""

    elements: float
    seconds: float
    cpu_seconds: float
    waited_seconds: float


class _Report:
    def __init__(self, profile: PipelineProfile, elements: int, contention: dict[int, float]) -> None:
        self.profile = profile
        self.elements = elements
        self.contention = contention
        self.until = time.perf_counter() if profile.ended is None else profile.ended
        self.seconds = 0.0 if profile.began is None else self.until - profile.began
        self.owns: dict[int, _Own] = {}
        for record in profile.top.below():
            self._measure(record, 0, elements, None, "in the consumer's thread")

    # Costs of the ops

    def _measure(self, record: OpRecord, depth: int, asked: float, scale: float | None, runs: str) -> None:
        """Add the costs of the op and everything upstream of it.

        Args:
            record: the record of the op.
            depth: the number of ops between it and the consumer.
            asked: the number of elements taken from it, if it is the last op of a section.
            scale: the factor to extrapolate from the meters; None if it is the last op of a section.
            runs: where it runs.
        """
        if scale is None:
            scale = _scale(record, asked)
        took = self._took(record, scale)
        below = tuple(record.below())
        from_below = [self._took(source, scale) for source in below]
        stage, counters = record.stage, record.counters
        works_apart = stage is not None and bool(counters.elements)
        own = _Own(record, runs if stage is None else stage.runs, depth, took.elements, 0.0, 0.0, 0.0)
        self.owns[id(record)] = own
        own.input_wait_seconds = sum(map(self._waited_for, below))
        if works_apart and scale != 1.0:  # otherwise all pulls were measured, which is exact
            own.elements = max(own.elements, counters.taken)
        inline_seconds = took.seconds - took.waited_seconds
        if stage is None or inline_seconds > 0:
            own.seconds = max(0.0, inline_seconds - sum(source.seconds for source in from_below))
            own.cpu_seconds = max(0.0, took.cpu_seconds - sum(source.cpu_seconds for source in from_below))
        if works_apart and stage is not None and not stage.relays:
            own.seconds += counters.work_seconds
            own.cpu_seconds += counters.cpu_seconds
        for source in below:
            if stage is None:
                self._measure(source, depth + 1, 0, scale, runs)
            else:
                self._measure(source, depth + 1, self._inputs(record, source), None, _threads_of(record, runs))

    def _took(self, record: OpRecord, scale: float) -> _Took:
        """Return the cost of all pulls of an op: the first, the others extrapolated, and the one in progress."""
        first, rest = record.meter.first, record.meter.rest
        running = self._running(record)
        return _Took(
            elements=_possible(record, first.elements + rest.elements * scale),
            seconds=first.seconds + rest.seconds * scale + running,
            cpu_seconds=first.cpu_seconds + rest.cpu_seconds * scale,
            waited_seconds=first.waited_seconds + rest.waited_seconds * scale + running * record.is_a_stage_now,
        )

    def _running(self, record: OpRecord) -> float:
        """Return the time since the pull in progress began, or 0."""
        since = record.meter.since
        return max(0.0, self.until - since) if since and self.profile.ended is None else 0.0

    def _waited_for(self, record: OpRecord) -> float:
        """Return how long the consumer of an op has waited for it; 0 if it is not a stage."""
        return record.counters.wait_seconds + (self._running(record) if record.is_a_stage_now else 0.0)

    def _inputs(self, record: OpRecord, source: OpRecord) -> float:
        """Return the number of elements that a stage has read, by its workers or (extrapolated) inline."""
        counted = record.counters.inputs
        made = record.counters.elements
        inline = max(0, record.counters.taken - made)
        if not inline:
            return counted
        measured = _measured(record)
        each = _measured(source) / measured if measured else counted / max(made, 1)
        return counted + inline * (each or 1.0)

    # The parts of the report

    def statistics(self) -> PipelineStatistics:
        """Return the whole report."""
        wait = self._wait_seconds()
        limits = self.profile.limits
        assert limits is not None  # it is open
        operators = tuple(self._operator(own) for own in self.owns.values())
        return PipelineStatistics(
            elements=self.elements,
            seconds=self.seconds,
            consumer_seconds=self.seconds - wait,
            wait_seconds=wait,
            operators=operators,
            bottleneck=self._bottleneck(self.seconds - wait),
            buffered_bytes=limits.ledger.held,
            ram_budget=None if limits.ledger.budget == UNBOUNDED else limits.ledger.budget,
            cpu_budget=limits.cores,
        )

    def _wait_seconds(self) -> float:
        """Return how long the consumer was inside ``next``."""
        return min(sum(map(self._seconds_inside, self.profile.top.below())), self.seconds)

    def _seconds_inside(self, record: OpRecord) -> float:
        """Return how long pulls of an op took. Waits are counted; the rest is sampled and extrapolated."""
        own = self.owns[id(record)]
        if record.stage is None:
            return own.seconds + sum(map(self._seconds_inside, record.below()))
        took = self._took(record, _scale(record, own.elements))
        return self._waited_for(record) + max(0.0, took.seconds - took.waited_seconds)

    def _operator(self, own: _Own) -> OperatorStatistics:
        record, stage = own.record, own.record.stage
        counters = record.counters
        buffered, nbytes = (0, 0) if stage is None else stage.buffered()
        calls = stage is not None and stage.knob.name == "num_parallel_calls"
        room = stage is not None and not calls
        return OperatorStatistics(
            name=record.name,
            location=str(record.node.origin),
            depth=own.depth,
            elements=round(own.elements),
            nbytes=round(own.elements * record.meter.element_bytes),
            seconds=own.seconds,
            cpu_seconds=min(own.cpu_seconds, own.seconds),
            input_wait_seconds=own.input_wait_seconds,
            consumer_wait_seconds=self._waited_for(record),
            runs=own.runs,
            parallelism=stage.knob.value if stage is not None and calls else None,
            mean_parallelism=counters.work_seconds / self.seconds if calls and self.seconds else None,
            buffer_size=stage.knob.value if stage is not None and room else None,
            buffered_elements=buffered,
            buffered_bytes=nbytes,
            is_tuned=stage is not None and not stage.knob.is_fixed,
            memory_refusals=counters.refusals,
            skipped_elements=record.skipped.total,
        )

    # The bottleneck

    def _bottleneck(self, consumer_seconds: float) -> Bottleneck | None:
        """Return the op, or the consumer, that would increase the throughput most if it were twice as fast."""
        if not self.elements or self.seconds <= 0 or self.profile.limits is None:
            return None
        cores = self.profile.limits.cores
        now = predict(self._root(consumer_seconds, None), cores)
        if now.seconds <= 0:
            return None
        gains = {
            key: now.seconds / predict(self._root(consumer_seconds, key), cores).seconds
            for key, own in self.owns.items()
            if own.seconds > 0
        }
        gains[_CONSUMER_KEY] = now.seconds / predict(self._root(consumer_seconds / 2, None), cores).seconds
        best = max(gains, key=lambda key: gains[key])
        bound = self._bound(now.binding)
        if bound == CONSUMER and best != _CONSUMER_KEY:
            bound = "the consumer's thread"
        return Bottleneck(self._name(best), gains[best], bound)

    def _name(self, key: int) -> str:
        if key == _CONSUMER_KEY:
            return CONSUMER
        return self.owns[key].record.name

    def _bound(self, binding: str) -> str:
        key = binding.removeprefix("#")
        return self._name(int(key)) if key.isdigit() and int(key) in self.owns else binding

    def _root(self, consumer_seconds: float, halved: int | None) -> Section:
        """Return the model of the pipeline, with the op ``halved`` twice as fast."""
        root = Section(CONSUMER, wall_seconds=consumer_seconds / self.elements)
        for record in self.profile.top.below():
            root = self._into(root, record, 1.0, halved, serial=False)
        return root

    def _into(self, section: Section, record: OpRecord, ratio: float, halved: int | None, *, serial: bool) -> Section:
        """Return the section with the op added to it, or with a new input section that ends with the op."""
        own = self.owns[id(record)]
        factor = (0.5 if halved == id(record) else 1.0) / self.elements / ratio
        seconds, cpu = own.seconds * factor, own.cpu_seconds * factor
        if record.is_a_stage_now:
            below = self._section(record, halved)
            return replace(section, inputs=(*section.inputs, below))
        if serial:
            section = replace(section, serial_seconds=section.serial_seconds + seconds)
        else:
            section = replace(section, wall_seconds=section.wall_seconds + seconds)
        section = replace(section, cpu_seconds=section.cpu_seconds + cpu)
        for source in record.below():
            section = self._into(section, source, ratio, halved, serial=serial)
        return section

    def _section(self, record: OpRecord, halved: int | None) -> Section:
        own, stage = self.owns[id(record)], record.stage
        assert stage is not None  # checked before
        ratio = max(own.elements, 1e-9) / self.elements
        factor = (0.5 if halved == id(record) else 1.0) / max(own.elements, 1e-9)
        shared = self.contention.get(id(record.counters), 0.0)
        cpu = own.cpu_seconds * factor
        wall = own.seconds * factor
        section = Section(
            f"#{id(record)}",
            ratio=ratio,
            wall_seconds=cpu + (wall - cpu) * (1 - shared),
            cpu_seconds=cpu,
            lock_seconds=cpu * shared,
            workers=1 if stage.relays else stage.knob.value,
            buffer=stage.capacity,
        )
        for source in record.below():
            section = self._into(section, source, ratio, halved, serial=not stage.relays)
        return section


def _measured(record: OpRecord) -> int:
    return record.meter.first.elements + record.meter.rest.elements


def _scale(record: OpRecord, asked: float) -> float:
    """Return the factor to extrapolate from the measured pulls after the first to all ``asked`` elements."""
    first, rest = record.meter.first, record.meter.rest
    return max(0.0, asked - first.elements) / rest.elements if rest.elements else 1.0


def _possible(record: OpRecord, elements: float) -> float:
    """Limit a number of elements to the cardinality: extrapolation overestimates, for example with full buffers."""
    available = record.node.cardinality()
    return min(elements, available * record.opened) if available >= 0 else elements


def _threads_of(record: OpRecord, runs: str) -> str:
    """Return where the inputs of an op run, if the op itself is pulled in ``runs``."""
    stage = record.stage
    if stage is None or stage.inline:
        return runs
    if stage.relays:
        return f"in the thread of {record.node.op}"
    return f"in the threads of {record.node.op}, one at a time"


_CONSUMER_KEY = -1
