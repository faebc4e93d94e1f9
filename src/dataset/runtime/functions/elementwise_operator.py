"""Elementwise operators: the base class of map, filter and others that call a function for each element.

An operator reads inputs, keeps those that are left after an exception, and gives out outcomes. Kernels determine how
its function runs on a chunk (kernels/kernel.py).
"""

from __future__ import annotations

import contextlib
import copy
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, ClassVar, Self

from dataset.amounts import AHEAD_ELEMENTS, FEW_ELEMENTS, LARGE_ELEMENT_BYTES, STEP_BYTES, STEP_ELEMENTS
from dataset.plan.node import UnaryNode
from dataset.plan.structure import Structure, structure_of
from dataset.runtime.chunks.chunk import Chunk, Outcome, Remainder
from dataset.runtime.chunks.ownership import collect_by_python
from dataset.runtime.contract import Operator, StoppingOperator
from dataset.runtime.functions.kernels.columns import (
    ColumnFunction,
    ColumnFunctionKernel,
    ColumnKernel,
    Columns,
    ElementwiseFunction,
)
from dataset.runtime.functions.kernels.divided import Beginning, DividedFunction, UnchangedRows
from dataset.runtime.functions.kernels.kernel import Done, Kernel, all_outcomes
from dataset.runtime.functions.kernels.rows import RowKernel
from dataset.runtime.functions.kernels.vectorized import VectorizedKernel, is_vectorized
from dataset.runtime.functions.remote_twin import RemoteCalls
from dataset.runtime.parallel.blocks import Block
from dataset.runtime.parallel.outcome_queue import OutcomeQueue
from dataset.runtime.parallel.read_ahead import ReadAheadOperator
from dataset.runtime.parallel.row_writer import RowWriter
from dataset.runtime.parallel.tasks import Divisible, Task, Worker, passed_over
from dataset.runtime.position import Position, Run
from dataset.runtime.resources.exceptions import concerns_iteration
from dataset.runtime.state.saved_chunks import load_chunk, save_chunk
from dataset.shared_calls import calling_for
from dataset.world.interrupts import interruptible


class ElementwiseOperator(StoppingOperator, Divisible):
    """Operator that calls a function for each element; ``finish`` of the subclass turns the results into outputs.

    Its work divides into tasks. If it is ``one_to_one``, several workers may run them (parallel/pool.py), in threads or
    in processes (remote_twin.py).

    Args:
        source: the input.
        node: its node.
        function: the function.
        columnwise: the function with its expression graph, if it may run on columns.
        column_function: a version of the function for columns.
        divided: the function, if only its beginning may run on columns.
    """

    _remote: RemoteCalls | None = None

    structure: Structure | None = None
    """Structure of the outputs, if they are the results of the function and one exists."""

    row_kernel: ClassVar[type[RowKernel]] = RowKernel
    """The kernel that calls the function for each element."""

    returns_results = False
    """Whether the outputs are the results of the function."""

    parses_blocks = False
    """Whether the source may return a BytesColumn."""

    is_unseen = False
    """Whether the caller cannot observe for how many elements it runs."""

    ahead: ReadAheadOperator | None = None
    """The source, if it reads ahead so that the function can share its calls."""

    bytes_passed = 0
    """Size of the last array that was passed on, if all arrays have the same size."""

    _element_bytes = 0  # of the first results, if they are written into batches

    def __init__(
        self,
        source: Operator,
        node: UnaryNode,
        function: Callable[..., Any],
        *,
        columnwise: ElementwiseFunction | None = None,
        column_function: ColumnFunction | None = None,
        divided: DividedFunction | None = None,
    ) -> None:
        super().__init__(source, node)
        self.function = function
        self._columns = None if columnwise is None else Columns(columnwise)
        self._column_function = column_function
        self._beginning = None if divided is None else Beginning(divided)
        self._wrapper: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None
        self._is_last: Callable[[Any], bool] | None = None
        self._is_cut = False  # whether a call changed what later ones would have been given, so these were not made
        self.writer = RowWriter()
        self._kernel: Kernel | None = None  # until the first chunk
        self._begin(0)

    def _begin(self, position: int) -> None:
        self.at = position  # elements taken from the input whose calls are done
        self._todo = Remainder()  # inputs after an exception
        self.given: deque[Run] = deque()

    # How the function is called

    @abstractmethod
    def finish(self, inputs: Chunk, results: list[Any]) -> Chunk | None:
        """Return the output for these inputs, or None. If it raises, each element is finished separately."""

    @abstractmethod
    def finish_columns(self, inputs: Chunk, result: Any) -> Chunk | None:
        """Return the output for the result of a vectorized function for all of these inputs."""

    def mismatch(self, result: Any) -> str:
        """Return the error message for a result of a different structure."""
        return f"{self.node.label()} returned {structure_of(result)!r}"

    def arguments(self, inputs: Chunk, position: int) -> list[Any]:  # noqa: ARG002  # used by random_map
        """Return, for each argument of the function, an iterable over its values."""
        return inputs.arguments()

    def calls(self, inputs: Chunk, position: int) -> tuple[Callable[..., Any], Iterable[tuple[Any, ...]]]:
        """Return the function that is called for each of these inputs, and the arguments of each call."""
        found = None if self._beginning is None else self._beginning.calls(inputs, position)
        if found is None:
            return self.function, zip(*self.arguments(inputs, position), strict=True)
        rest, given = found
        return rest if self._wrapper is None else self._wrapper(rest), given

    @property
    def stops(self) -> bool:
        """Whether the function need not be called for the last of the inputs."""
        return self._is_last is not None or self._is_cut

    @interruptible
    def collect(self, results: list[Any], inputs: Chunk, position: int) -> None:
        """Call the function for these inputs, and append the results, or WRITTEN for those that ``writer`` holds."""
        with self.sharing(inputs):
            (function, given), count = self.calls(inputs, position), inputs.length
            self._is_cut = False
            try:
                if self._is_last is not None:
                    collect_by_python(function, given, count, results, self._is_last)
                else:
                    self.writer.collect(function, given, count, results, position, self.structure)
            except StopIteration:
                if not _was_cut(given):
                    raise
            self._is_cut = _was_cut(given)

    def sharing(self, inputs: Chunk) -> contextlib.AbstractContextManager[None]:
        """Return the context in which the function shares its calls for these inputs."""
        shared = None if self.ahead is None else self.ahead.shared
        return shared or calling_for(inputs.length, inputs.columns)

    def wrap(self, wrapper: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        """Call what ``wrapper`` returns for the function in its place from now on."""
        self.function, self._wrapper = wrapper(self.function), wrapper

    def count_calls(self, started: Callable[[], None]) -> None:
        """Call ``started`` before each call of the function."""

        def counting(function: Callable[..., Any]) -> Callable[..., Any]:
            def counted(*given: Any) -> Any:
                started()
                return function(*given)

            return counted

        self.wrap(counting)

    def pass_on(self, given: tuple[Any, ...], function: Callable[..., Any]) -> tuple[Any, ...] | None:
        """Call a function for one element; return the output as arguments for the next function, or None.

        Only for one of several fused operators, which run element by element (fused.py). Raises whatever the function
        raises, and SpecError for an unusable result. The position does not change then.
        """
        raise NotImplementedError

    # Chunks

    @property
    def kernel(self) -> Kernel:
        """The kernel that runs the function in the cheapest way that gives the same as single calls."""
        if self._kernel is None:
            self._kernel = self.new_kernel()
        return self._kernel

    def new_kernel(self) -> Kernel:
        """Return a kernel for this operator; called once, after all other fields are set."""
        is_whole = is_vectorized(self.function)
        kernel: Kernel = VectorizedKernel(self.function) if is_whole else self.row_kernel()
        if self._columns is not None:
            kernel = ColumnKernel(self._columns, kernel, self.ahead if self.one_to_one else None)
        if self._column_function is not None:
            kernel = ColumnFunctionKernel(self._column_function, kernel)
        return kernel

    @property
    def runs_on_columns(self) -> bool:
        return self.kernel.runs_on_columns

    def produce(self, n: int) -> Chunk | None:
        while True:
            if self.given:
                n = self.after_given(n)  # which may compute more elements than have to be skipped
            if self.outbox.items:
                return self.outbox.give(n)
            inputs = self.next_inputs(n)
            if inputs is None:
                return None
            output = self.run(inputs)
            if output is not None:
                return output
            if self.is_unseen:
                n = min(2 * n, AHEAD_ELEMENTS)

    pull = produce  # which gives out the outbox itself

    def next_inputs(self, n: int) -> Chunk | None:
        """Return the next 1 to ``n`` inputs, or None at the end."""
        if self.given:
            n = self.after_given(n)
        if self._todo:
            return self._todo.give(n)
        on_columns = self.parses_blocks and n >= FEW_ELEMENTS and (is_vectorized(self.function) or self.runs_on_columns)
        if self.ahead is not None:
            self.ahead.unpacks = not on_columns
        try:
            pull = self.source.pull
            inputs = pull(n) if self.input_reader is None else self.input_reader(pull, n)
        except Exception:
            self.at += 1  # a failed element of the input has a number, too
            raise
        if self.parses_blocks and not on_columns and inputs is not None and inputs.is_packed:
            return inputs.unpacked()
        return inputs

    def run(self, inputs: Chunk) -> Chunk | None:
        """Return the next outcome for these inputs, or None. Others wait in the outbox, and inputs that are left."""
        try:
            done = self._run_for_batch(inputs) if self.write_into_batch else self.kernel.run(self, inputs, self.at)
        except BaseException:  # such as KeyboardInterrupt: no element is lost
            self.unread(inputs, 0)
            raise
        self.at += done.count
        if done.count < inputs.length:
            self.unread(inputs, done.count)
        try:
            return first_outcome(done, self.outbox)
        finally:
            del done  # see runtime/contract.py on exceptions that are kept

    def _run_for_batch(self, inputs: Chunk) -> Done:
        """Write the outputs into the arrays of a batch, so that stacking them costs nothing."""
        size, block = self._element_bytes, Block(inputs.length)
        if size >= LARGE_ELEMENT_BYTES and self.runs_on_columns:
            return run_in_steps(partial(self.kernel.run, self), inputs, self.at, max(1, STEP_BYTES // size), block)
        self.writer.begin(block, self.at)
        try:
            done = self.kernel.run(self, inputs, self.at)
        finally:
            self.writer.begin(None)
        try:
            return done
        finally:
            if not size and done.outcomes and isinstance(done.outcomes[0], Chunk):
                self._element_bytes = done.outcomes[0].nbytes // done.outcomes[0].length
            del done

    def unread(self, inputs: Chunk, start: int) -> None:
        """Put back inputs from index ``start`` on; they are read again before all others."""
        left = inputs.slice(start, inputs.length)
        if left.is_packed:
            left = left.unpacked()
        later = self._todo.rest()
        self._todo = Remainder(left if later is None else Chunk.concatenate([left, later]))

    # Pulls that end with a certain element

    @property
    def can_stop(self) -> bool:  # type: ignore[override]  # it is read-only
        """Whether inputs can be put back, and the function is called for each of them."""
        return self.ahead is not None and isinstance(self.kernel, RowKernel)

    def pull_until(self, n: int, is_last: Callable[[Any], bool]) -> Chunk | None:
        assert self.ahead is not None  # see can_stop
        self._is_last = is_last
        try:
            return self.pull(n)
        finally:
            self._is_last = None
            rest = self._todo.rest()
            if rest is not None:
                self.ahead.unread(rest)
                self._todo = Remainder()

    # Elements that were given before a state was saved

    def pass_given(self, n: int) -> int:
        if not self.given or self.outbox:
            return n
        start, inputs, outputs = self.given[0]
        if start > self.at:
            return min(n, start - self.at)
        if not inputs:
            self.given.popleft()
            self._pass_outputs(outputs)
            return 0
        passed = self._pass_inputs(inputs)
        if passed:
            self.given[0] = self.at, inputs - passed, outputs
        else:  # the input has become shorter; the next read finds its end
            self.given.clear()
        return 0

    def _pass_inputs(self, n: int) -> int:
        """Skip 1 to ``n`` inputs without calling the function; return how many, 0 at the end."""
        if self._todo:
            chunk = self._todo.give(n)
            passed = 0 if chunk is None else chunk.length
        elif isinstance(self.source, ElementwiseOperator) and self.source.one_to_one:
            passed = self.source.pass_unmade(n)
        else:
            passed = passed_over(self.source, n)
        self.at += passed
        return passed

    def pass_unmade(self, n: int) -> int:
        """Skip 1 to ``n`` outputs without computing them; return how many, 0 at the end."""
        if not self.outbox:
            n = self.after_given(n)  # which may leave more elements ready than have to be skipped
        return self._pass_ready(n) if self.outbox else self._pass_inputs(n)

    def _pass_ready(self, n: int) -> int:
        try:
            chunk = self.outbox.give(n)
        except Exception as error:
            if concerns_iteration(error):
                raise
            return 1  # it was raised before the state was saved
        return 0 if chunk is None else chunk.length

    def _pass_outputs(self, n: int) -> None:
        """Compute ``n`` elements again and drop them; fewer at the end."""
        while n:
            try:
                chunk = ElementwiseOperator.pull(self, min(n, STEP_ELEMENTS))
            except Exception as error:
                if concerns_iteration(error):
                    raise
                n -= 1  # it was raised before the state was saved
                continue
            except BaseException:  # such as KeyboardInterrupt: no element is lost or repeated
                n -= len(self.outbox)
                self.outbox.clear()
                self.given.appendleft((self.at, 0, n))
                raise
            if chunk is None:
                return
            if chunk.length > n:
                self.outbox.put_first(chunk.slice(n, chunk.length))
            n -= min(n, chunk.length)

    # Tasks of several workers

    def next_task(self, n: int) -> Task | None:
        if self.outbox:
            return Task(None, self.at, len(self.outbox), self.outbox.take_all())
        inputs = self.next_inputs(n)
        if inputs is None:
            return None
        task = Task(inputs, self.at, inputs.length)
        self.at += inputs.length
        return task

    def worker(self) -> Worker:
        copied = self.worker_copy()
        return lambda task: copied.do(task, self.task_context())

    def remote_worker(self) -> Worker:
        remote = self._remote
        assert remote is not None  # open_processes has been called
        return lambda task: remote.run(task, self.task_context())

    def worker_copy(self) -> Self:
        """Return a copy of this operator for a worker; its inputs are pushed to it."""
        copied = copy.copy(self)
        copied.source = copied.ahead = None  # type: ignore[assignment]  # its tasks hold its inputs
        copied.outbox = OutcomeQueue()
        copied.write_into_batch = False  # the parallel operator writes into batches
        copied.writer = RowWriter()
        copied._remote = copied._kernel = None  # noqa: SLF001  # its own class
        return copied

    def task_context(self) -> Any:
        """Return what a worker must know about the elements computed so far."""
        return None

    def merge_context(self, context: Any, position: int) -> Exception | None:  # noqa: ARG002  # used by subclasses
        """Merge the context that a worker returned with a task; return an exception if they contradict."""
        return None

    def begin(self, task: Task, context: Any) -> None:  # noqa: ARG002  # used by subclasses
        """Prepare for a task."""
        self._begin(task.position)

    def do(self, task: Task, context: Any) -> list[Outcome]:
        """Call the function for the inputs of a task and return the outcomes."""
        assert task.inputs is not None  # or it would have failed before
        self.begin(task, context)
        self.writer.begin(task.block, task.position - task.row)
        return all_outcomes(partial(self.kernel.run, self), task.inputs, task.position)

    def open_processes(self, count: int) -> None:
        self._remote = RemoteCalls(self.worker_copy(), self.node, count)

    def start_process(self) -> None:
        assert self._remote is not None  # they are open
        self._remote.start()

    def interrupt_tasks(self) -> None:
        if self._remote is not None:
            self._remote.stop()

    # States

    @property
    def has_todo(self) -> bool:
        """Whether inputs that were taken from ``source`` are waiting."""
        return bool(self._todo)

    def save(self) -> Position:
        return super().save().with_held(todo=save_chunk(self._todo.rest()))

    def load(self, position: Position) -> None:
        super().load(position)
        self._todo = Remainder(load_chunk(position.held.get("todo"), lambda: self.node.source.element_spec))

    def advance(self, position: Position, count: int) -> Position | None:
        return self.advance_input(position, count) if self.one_to_one else None

    def close(self) -> None:
        if self._remote is not None:
            self._remote.close()
        super().close()


def _was_cut(given: Iterable[Any]) -> bool:
    return isinstance(given, UnchangedRows) and given.has_ended


def first_outcome(done: Done, outbox: OutcomeQueue) -> Chunk | None:
    """Return the first outcome, or None if there is none; put the others into the outbox. Raise an interrupt."""
    outcomes = done.outcomes
    try:
        if done.interrupt is not None:
            outbox.extend(outcomes)
            raise done.interrupt
        if len(outcomes) == 1 and isinstance(outcomes[0], Chunk):
            return outcomes[0]
        outbox.extend(outcomes)
        return outbox.give_joined(len(outbox))
    finally:
        del done, outcomes  # see runtime/contract.py on exceptions that are kept


def run_in_steps(run: Callable[[Chunk, int], Done], inputs: Chunk, position: int, step: int, block: Block) -> Done:
    """Run a kernel for parts of the inputs, and write the outputs of each into a block while they are in the cache."""
    done = Done(0, [])
    try:
        while done.count < inputs.length:
            some = inputs.slice(done.count, min(done.count + step, inputs.length))
            later = run(some, position + done.count)
            written = block.write_all(done.count, later.outcomes)
            done = Done(done.count + later.count, [*done.outcomes, *written], later.interrupt)
            if later.count < some.length or later.interrupt is not None or not all(map(_is_chunk, written)):
                break
        return done
    finally:
        del done  # see runtime/contract.py on exceptions that are kept


def _is_chunk(outcome: Outcome) -> bool:
    return isinstance(outcome, Chunk)
