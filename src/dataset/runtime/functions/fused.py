"""Fused operator: several elementwise operators run as one, so that each element passes through all functions at once.

The result of one function is still in the processor's cache when the next one reads it, its memory is reused for the
next element, and no chunks are built between functions. If many small elements are requested, this gains nothing. Then
a whole chunk passes through one function after the other, as without fusion.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from dataset.amounts import CACHE_BYTES, LARGE_ELEMENT_BYTES, STEP_BYTES
from dataset.plan.structure import LEAF, is_tuple
from dataset.runtime.chunks.chunk import Chunk, Outcome, descended
from dataset.runtime.chunks.normalization import chunk_of_rows
from dataset.runtime.functions.elementwise_operator import ElementwiseOperator, first_outcome, run_in_steps
from dataset.runtime.functions.kernels.kernel import Done, all_outcomes, outcomes_of_output
from dataset.runtime.metrics.step_times import StepTimes
from dataset.runtime.parallel.blocks import Block
from dataset.runtime.parallel.tasks import Divisible, InputReader, Task, Worker
from dataset.runtime.position import Position, Run
from dataset.runtime.resources.exceptions import with_location
from dataset.world import threading

T = TypeVar("T")


class FusedOperator(Divisible):
    """Operator for a chain of stages; the input of each stage is the stage before.

    The stages keep everything that a state needs: their positions, and the inputs and outputs that wait after an
    exception. While something waits between two stages, the chain runs unfused.

    Args:
        stages: in the order of the calls.
        times: measures how long each stage takes.
        calls_each: the maximum number of concurrent calls of each function, if several workers run the chain.
    """

    def __init__(self, stages: Sequence[ElementwiseOperator], times: StepTimes, calls_each: int | None = None) -> None:
        super().__init__(stages[-1], stages[-1].node)
        self._times = times
        self._bounds = [None if calls_each is None else threading.Semaphore(calls_each) for _ in stages]
        self._element_bytes = 0  # of the last output; 0 if unknown
        self._passed_bytes: int | None = None  # maximum between two stages, per element; measured on the first element
        self._passes_bare = False  # whether elements between two stages are bare components, not tuples or dicts
        self._passes = False  # whether a stage must skip elements that were given before a state was saved
        self._works_for_others = False  # if true, an interrupt is an outcome like any other
        self.one_to_one = all(stage.one_to_one for stage in stages)
        self.write_into_batch = stages[-1].write_into_batch
        self._set_stages(stages)

    def _set_stages(self, stages: Sequence[ElementwiseOperator]) -> None:
        self.source = stages[-1]
        self._stages = list(stages)
        self._first, self._last = stages[0], stages[-1]
        self.outbox = self._last.outbox

    def read_through(self, reader: InputReader | None) -> None:
        self._first.read_through(reader)

    @property
    def at(self) -> int:  # type: ignore[override]  # it is read-only
        return self._first.at

    def produce(self, n: int) -> Chunk | None:
        return self._timed(self._produce, n)

    def _timed(self, call: Callable[..., T], *given: Any) -> T:
        if not self._times.begin_pull():
            return call(*given)
        with self._times.measured(self._stages):
            return call(*given)

    def _produce(self, n: int) -> Chunk | None:
        while True:
            if self._waits_inside() or self._passes:
                return self._pull_unfused(n)
            if self._passed_bytes is None:
                inputs = self._next_inputs(1)
            elif (n > 1 or not self._passes_bare) and n * self._passed_bytes < CACHE_BYTES:
                return self._last.pull(n)
            else:
                inputs = self._next_inputs(n)
            if inputs is None:
                return None
            output = self._call(inputs)
            if output is not None:
                if self._passed_bytes is None:
                    self._passed_bytes = max(stage.bytes_passed for stage in self._stages[:-1])
                    self._passes_bare = all(stage.structure in {None, LEAF} for stage in self._stages[:-1])
                return output

    def _waits_inside(self) -> bool:
        """Return whether some elements have passed through only a part of the stages."""
        return any(stage.outbox for stage in self._stages) or any(stage.has_todo for stage in self._stages[1:])

    def _pull_unfused(self, n: int) -> Chunk | None:
        try:
            return self._last.pull(n)
        finally:
            self._passes = self._passes and any(stage.given for stage in self._stages)

    def _next_inputs(self, n: int) -> Chunk | None:
        try:
            return self._first.next_inputs(n)
        except Exception:
            for stage in self._stages[1:]:
                stage.at += 1  # an element that failed upstream also has a number
            raise

    def _call(self, inputs: Chunk) -> Chunk | None:
        """Return the outputs up to an exception; the exception and the inputs after it wait in the stages."""
        size = self._element_bytes if self.write_into_batch else 0
        try:
            if size >= LARGE_ELEMENT_BYTES:
                done = run_in_steps(self.run, inputs, 0, max(1, STEP_BYTES // size), Block(inputs.length))
            else:
                done = self.run(inputs, 0)
        except BaseException:
            self._first.unread(inputs, 0)
            raise
        if done.count < inputs.length:
            self._first.unread(inputs, done.count)
        try:
            output = first_outcome(done, self.outbox)
        finally:
            del done  # see runtime/contract.py on exceptions that are kept
        if self.write_into_batch and output is not None:
            self._element_bytes = output.nbytes // output.length
        return output

    def run(self, inputs: Chunk, position: int) -> Done:  # noqa: ARG002  # the stages know their positions
        """Pass each element through all functions, as a kernel. An interrupted element waits before its stage."""
        passed: list[tuple[Any, ...]] = []  # elements in the form of arguments
        places: list[int] = []
        with self._first.sharing(inputs):
            first, calls = self._first.calls(inputs, self._first.at)
            count = 0
            for place, arguments in enumerate(calls):
                given, count = arguments, place + 1
                for index, stage in enumerate(self._stages):
                    try:
                        results = stage.pass_on(given, stage.function if index else first)
                    except BaseException as error:  # noqa: BLE001  # raised in its place
                        outcomes = self._output(inputs, passed, places)
                        return self._failed(error, index, given, inputs.slice(place, place + 1), place, outcomes)
                    if results is None:
                        break
                    given = results
                else:
                    passed.append(given)
                    places.append(place)
        return Done(count, self._output(inputs, passed, places))

    def _failed(
        self,
        error: BaseException,
        index: int,
        given: tuple[Any, ...],
        element: Chunk,
        place: int,
        outcomes: list[Outcome],
    ) -> Done:
        """Return what was done before an exception of stage ``index``, with the exception in its place.

        An interrupt concerns the program and not the element, which waits before the stage.
        """
        stage = self._stages[index]
        is_of_element = isinstance(error, Exception | GeneratorExit)
        if is_of_element or self._works_for_others:
            position = stage.at
            for later in self._stages[index:]:
                later.at += 1
            if not is_of_element:
                return Done(place, outcomes, error)
            return Done(place + 1, [*outcomes, with_location(error, stage.node, position)])
        if index:
            stage.unread(descended(self._chunk([given], self._stages[:index]), element) or element, 0)
        return Done(place + (index > 0), outcomes, error)

    def _output(self, inputs: Chunk, passed: list[tuple[Any, ...]], places: list[int]) -> list[Outcome]:
        if not passed:
            return []
        output = self._chunk(passed, self._stages)
        if output is None or inputs.lineage is not None:
            inputs = inputs.take(np.array(places))
        return outcomes_of_output(inputs if output is None else output, inputs)

    @staticmethod
    def _chunk(passed: list[tuple[Any, ...]], stages: list[ElementwiseOperator]) -> Chunk | None:
        """Return the elements that passed through these stages as a chunk; None if the inputs were not changed."""
        for stage in reversed(stages):
            if stage.structure is not None:
                rows = passed if is_tuple(stage.structure) else [row for (row,) in passed]
                return chunk_of_rows(rows, stage.structure)
        return None

    # The state is that of the stages, so unfused pipelines can load it, and vice versa.

    def save(self) -> Position:
        return self._last.save()

    def load(self, position: Position) -> None:
        self._last.load(position)
        self._passes = any(stage.given for stage in self._stages)

    def pass_given(self, n: int) -> int:
        if not self._passes:
            return n
        for stage in reversed(self._stages):
            n = stage.pass_given(n)
            if not n:
                return 0
        self._passes = any(stage.given for stage in self._stages)
        return n

    @property
    def runs_on_columns(self) -> bool:
        return all(stage.runs_on_columns for stage in self._stages)

    @property
    def may_be_marked(self) -> bool:
        return not (self._waits_inside() or any(stage.given for stage in self._stages[:-1]))

    def advance(self, position: Position, count: int) -> Position | None:
        return self._last.advance(position, count)

    def with_given(self, position: Position, runs: Sequence[Run], read: int) -> Position | None:
        if self.one_to_one:
            return self._last.with_given(position, runs, read)  # the last stage numbers its inputs like the first
        if not runs:
            return position
        if len(runs) > 1 or position.given:
            return None  # only the first stage knows the input numbers, and only the last knows the outputs
        ((start, inputs, outputs),) = runs
        positions = [position]
        for _ in self._stages[1:]:
            positions.append(positions[-1].source)
        at_once = start == positions[-1].at
        if outputs and not at_once:
            return None  # earlier outputs were not given, and the last stage would skip them instead
        below = self._first.with_given(positions.pop(), [(start, inputs, 0)] if inputs else [], read)
        while positions:
            above = positions.pop()
            below = above.having(inputs=(below,), at=start + inputs if at_once else above.at)
        return below.having(given=((start + inputs, 0, outputs),)) if below is not None and outputs else below

    # Tasks for several workers.

    def next_task(self, n: int) -> Task | None:
        if self._waits_inside() or (self._passes and not self.one_to_one):
            chunk = self._pull_unfused(n)
            return None if chunk is None else Task(None, 0, chunk.length, [chunk])
        if self._passes:
            n = self.after_given(n)
        try:
            return self._first.next_task(n)
        finally:
            for stage in self._stages[1:]:
                stage.at = self._first.at

    def worker(self) -> Worker:
        copied = copy.copy(self)
        stages = [stage.worker_copy() for stage in self._stages]
        for stage, bound in zip(stages, self._bounds, strict=True):
            if bound is not None:
                stage.wrap(partial(_bounded, bound))
        copied._become_worker_copy(stages)  # noqa: SLF001  # its own class
        return lambda task: copied._do(task, [stage.task_context() for stage in self._stages])  # noqa: SLF001

    def _become_worker_copy(self, stages: list[ElementwiseOperator]) -> None:
        self._set_stages(stages)
        self.write_into_batch = False  # the pool does that
        self._works_for_others = True

    def _do(self, task: Task, contexts: list[Any]) -> list[Outcome]:
        for stage, context in zip(self._stages, contexts, strict=True):
            stage.begin(task, context)
        assert task.inputs is not None  # or it would have failed before
        try:
            return self._timed(all_outcomes, self.run, task.inputs, task.position)
        finally:
            task.learned = [stage.task_context() for stage in self._stages]

    @property
    def single_element_tasks(self) -> bool:
        return any(stage.single_element_tasks for stage in self._stages)

    def accept(self, task: Task) -> Iterable[Outcome]:
        for stage, learned in zip(self._stages[:-1], task.learned or (), strict=False):
            error = stage.merge_context(learned, task.position)
            if error is not None:
                return [error]
        return self._last.accept(task)


def _bounded(bound: threading.Semaphore, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*given: Any) -> Any:
        with bound:
            return function(*given)

    return call
