"""What runs in one iteration: a line for each operator, with what it reads from and what measures it.

The autotuner and ``iterator.stats()`` see a pipeline through these. A line stands for an op of the plan, not for one
operator: what is opened anew for each epoch goes on counting, with the knob as it was set.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

from dataset.plan.node import Node
from dataset.runtime.metering import Meter, Metering
from dataset.runtime.pulse import Pulse
from dataset.runtime.stages import Counters, Knob, Stage

if TYPE_CHECKING:
    from dataset.options import Options
    from dataset.runtime.operator import Iteration, Operator


class Line:
    """One op of a running pipeline.

    Attributes:
        node: of the plan.
        inputs: the lines of what it reads from, in the order in which they were opened first.
        operator: the one that is open now, or was last; None where the op is nothing of its own, such as prefetch(0).
        meter: measures its pulls, now and then.
        knob: of that; None where it has none.
    """

    __slots__ = ("_by_node", "_counters", "inputs", "knob", "meter", "node", "operator")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.inputs: list[Line] = []
        self._by_node: dict[int, Line] = {}
        self.operator: Operator | None = None
        self.meter = Meter()
        self.knob: Knob | None = None
        self._counters: Counters | None = None

    @property
    def counters(self) -> Counters:
        """Made when they are asked for: most ops have nothing to count."""
        if self._counters is None:
            self._counters = Counters()
        return self._counters

    def input(self, node: Node) -> Line:
        """The line of an input, the same each time that it is opened."""
        line = self._by_node.get(id(node))
        if line is None:
            line = self._by_node[id(node)] = Line(node)
            self.inputs.append(line)
        return line

    @property
    def stage(self) -> Stage | None:
        """The operator, where it works in the background."""
        return self.operator if isinstance(self.operator, Stage) else None

    @property
    def is_a_stage_now(self) -> bool:
        """Whether it does work in the background, and not in the consumer's thread."""
        stage = self.stage
        return stage is not None and not stage.inline

    def opened(self, operator: Operator) -> None:
        """This is what the node was lowered to."""
        passes_on = any(operator is line.operator for line in self.inputs)
        self.operator = None if passes_on else operator

    def below(self) -> Iterator[Line]:
        """Those of the inputs that have an operator of their own, or what stands for them."""
        for line in tuple(self.inputs):
            if line.operator is None:
                yield from line.below()
            else:
                yield line

    def walk(self) -> Iterator[tuple[Line, Line | None]]:
        """This line and all below it, each with the one that reads from it; the consumer's side first."""
        first = [self] if self.operator else self.below()
        waiting: list[tuple[Line, Line | None]] = [(line, None) for line in first]
        while waiting:
            line, reader = waiting.pop()
            yield line, reader
            waiting.extend((below, line) for below in reversed(tuple(line.below())))


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

    def __call__(self, observation: Observation, options: Options) -> Observer: ...


class Observation:
    """One iteration, to be looked at from outside.

    Attributes:
        top: a line above all others: what reads from it is the consumer.
        iteration: what its operators share.
        pulse: beats while there is something to look at.
        elements: that the consumer has asked for.
        began: when it asked first, on the clock of ``time.perf_counter``; None before.
        ended: when the iteration was over.
    """

    def __init__(self, plan: Node) -> None:
        self.top = Line(plan)
        self.iteration: Iteration | None = None
        self.pulse = Pulse()
        self.elements = 0
        self.began: float | None = None
        self.ended: float | None = None
        self._metering: Metering | None = None
        self._observer: Observer | None = None
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
        most = _MEASURED_STEP_MAX if self._metering is not None and self._metering.is_on else _STEP_MAX
        return max(1, min(fitting, 2 * self._last_step, most))

    def _beat(self, now: float) -> float:
        due = now + _LOOKS_AGAIN_SECONDS
        if self._metering is not None:
            due = min(due, self._metering.look(now))
        return due if self._observer is None else min(due, self._observer.look(now))

    def close(self) -> None:
        """The operators are closed."""
        if self.ended is not None:
            return
        self.ended = time.perf_counter()
        self.pulse.stop()
        if self._metering is not None:
            self._metering.end()
        if self._observer is not None:
            self._observer.end()


_LOOK_SECONDS = 5e-3
_LOOKS_AGAIN_SECONDS = 0.05
_STEP_MAX = 1 << 16
_MEASURED_STEP_MAX = 16  # while pulls are measured, which has to stop soon
