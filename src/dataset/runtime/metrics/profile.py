"""Pipeline profile: a record for each op of one iteration, with its inputs and measurements.

The autotuner and ``iterator.stats()`` see a pipeline through it. A record belongs to an op of the plan, not to one
operator: if the op is opened again for each epoch, its record continues, with the knob as it was set.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from dataset.options import Options
from dataset.plan.node import Node
from dataset.runtime.metrics.metering import Metering
from dataset.runtime.metrics.op_record import OpRecord
from dataset.runtime.metrics.step_waits import StepWaits
from dataset.runtime.metrics.trace import Trace
from dataset.runtime.resources.garbage import ScheduledCollection
from dataset.runtime.resources.limits import Limits
from dataset.runtime.resources.periodic import PeriodicCallback
from dataset.world import time

if TYPE_CHECKING:
    from dataset.runtime.metrics.statistics import OperatorStatistics


class Observer(Protocol):
    """Looks at a running pipeline regularly and may change its knobs: the autotuner."""

    def begin(self, now: float) -> None:
        """Called when the operators are open and the first element is requested."""

    def look(self, now: float) -> float:
        """Look, and return when to look again. Called from any thread, by one at a time; must not block."""

    def end(self) -> None:
        """Called at the end of the iteration."""

    def measured(self, elements: int) -> Any:
        """Return the measurements so far (autotune/report.py); the consumer has got ``elements`` elements."""

    def tuning_log(self) -> Any:
        """Return the decisions made so far."""


class OpenObserver(Protocol):
    """Creates an observer."""

    def __call__(self, profile: PipelineProfile, options: Options) -> Observer: ...


class PipelineProfile:
    """Profile of one iteration.

    Attributes:
        top: the topmost record; the consumer reads from it.
        limits: what the operators may use; set when they are opened.
        pulse: the periodic callback; active while there is something to observe.
        elements: the number of elements that the consumer has requested.
        began: the time of the first request on the clock of ``time.perf_counter``; None before.
        ended: the time when the iteration ended.
        waits: how long the steps of the consumer waited.
        at_end: functions that are called after the iteration has ended, with the last figures.
        garbage: collects garbage at fixed steps; None if Python decides.
    """

    def __init__(self, plan: Node, trace: Trace | None = None) -> None:
        self.top = OpRecord(plan, trace)
        self.limits: Limits  # set when the operators are opened
        self.pulse = PeriodicCallback()
        self.elements = 0
        self.began: float | None = None
        self.ended: float | None = None
        self._cpu_began = self._cpu_ended = 0.0  # CPU time of this process at the first request, and at the end
        self.waits = StepWaits()
        self.at_end: list[Callable[[], None]] = []
        self.garbage: ScheduledCollection | None = None
        self._metering: Metering | None = None
        self._observer: Observer | None = None
        self._observer_due = 0.0
        self._looked = 0.0
        self._step = self._last_step = 0
        self._free_step = 1  # the last step while nothing was measured; it applies again after a measurement

    def observe(self, observer: Observer) -> None:
        """Register the observer; it begins to look at the first element."""
        self._observer = observer

    def look(self, left: int) -> int:
        """Return how many elements to request until the next look; ``left`` of the last number were not requested."""
        now = time.perf_counter()
        if self.began is None:
            self._begin(now)
        if self.top.section is not None:  # the profilers may have seen enough, even after a short time
            self.pulse.due = min(self.pulse.due, now)
        if now >= self.pulse.due:
            self.pulse.beat(now)
        asked = self.count(left)
        self._step = self._next_step(asked, now - self._looked)
        if self.garbage is not None:
            self._step = min(self._step, self.garbage.look(self.elements))
        self._looked = now
        return self._step

    def count(self, left: int) -> int:
        """Count the elements requested since the last look: the step minus ``left``. Called before each look."""
        asked = self._step - left
        self.elements += asked
        self._last_step, self._step = self._step, 0
        return asked

    def elements_until(self, left: int) -> int:
        """Return how many elements the consumer has requested if ``left`` of the current step were not."""
        return self.elements + self._step - left

    @property
    def cpu_seconds(self) -> float:
        """The CPU time of this process during the iteration."""
        return (time.process_time() if self.ended is None else self._cpu_ended) - self._cpu_began

    def record_of(self, node: Node) -> OpRecord | None:
        """Return the record of an op; None if it is not observed, such as in a dataset that a function returned."""
        return next((record for record in self.top.all() if record.node is node), None)

    def costs(self, node: Node) -> dict[Node, OperatorStatistics]:
        """Return the statistics of an op and of those upstream up to now, by node; empty if they are unknown."""
        record = self.record_of(node)
        if self._observer is None or record is None:
            return {}
        found = self._observer.measured(self.elements).operators
        return {part.node: found[part] for part in record.walk() if part in found}

    def _begin(self, now: float) -> None:
        self.began = now
        self._cpu_began = time.process_time()
        self._metering = Metering(self.top, now)
        if self._observer is not None:
            self._observer.begin(now)
        self.pulse.start(self._beat)
        if self.garbage is not None:
            self.garbage.begin()
            self.at_end.append(self.garbage.end)

    def _next_step(self, elements: int, seconds: float) -> int:
        if not elements:
            return 1
        fitting = int(elements * _LOOK_SECONDS / max(seconds, 1e-9))
        if self.top.section is not None:
            return max(1, min(fitting, 2 * self._last_step, _MEASURED_STEP_MAX))
        self._free_step = max(1, min(fitting, max(2 * self._last_step, self._free_step), _STEP_MAX))
        return self._free_step

    def _beat(self, now: float) -> float:
        due = math.inf if self._metering is None else self._metering.look(now)
        observer = self._observer
        if observer is None:
            return due
        if now >= self._observer_due:
            self._observer_due = observer.look(now)
        return min(due, self._observer_due)

    def close(self) -> None:
        """Note that the operators are closed."""
        if self.ended is not None:
            return
        self._cpu_ended = time.process_time()
        self.ended = time.perf_counter()
        self.pulse.stop()
        if self._observer is not None:
            self._observer.end()
        # Nothing refers back to this any more, so everything is freed with the iterator, without the garbage collector.
        self._observer = None
        self.top.end()
        while self.at_end:
            self.at_end.pop()()


_LOOK_SECONDS = 1e-2  # a look takes some 20 us, because its code has left the caches of the processor
_STEP_MAX = 1 << 16
_MEASURED_STEP_MAX = 16  # while pulls are measured, which must stop soon
