"""Puts together what is known of a running pipeline: what stages counted, what meters saw, what the model says."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from dataset.autotune.model import Section, predict
from dataset.autotune.windows import CONSUMER
from dataset.runtime.ledger import UNBOUNDED
from dataset.runtime.observation import Line, Observation
from dataset.runtime.statistics import Bottleneck, OperatorStatistics, PipelineStatistics


def report(observation: Observation, elements: int, contention: dict[int, float]) -> PipelineStatistics:
    """The pipeline from the first element that was asked for until now, or until its end.

    Args:
        observation: of the iteration.
        elements: that the consumer has got.
        contention: by key of a stage: the share of its work that does not go side by side.
    """
    return _Report(observation, elements, contention).statistics()


@dataclass(eq=False)
class _Own:
    """What an op took by itself, its inputs left out; all elements, all threads."""

    line: Line
    runs: str
    depth: int
    elements: float
    seconds: float
    cpu_seconds: float
    input_wait_seconds: float


class _Report:
    def __init__(self, observation: Observation, elements: int, contention: dict[int, float]) -> None:
        self.observation = observation
        self.elements = elements
        self.contention = contention
        until = time.perf_counter() if observation.ended is None else observation.ended
        self.seconds = 0.0 if observation.began is None else until - observation.began
        self.owns: dict[int, _Own] = {}
        for line in observation.top.below():
            self._measure(line, 0, elements, None, "in the consumer's thread")

    # What each op took

    def _measure(self, line: Line, depth: int, asked: float, scale: float | None, runs: str) -> None:
        """Enter the op and all below it, of which ``asked`` elements were taken.

        Args:
            line: of the op.
            depth: how many ops are between it and the consumer.
            asked: elements that came out, where it is the last of a section.
            scale: by what the figures of the meters must be multiplied; None where it is the last of a section.
            runs: in whose thread.
        """
        meter = line.meter
        if scale is None:
            scale = asked / meter.elements if meter.elements else 0.0
        below = tuple(line.below())
        stage = line.stage
        works_apart = stage is not None and bool(line.counters.elements)
        own = _Own(line, runs if stage is None else stage.runs, depth, meter.elements * scale, 0.0, 0.0, 0.0)
        self.owns[id(line)] = own
        own.input_wait_seconds = sum(source.counters.wait_seconds for source in below)
        if works_apart:
            own.elements = max(own.elements, line.counters.taken)
        inline_seconds = meter.seconds - meter.waited_seconds
        if stage is None or inline_seconds > 0:
            own.seconds = scale * max(0.0, inline_seconds - sum(source.meter.seconds for source in below))
            own.cpu_seconds = scale * max(0.0, meter.cpu_seconds - sum(source.meter.cpu_seconds for source in below))
        if works_apart and stage is not None and not stage.relays:
            own.seconds += line.counters.work_seconds
            own.cpu_seconds += line.counters.cpu_seconds
        for source in below:
            if stage is None:
                self._measure(source, depth + 1, 0, scale, runs)
            else:
                self._measure(source, depth + 1, self._inputs(line, source), None, _threads_of(line))

    def _inputs(self, line: Line, source: Line) -> float:
        """Elements that a stage has read, by its workers or, measured now and then, inline."""
        counted = line.counters.inputs
        made = line.counters.elements
        inline = max(0, line.counters.taken - made)
        if not inline:
            return counted
        each = source.meter.elements / line.meter.elements if line.meter.elements else counted / max(made, 1)
        return counted + inline * (each or 1.0)

    # The parts of the report

    def statistics(self) -> PipelineStatistics:
        """All of it."""
        wait = self._wait_seconds()
        iteration = self.observation.iteration
        assert iteration is not None  # it is open
        operators = tuple(self._operator(own) for own in self.owns.values())
        return PipelineStatistics(
            elements=self.elements,
            seconds=self.seconds,
            consumer_seconds=self.seconds - wait,
            wait_seconds=wait,
            operators=operators,
            bottleneck=self._bottleneck(self.seconds - wait),
            buffered_bytes=iteration.ledger.held,
            ram_budget=None if iteration.ledger.budget == UNBOUNDED else iteration.ledger.budget,
            cpu_budget=iteration.cores,
        )

    def _wait_seconds(self) -> float:
        """How long the consumer was inside ``next``."""
        seconds = 0.0
        for line in self.observation.top.below():
            meter = line.meter
            seconds += meter.seconds / meter.elements * self.elements if meter.elements else 0.0
        return min(seconds, self.seconds)

    def _operator(self, own: _Own) -> OperatorStatistics:
        line, stage = own.line, own.line.stage
        counters, node = line.counters, line.node
        buffered, nbytes = (0, 0) if stage is None or self.observation.ended is not None else stage.buffered()
        calls = stage is not None and stage.knob.name == "num_parallel_calls"
        room = stage is not None and not calls
        return OperatorStatistics(
            name=node.name or node.described(),
            location=str(node.origin),
            depth=own.depth,
            elements=round(own.elements),
            nbytes=round(own.elements * line.meter.element_bytes),
            seconds=own.seconds,
            cpu_seconds=min(own.cpu_seconds, own.seconds),
            input_wait_seconds=own.input_wait_seconds,
            consumer_wait_seconds=counters.wait_seconds,
            runs=own.runs,
            parallelism=stage.knob.value if stage is not None and calls else None,
            mean_parallelism=counters.work_seconds / self.seconds if calls and self.seconds else None,
            buffer_size=stage.knob.value if stage is not None and room else None,
            buffered_elements=buffered,
            buffered_bytes=nbytes,
            is_tuned=stage is not None and not stage.knob.is_fixed,
            memory_refusals=counters.refusals,
        )

    # The bottleneck

    def _bottleneck(self, consumer_seconds: float) -> Bottleneck | None:
        """The op, or the consumer, that would gain most by being twice as fast."""
        if not self.elements or self.seconds <= 0 or self.observation.iteration is None:
            return None
        cores = self.observation.iteration.cores
        now = predict(self._root(consumer_seconds, None), cores)
        if now.seconds <= 0:
            return None
        gains = {key: now.seconds / predict(self._root(consumer_seconds, key), cores).seconds
                 for key in [None, *self.owns] if key is not None and self.owns[key].seconds > 0}  # fmt: skip
        gains[_CONSUMER_KEY] = now.seconds / predict(self._root(consumer_seconds / 2, None), cores).seconds
        best = max(gains, key=lambda key: gains[key])
        return Bottleneck(self._name(best), gains[best], self._bound(now.binding))

    def _name(self, key: int) -> str:
        if key == _CONSUMER_KEY:
            return CONSUMER
        node = self.owns[key].line.node
        return node.name or node.described()

    def _bound(self, binding: str) -> str:
        key = binding.removeprefix("#")
        return self._name(int(key)) if key.isdigit() and int(key) in self.owns else binding

    def _root(self, consumer_seconds: float, halved: int | None) -> Section:
        """The model of the pipeline, in which one op is twice as fast."""
        root = Section(CONSUMER, wall_seconds=consumer_seconds / self.elements)
        for line in self.observation.top.below():
            root = self._into(root, line, 1.0, halved, serial=False)
        return root

    def _into(self, section: Section, line: Line, ratio: float, halved: int | None, *, serial: bool) -> Section:
        """The section with the op in it, or with the section that the op begins as an input."""
        own = self.owns[id(line)]
        factor = (0.5 if halved == id(line) else 1.0) / self.elements / ratio
        seconds, cpu = own.seconds * factor, own.cpu_seconds * factor
        if line.is_a_stage_now:
            below = self._section(line, halved)
            return replace(section, inputs=(*section.inputs, below))
        if serial:
            section = replace(section, serial_seconds=section.serial_seconds + seconds)
        else:
            section = replace(section, wall_seconds=section.wall_seconds + seconds)
        section = replace(section, cpu_seconds=section.cpu_seconds + cpu)
        for source in line.below():
            section = self._into(section, source, ratio, halved, serial=serial)
        return section

    def _section(self, line: Line, halved: int | None) -> Section:
        own, stage = self.owns[id(line)], line.stage
        assert stage is not None  # asked before
        ratio = max(own.elements, 1e-9) / self.elements
        factor = (0.5 if halved == id(line) else 1.0) / max(own.elements, 1e-9)
        shared = self.contention.get(id(line.counters), 0.0)
        cpu = own.cpu_seconds * factor
        wall = own.seconds * factor
        section = Section(
            f"#{id(line)}",
            ratio=ratio,
            wall_seconds=wall if not shared else cpu + (wall - cpu) * (1 - shared),
            cpu_seconds=cpu,
            lock_seconds=cpu * shared,
            workers=1 if stage.relays else stage.knob.value,
            buffer=stage.knob.value if stage.relays else stage.capacity,
        )
        for source in line.below():
            section = self._into(section, source, ratio, halved, serial=not stage.relays)
        return section


def _threads_of(line: Line) -> str:
    """Where the ops run from which a stage reads."""
    if line.stage is not None and line.stage.relays:
        return f"in the thread of {line.node.op}"
    return f"in the threads of {line.node.op}, one at a time"


_CONSUMER_KEY = -1
