"""Calling a user's function on the elements that come in, with exceptions at their place.

``ElementwiseOperator`` is what map, filter and their like share. Where the function returns numbers or text, it is run
over a whole chunk inside one ``list.extend(map(...))``, which costs next to nothing beside the calls themselves. When
the function raises in the middle, what it returned before comes out first, then the exception, then the rest of the
chunk is run. Functions that take whole columns are in vectorized.py.
"""

from __future__ import annotations

import contextlib
import copy
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Protocol, Self

from dataset.errors import SpecError
from dataset.plan.node import Node, UnaryNode
from dataset.plan.structure import LEAF, Structure, StructureMismatchError, is_tuple, structure_of
from dataset.runtime.chunks.chunk import Chunk, Outcome, Remainder
from dataset.runtime.chunks.ownership import is_immutable, own
from dataset.runtime.contract import Operator, State
from dataset.runtime.functions.elementwise import TRIAL, Columns, ElementwiseProof
from dataset.runtime.functions.vectorized import are_identical, column_arguments, is_vectorized
from dataset.runtime.parallel.blocks import Block
from dataset.runtime.parallel.pending import Pending
from dataset.runtime.parallel.tasks import (
    Divisible,
    PushedInput,
    Run,
    Task,
    Worker,
    load_given,
    outcomes_of,
    passed_over,
)
from dataset.runtime.resources.exceptions import as_error_of_element, concerns_iteration, copy_exception
from dataset.runtime.resources.interrupts import call, interruptible
from dataset.runtime.state.saved_chunks import load_chunk, save_chunk

if TYPE_CHECKING:
    from dataset.runtime.processes import WorkerProcesses
    from dataset.runtime.processes.pool_key import PoolKey

_UNSEEN_MAX = 8192  # inputs at a time, where so far none has come out
_PASSED_MAX = 1024  # elements made at a time that are thrown away


class ColumnFunction(Protocol):
    """What the optimizer puts beside a function: it gives the same for whole columns, or raises."""

    @property
    def length_min(self) -> int:
        """How many elements there must be for that to cost less."""

    def __call__(self, *columns: Any) -> Any:
        """The results for the columns, as a vectorized function returns them; runs no user code."""


class ElementwiseOperator(Divisible):
    """Applies a function to each element; what becomes of the results is the subclass's ``finish``.

    Where that makes one element of each, tasks may be done by several workers (parallel/pool.py).
    """

    def __init__(
        self,
        source: Operator,
        node: UnaryNode,
        function: Callable[..., Any],
        *,
        columnwise: ElementwiseProof | None = None,
        column_function: ColumnFunction | None = None,
    ) -> None:
        super().__init__(source)
        self.node = node
        self.function = function
        self._column_function = column_function
        self._vectorized = is_vectorized(function)
        self._columns = None if columnwise is None else Columns(columnwise)
        self._returns_immutable = False  # as far as the last result tells
        self.processes: WorkerProcesses | None = None
        self.process_owner: PoolKey | None = None
        self._begin(0)

    def _begin(self, position: int) -> None:
        self.position = position  # elements taken from the input and called for
        self.ready = Pending()  # results behind an exception, and the exception
        self._todo = Remainder()  # inputs behind an exception
        self.given: deque[Run] = deque()

    one_to_one: ClassVar[bool] = False
    """Whether each input makes one element, or an exception, by itself or by its position alone."""

    is_unseen = False
    """Whether nobody can notice for how many elements it is run."""

    @abstractmethod
    def finish(self, inputs: Chunk, results: list[Any]) -> Chunk | None:
        """The output for these inputs; None for none. Raising makes each element be finished by itself."""

    @abstractmethod
    def finish_columns(self, inputs: Chunk, result: Any) -> Chunk | None:
        """The same for what a vectorized function returned for all of them."""

    def arguments(self, inputs: Chunk) -> list[Any]:
        """Per argument of the function an iterable over its values."""
        return arguments(inputs)

    def pull(self, n: int) -> Chunk | None:
        while True:
            if self.given and not self.ready:
                n = self.after_given(n)  # which may leave more ready than is to be passed over
            if self.ready:
                return self.ready.give(n)
            inputs = self.next_inputs(n)
            if inputs is None:
                return None
            output = self._call_best(inputs)
            if output is not None:
                return output
            if self.is_unseen:
                n = min(2 * n, _UNSEEN_MAX)

    def seek(self, count: int) -> None:
        self.position += count
        self.source.seek(count)

    def _call_best(self, inputs: Chunk) -> Chunk | None:
        position = self.position
        try:
            if self._column_function is not None and inputs.length >= self._column_function.length_min:
                with contextlib.suppress(Exception):  # the function will show which element it is
                    return self._accepted(inputs, self._column_function(*column_arguments(inputs)))
            if self._vectorized:
                return self._call_columns(inputs)
        except Exception:
            raise
        except BaseException:  # KeyboardInterrupt and its like: nothing is lost
            self.ready.clear()
            self.position = position
            self.unread(inputs, 0)
            raise
        return self._try_columns(inputs) if self._fits_columns(inputs) else self._call(inputs)

    def _fits_columns(self, inputs: Chunk) -> bool:
        """Whether the function gives for the columns what it gives for the elements, as far as that can be proved."""
        return self._columns is not None and self._columns.fit(inputs, self.position)

    def _try_columns(self, inputs: Chunk) -> Chunk | None:
        """Columns, for a function that is proved to be elementwise; single elements at the first doubt."""
        columns = self._columns
        assert columns is not None  # or nothing would fit
        if not columns.trusted and inputs.length > TRIAL:
            self.unread(inputs, TRIAL)
            inputs = inputs.slice(0, TRIAL)
        try:
            output = self.finish_columns(inputs, columns.call(self.function, inputs))
        except Exception:  # noqa: BLE001  # the single elements will show which one it is
            columns.rest()
            return self._call(inputs)
        except BaseException:  # KeyboardInterrupt and its like: nothing is lost
            self.unread(inputs, 0)
            raise
        if columns.trusted:
            self.position += inputs.length
            return output
        expected = self._call(inputs)
        columns.judge(same=not self.ready and are_identical(output, expected))
        return expected

    def next_inputs(self, n: int) -> Chunk | None:
        if self.given:
            n = self.after_given(n)
        if self._todo:
            return self._todo.give(n)
        try:
            return self.source.pull(n)
        except Exception:
            self.position += 1  # an element that failed further up has its number, too
            raise

    def _call(self, inputs: Chunk) -> Chunk | None:
        results: list[Any] = []
        error: BaseException | None = None
        try:
            self._collect(results, inputs)
        except BaseException as raised:  # noqa: BLE001  # it is raised again, at its place
            error = as_error_of_element(raised)
        try:
            return self._conclude(inputs, results, error)
        finally:
            del error  # see runtime/contract.py on exceptions that are kept

    def _conclude(self, inputs: Chunk, results: list[Any], error: BaseException | None) -> Chunk | None:
        done = len(results)
        interrupted = error is not None and not isinstance(error, Exception)
        if done == inputs.length and not interrupted:
            return self._finish(inputs, results)
        output = self._finish(inputs.slice(0, done), results) if done else None
        try:
            if error is None or isinstance(error, Exception):
                self.unread(inputs, done + 1)
                self._fail(StopIteration() if error is None else error)
                return self._first(output)
            # KeyboardInterrupt and its like are about the program, not about this element: raised now, nothing is lost.
            self.unread(inputs, done)
            if output is not None:
                self.ready.put_first(output)
            raise error
        finally:
            del error  # see runtime/contract.py on exceptions that are kept

    @interruptible
    def _collect(self, results: list[Any], inputs: Chunk) -> None:
        if self._returns_immutable:
            # extend() keeps what came before an exception, so that nothing is called twice.
            results.extend(map(self.function, *self.arguments(inputs)))
        else:
            function, keep = self.function, results.append
            for given in zip(*self.arguments(inputs), strict=True):
                keep(own(function(*given), given))
        self._returns_immutable = bool(results) and is_immutable(results[-1])

    def unread(self, inputs: Chunk, start: int) -> None:
        """Have inputs that were taken come again, from ``start`` on, before all others."""
        chunks = [inputs.slice(start, inputs.length)] if start < inputs.length else []
        later = self._todo.rest()
        if later is not None:
            chunks.append(later)
        self._todo = Remainder(Chunk.concatenate(chunks) if chunks else None)

    def _finish(self, inputs: Chunk, results: list[Any]) -> Chunk | None:
        with contextlib.suppress(Exception):
            output = self.finish(inputs, results)
            self.position += inputs.length
            return output
        # One by one, so that an unusable result fails alone.
        for index, result in enumerate(results):
            try:
                self._keep(self.finish(inputs.slice(index, index + 1), [result]))
                self.position += 1
            except StructureMismatchError:
                self._fail(SpecError(self.mismatch(result)))
            except Exception as error:  # noqa: BLE001  # raised at its place
                self._fail(error)
        return self._first(None)

    def mismatch(self, result: Any) -> str:
        """What to say of a result of another structure."""
        return f"{self.node.label()} returned {structure_of(result)!r}"

    def _call_columns(self, inputs: Chunk) -> Chunk | None:
        if inputs.length > 1:
            with contextlib.suppress(Exception):
                return self._columns_output(inputs)
        # Which element it was is found by asking for each.
        for index in range(inputs.length):
            try:
                self._keep(self._columns_output(inputs.slice(index, index + 1)))
            except Exception as error:  # noqa: BLE001  # raised at its place
                self._fail(error)
        return self._first(None)

    def _columns_output(self, inputs: Chunk) -> Chunk | None:
        given = column_arguments(inputs)
        try:
            result = own(call(self.function, *given), given)
        except GeneratorExit as error:
            raise as_error_of_element(error) from None
        return self._accepted(inputs, result)

    def _accepted(self, inputs: Chunk, result: Any) -> Chunk | None:
        try:
            output = self.finish_columns(inputs, result)
        except StructureMismatchError:
            raise SpecError(self.mismatch(result)) from None
        self.position += inputs.length
        return output

    def _keep(self, output: Chunk | None) -> None:
        if output is not None:
            self.ready.put(output)

    def _fail(self, error: Exception) -> None:
        self.ready.put(with_location(error, self.node, self.position))
        self.position += 1

    def _first(self, output: Chunk | None) -> Chunk | None:
        """``output`` if there is one, else what waits in front, else None."""
        return self.ready.give_chunk() if output is None else output

    # As one of several stages, which runs them element by element (fused.py).

    structure: Structure | None = None
    """Of what comes out, where the results of the function come out, and one has."""

    bytes_passed = 0
    """Of the array that was handed on last, as far as they are all alike."""

    def each_arguments(self, inputs: Chunk) -> Iterable[tuple[Any, ...]]:
        """The arguments for one element after the other."""
        return zip(*self.arguments(inputs), strict=True)

    def pass_on(self, given: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Call the function for one element: what comes out, as arguments for the next function; None for nothing.

        Raises whatever the function does, and SpecError for an unusable result; the position then stays.
        """
        raise NotImplementedError

    @property
    def has_todo(self) -> bool:
        """Whether inputs wait that have been taken from ``source``."""
        return bool(self._todo)

    def merge_context(self, context: Any, position: int) -> Exception | None:  # noqa: ARG002  # subclasses look at it
        """Take note of what a worker found out in a task; an exception if that goes against what is known."""
        return None

    # Behind a saved place.

    def pass_given(self, n: int) -> int:
        if not self.given or self.ready:
            return n
        start, inputs, outputs = self.given[0]
        if start > self.position:
            return min(n, start - self.position)
        if not inputs:
            self.given.popleft()
            self._pass_outputs(outputs)
            return 0
        passed = self._pass_inputs(inputs)
        if passed:
            self.given[0] = self.position, inputs - passed, outputs
        else:  # the input has become shorter: it has ended, which the next reading finds
            self.given.clear()
        return 0

    def _pass_inputs(self, n: int) -> int:
        """Go over 1 to ``n`` inputs without calling the function for them; 0 at the end."""
        if self._todo:
            chunk = self._todo.give(n)
            passed = 0 if chunk is None else chunk.length
        elif isinstance(self.source, ElementwiseOperator) and self.source.one_to_one:
            passed = self.source.pass_unmade(n)
        else:
            passed = passed_over(self.source, n)
        self.position += passed
        return passed

    def pass_unmade(self, n: int) -> int:
        """Go over 1 to ``n`` of what comes out, whatever that would be; 0 at the end."""
        if not self.ready:
            n = self.after_given(n)  # which may leave more ready than is to be passed over
        return self._pass_ready(n) if self.ready else self._pass_inputs(n)

    def _pass_ready(self, n: int) -> int:
        try:
            chunk = self.ready.give(n)
        except Exception as error:
            if concerns_iteration(error):
                raise
            return 1  # it was raised when its turn was
        return 0 if chunk is None else chunk.length

    def _pass_outputs(self, n: int) -> None:
        """Make ``n`` elements once more; fewer at the end."""
        while n:
            try:
                chunk = ElementwiseOperator.pull(self, min(n, _PASSED_MAX))
            except Exception as error:
                if concerns_iteration(error):
                    raise
                n -= 1  # it was raised when its turn was
                continue
            except BaseException:  # KeyboardInterrupt and its like: nothing is lost, and nothing comes twice
                n -= len(self.ready)
                self.ready.clear()
                self.given.appendleft((self.position, 0, n))
                raise
            if chunk is None:
                return
            if chunk.length > n:
                self.ready.put_first(chunk.slice(n, chunk.length))
            n -= min(n, chunk.length)

    def state_after(self, state: State, count: int) -> State | None:
        return self.after_inputs(state, count) if self.one_to_one else None

    # Tasks, for several workers.

    def next_task(self, n: int) -> Task | None:
        if self.ready:
            return Task(None, self.position, len(self.ready), self.ready.take_all())
        inputs = self.next_inputs(n)
        if inputs is None:
            return None
        task = Task(inputs, self.position, inputs.length)
        self.position += inputs.length
        return task

    def worker(self) -> Worker:
        if self.processes is not None:
            return self._do_elsewhere
        remote_copy = self.remote_copy()
        return lambda task: remote_copy.do(task, self.task_context())

    def remote_copy(self) -> Self:
        """An operator like this one for a worker to use, which is handed its inputs."""
        remote_copy = copy.copy(self)
        remote_copy.source = PushedInput()
        remote_copy.write_into_batch = False  # whoever has the tasks done sees to that
        remote_copy.processes = remote_copy.process_owner = None
        return remote_copy

    def task_context(self) -> Any:
        """What a worker must know of the elements that are done."""
        return None

    def begin(self, task: Task, context: Any) -> None:  # noqa: ARG002  # subclasses look at it
        """Start on a task."""
        self._begin(task.position)

    def push(self, task: Task) -> None:
        """Have the inputs of a task come next, in a twin."""
        assert isinstance(self.source, PushedInput)
        assert task.inputs is not None  # or it would have failed before
        self.source.push(task.inputs)

    def do(self, task: Task, context: Any) -> list[Outcome]:
        """Call the function for the inputs of a task."""
        self.push(task)
        self.begin(task, context)
        return outcomes_of(self.pull, task.count, self._skip)

    def _skip(self) -> list[Outcome]:
        """Pass over the element whose function has raised KeyboardInterrupt or its like; gives what comes before it."""
        before = self.ready.take_all()
        self._todo.give(1)
        self.position += 1
        return before

    # The same in other processes.

    def open_processes(self, count: int) -> None:
        # Imported where it is used: most pipelines have no such processes.
        from dataset.runtime.processes import WorkerProcesses  # noqa: PLC0415

        work = RemoteTwin(self.remote_copy(), self.node)
        modules = [type(self).__module__]
        self.processes = WorkerProcesses(work, count, self.node.location(), self.process_owner, modules)

    def _do_elsewhere(self, task: Task) -> list[Outcome]:
        assert self.processes is not None
        assert task.inputs is not None  # or it would have failed before
        try:
            return self.processes.run(task.inputs, task.position, self.task_context())
        except Exception as error:
            if concerns_iteration(error):
                raise
            return [error, *(copy_exception(error) for _ in range(1, task.count))]
        except BaseException as error:  # noqa: BLE001  # such as SystemExit in the function
            return [error]

    def interrupt_tasks(self) -> None:
        if self.processes is not None:
            self.processes.stop()

    def count_calls(self, started: Callable[[], None]) -> None:
        """Call ``started`` before each call of the function."""
        function = self.function

        def counted(*given: Any) -> Any:
            started()
            return function(*given)

        self.function = counted

    def close(self) -> None:
        if self.processes is not None:
            self.processes.close()
        super().close()

    def state_dict(self) -> State:
        state = {"op": self.node.op, **super().state_dict(), "position": self.position}
        if self.ready or self._todo:
            state |= {"ready": self.ready.save(), "todo": save_chunk(self._todo.rest())}
        if self.given:
            state["given"] = [list(run) for run in self.given]
        return state

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self.position = int(state["position"])
        self.given = load_given(state)
        if "ready" in state:
            self.ready.load(state["ready"], lambda: self.node.element_spec)
            self._todo = Remainder(load_chunk(state["todo"], lambda: self.node.source.element_spec))


class NodeLabel:
    """What messages say of a node, where it cannot go itself: it holds the plan, which may hold the data."""

    def __init__(self, node: Node) -> None:
        self._described, self._located = node.label(), node.location()

    def label(self) -> str:
        """As the node's own."""
        return self._described

    def location(self) -> str:
        """As the node's own."""
        return self._located


class RemoteTwin:
    """Does the tasks of an ElementwiseOperator in a worker process."""

    def __init__(self, remote_copy: ElementwiseOperator, node: Node) -> None:
        remote_copy.node = NodeLabel(node)  # type: ignore[assignment]  # all that is asked of it there
        self._remote_copy = remote_copy
        self._counts = False

    def __call__(self, inputs: Chunk, position: int, context: Any, started: Callable[[], None]) -> list[Outcome]:
        if not self._counts:
            self._remote_copy.count_calls(started)
            self._counts = True
        outcomes = self._remote_copy.do(Task(inputs, position, inputs.length), context)
        # One array for all travels faster than many.
        return Block(inputs.length).write_all(0, outcomes) if inputs.length > 1 else outcomes


def with_location(error: BaseException, node: Node, position: int, what: str = "element") -> Exception:
    """An exception of user code with the note that says where: it is the same one, unless it would end a loop."""
    error = as_error_of_element(error)
    error.add_note(f"in {node.location()}, {what} {position}")
    return error  # type: ignore[return-value]  # callers have caught what an element may raise


def raise_with_location(error: BaseException, node: Node, position: int, what: str = "element") -> NoReturn:
    """Raise an exception of user code, which has just been caught, with its note."""
    shown = with_location(error, node, position, what)
    try:
        if shown is error:
            raise shown
        raise shown from None
    finally:
        del error, shown  # see runtime/contract.py on exceptions that are kept


def arguments(inputs: Chunk) -> list[Any]:
    """Per argument of the function an iterable over its values: the items of a tuple, else the element."""
    structure = inputs.structure
    if not is_tuple(structure):
        return [inputs.rows()]
    if all(child is LEAF for child in structure.children):
        return list(inputs.columns())
    return list(zip(*inputs.rows(), strict=True))
