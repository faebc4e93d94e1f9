"""Op record: an op of a running pipeline with its inputs, its operator, and its profiler."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from functools import partial

from dataset.plan.node import Node
from dataset.runtime.contract import Operator
from dataset.runtime.metrics.background import BackgroundOperator, Counters, EndedBackgroundOperator, Tunable
from dataset.runtime.metrics.dropped import DroppedCount
from dataset.runtime.metrics.meter import PullProfiler, ThreadSegment
from dataset.runtime.metrics.scheduling_times import CoreWait
from dataset.runtime.metrics.step_times import StepTimes
from dataset.runtime.metrics.trace import Trace

_TRACED_SECONDS = 5e-3  # between two samples of the waits for a core if there is a trace, which is short


class OpRecord:
    """Record of one op of a running pipeline.

    Attributes:
        node: the node of the plan.
        top: the record of the last op of the pipeline.
        inputs: the records of its inputs, in the order in which they were first opened.
        fused: nodes below it whose work its operator also does; they have no records.
        step_times: how long the work of each of these nodes, and of the op itself, takes.
        opened: how often the op was opened.
        has_operator: False if the op has no operator of its own, such as prefetch(0), or was never opened.
        operator: the operator that is open now, or was last; None also after the end of the iteration.
        meter: measures a sample of its pulls.
        section: the thread segment it is measured in; None while measuring is off.
        knob: the tunable number of the op; None if it has none.
        skipped: counts elements dropped because they were damaged or had failed.
        trace: what it did when; None if that is not recorded.
        core_wait: how long its threads wait for a core.
    """

    def __init__(self, node: Node, trace: Trace | None = None, top: OpRecord | None = None) -> None:
        self.node = node
        self.top: OpRecord = weakref.proxy(self) if top is None else top
        self.trace = trace
        self.core_wait = CoreWait() if trace is None else CoreWait(_TRACED_SECONDS)
        self.inputs: list[OpRecord] = []
        self.fused: tuple[Node, ...] = ()
        self.step_times = StepTimes(1)
        self._by_node: dict[int, OpRecord] = {}
        self.opened = 0
        self.has_operator = False
        self.operator: Operator | None = None
        self._ended: BackgroundOperator | None = None
        self.meter = PullProfiler()
        self.section: ThreadSegment | None = None
        self._is_last = False  # whether it is the last of its thread segment: the segment's pulls begin here
        self.knob: Tunable | None = None
        self._counters: Counters | None = None
        self.skipped = DroppedCount()

    @property
    def counters(self) -> Counters:
        """Counters of its background work, created on first use: most ops have nothing to count."""
        if self._counters is None:
            self._counters = Counters(core_wait=self.core_wait)
            has_tasks = self.node.traits.remote or hasattr(self.node, "num_parallel_calls")
            if self.trace is not None and has_tasks:  # they contain no pulls
                self._counters.trace = partial(self.trace.add_task, self)
        return self._counters

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes whose work the operator does, in the order of the calls; the op itself is the last."""
        return (*reversed(self.fused), self.node)

    @property
    def name(self) -> str:
        """The names of the ``nodes``; user labels take precedence."""
        return " + ".join(node.name or node.label() for node in self.nodes)

    def input(self, node: Node) -> OpRecord:
        """Return the record of an input, the same each time that the input is opened."""
        record = self._by_node.get(id(node))
        if record is None:
            record = self._by_node[id(node)] = OpRecord(node, self.trace, self.top)
            self.inputs.append(record)
        return record

    @property
    def stage(self) -> BackgroundOperator | None:
        """The operator, if it works in the background."""
        return self.operator if isinstance(self.operator, BackgroundOperator) else self._ended

    @property
    def is_a_stage_now(self) -> bool:
        """Whether it currently works in the background and not in the consumer's thread."""
        stage = self.stage
        return stage is not None and not stage.inline

    def input_opened(self, record: OpRecord, operator: Operator) -> None:
        """Note that the node of this input was lowered to ``operator``."""
        record.has_operator = all(operator is not below.operator for below in record.inputs)
        record.opened += 1
        record.replace(operator if record.has_operator else None)
        if self.section is not None:
            self._switch_on_below(record)

    def replace(self, operator: Operator | None) -> None:
        """Set the current operator and release the previous one, such as that of the previous epoch."""
        former = self.operator
        if former is not None and self.section is not None:
            self.meter.switch_off(former)
        if isinstance(former, BackgroundOperator) and isinstance(operator, type(former)):
            learned = former.learned
            if learned is not None:
                operator.warm_start(learned)
        if isinstance(operator, BackgroundOperator):
            operator.record = weakref.proxy(self)
        self.operator = operator

    def switch_on(self, section: ThreadSegment, *, is_last: bool) -> None:
        """Start measuring the pulls of this op and of those below."""
        self.section, self._is_last = section, is_last
        operator = self.operator
        if operator is not None:
            self.meter.switch_on(self, operator, section, is_last=is_last)
            if self.operator is not operator:  # another thread has released it meanwhile
                self.meter.switch_off(operator)
        for record in tuple(self.inputs):
            self._switch_on_below(record)

    def _switch_on_below(self, record: OpRecord) -> None:
        if self.stage is not None:
            record.switch_on(ThreadSegment(), is_last=True)
        elif self.section is not None:
            record.switch_on(self.section, is_last=self._is_last and not self.has_operator)

    def switch_off(self) -> None:
        """Stop measuring."""
        if self.operator is not None and self.section is not None:
            self.meter.switch_off(self.operator)
        self.section = None
        for record in tuple(self.inputs):
            record.switch_off()

    def end(self) -> None:
        """Note the end of the iteration: keep what was measured and release the operators."""
        if isinstance(self.operator, BackgroundOperator):
            self._ended = EndedBackgroundOperator(self.operator)
        self.replace(None)
        for record in self.inputs:
            record.end()

    def below(self) -> Iterator[OpRecord]:
        """Yield the records of the inputs; an input without an operator of its own is replaced by its inputs."""
        for record in tuple(self.inputs):
            if record.has_operator:
                yield record
            else:
                yield from record.below()

    def stages(self) -> Iterator[OpRecord]:
        """Yield the records of the background operators from which the thread of this op takes elements."""
        for record in tuple(self.inputs):
            if record.stage is not None:
                yield record
            else:
                yield from record.stages()

    def walk(self) -> Iterator[OpRecord]:
        """Yield this record and all below it that have an operator, from the consumer's side down."""
        return (record for record in self.all() if record.has_operator)

    def all(self) -> Iterator[OpRecord]:
        """Yield this record and all below it, from the consumer's side down."""
        waiting = [self]
        while waiting:
            record = waiting.pop()
            yield record
            waiting.extend(reversed(tuple(record.inputs)))
