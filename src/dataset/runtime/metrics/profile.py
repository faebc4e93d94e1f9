"""What runs in one iteration: a line for each operator, with what it reads from and what measures it.

The autotuner and ``iterator.stats()`` see a pipeline through these. A line stands for an op of the plan, not for one
operator: what is opened anew for each epoch goes on counting, with the knob as it was set.
"""

from __future__ import annotations

import math
import time
from typing import Any, Protocol

from dataset.options import Options
from dataset.plan.node import Node
from dataset.runtime.metrics.metering import Metering
from dataset.runtime.metrics.op_record import OpRecord
from dataset.runtime.resources.limits import Limits
from dataset.runtime.resources.periodic import PeriodicCallback


class Observer(Protocol):
    """Who looks at a running pipeline now and then, and may turn its knobs: the autotuner."""

    def begin(self, now: float) -> None:
        """The operators are open, and the first element is asked for."""

    def look(self, now: float) -> float:
        """Look; when to look again. Called by any thread of the pipeline, by one at a time; it must not wait."""

    def end(self) -> None:
        """The iteration is over."""

    def stats(self, elements: int) -> Any:
        """What is known of the pipeline so far, of which the consumer has got so many elements."""

    def tuning_log(self) -> Any:
        """What was decided."""


class OpenObserver(Protocol):
    """Makes an observer."""

    def __call__(self, observation: PipelineProfile, options: Options) -> Observer: ...


class PipelineProfile:
    """One iteration, to be looked at from outside.

    Attributes:
        top: a line above all others: what reads from it is the consumer.
        limits: what its operators may use; None before they are open.
        pulse: beats while there is something to look at.
        elements: that the consumer has asked for.
        began: when it asked first, on the clock of ``time.perf_counter``; None before.
        ended: when the iteration was over.
    """

    def __init__(self, plan: Node) -> None:
        self.top = OpRecord(plan)
        self.limits: Limits | None = None
        self.pulse = PeriodicCallback()
        self.elements = 0
        self.began: float | None = None
        self.ended: float | None = None
        self._metering: Metering | None = None
        self._observer: Observer | None = None
        self._observer_due = 0.0
        self._looked = 0.0
        self._step = self._last_step = 0

    def observe(self, observer: Observer) -> None:
        """Have it look from the first element on."""
        self._observer = observer

    def look(self, left: int) -> int:
        """The consumer's side: after how many elements to call this again; ``left`` of these were not asked for."""
        now = time.perf_counter()
        if self.began is None:
            self._begin(now)
        if self.top.section is not None:  # the meters may have seen enough, however little time has passed
            self.pulse.due = min(self.pulse.due, now)
        if now >= self.pulse.due:
            self.pulse.beat(now)
        asked = self.count(left)
        self._step = self._next_step(asked, now - self._looked)
        self._looked = now
        return self._step

    def count(self, left: int) -> int:
        """Of the elements up to the next look, ``left`` were not asked for; how many were. Called before each look."""
        asked = self._step - left
        self.elements += asked
        self._last_step, self._step = self._step, 0
        return asked

    def elements_until(self, left: int) -> int:
        """How many the consumer has asked for, where ``left`` of those up to the next look were not."""
        return self.elements + self._step - left

    def _begin(self, now: float) -> None:
        self.began = now
        self._metering = Metering(self.top, now)
        if self._observer is not None:
            self._observer.begin(now)
        self.pulse.start(self._beat)

    def _next_step(self, elements: int, seconds: float) -> int:
        if not elements:
            return 1
        fitting = int(elements * _LOOK_SECONDS / max(seconds, 1e-9))
        most = _STEP_MAX if self.top.section is None else _MEASURED_STEP_MAX
        return max(1, min(fitting, 2 * self._last_step, most))

    def _beat(self, now: float) -> float:
        due = math.inf if self._metering is None else self._metering.look(now)
        observer = self._observer
        if observer is None:
            return due
        if now >= self._observer_due:
            self._observer_due = observer.look(now)
        return min(due, self._observer_due)

    def close(self) -> None:
        """The operators are closed."""
        if self.ended is not None:
            return
        self.ended = time.perf_counter()
        self.pulse.stop()
        if self._observer is not None:
            self._observer.end()
        # Nothing refers back to this any more: all goes when the iterator does, without the garbage collector.
        self._observer = None
        self.top.end()


_LOOK_SECONDS = 5e-3
_STEP_MAX = 1 << 16
_MEASURED_STEP_MAX = 16  # while pulls are measured, which has to stop soon
