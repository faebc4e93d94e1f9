"""Call loop: calls a user function on the elements of an input, and raises exceptions in their places.

Scalar functions run over a whole chunk inside one ``list.extend(map(...))``, which costs next to nothing beside the
calls themselves. If the function raises in the middle, its earlier results come out first, then the exception, and then
the rest of the chunk is run. vectorized.py describes functions that take whole columns.
"""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from dataset.errors import SpecError
from dataset.plan.node import UnaryNode
from dataset.plan.structure import Structure, StructureMismatchError, structure_of
from dataset.runtime.chunks.chunk import Chunk, Remainder, descended
from dataset.runtime.chunks.ownership import WRITTEN, collect, collect_by_python, own
from dataset.runtime.contract import Operator, State, StoppingOperator
from dataset.runtime.functions.columnwise import LENGTH_MIN, TRIAL, Columns, ElementwiseFunction, are_same
from dataset.runtime.functions.kernels.divided import Beginning, DividedFunction
from dataset.runtime.functions.vectorized import are_identical, column_arguments, is_vectorized
from dataset.runtime.parallel.blocks import STEP_BYTES
from dataset.runtime.parallel.read_ahead import ReadAheadOperator
from dataset.runtime.parallel.row_writer import RowWriter
from dataset.runtime.parallel.tasks import Divisible, Run
from dataset.runtime.resources.exceptions import as_error_of_element, with_location
from dataset.runtime.resources.interrupts import call, interruptible
from dataset.runtime.state.saved_chunks import load_chunk, save_chunk
from dataset.shared_calls import calling_for

_UNSEEN_MAX = 8192  # inputs at a time, while none has produced an output yet


def _itself(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


class ColumnFunction(Protocol):
    """Column version of a function, added by the optimizer: returns the same results for whole columns, or raises."""

    @property
    def length_min(self) -> int:
        """The number of elements from which a call costs less than single calls."""

    def __call__(self, *columns: Any) -> Any:
        """Return the results for the columns, as a vectorized function does. Runs no user code."""


@dataclass
class _SharedOutputs:
    """Outputs for elements that were read ahead.

    Attributes:
        inputs: what was read.
        begin: the element in it to which the first output belongs.
        end: the element after the last one.
        values: what the function read when they were computed.
        element_bytes: the size of an output, once some are known.
        chunk: the outputs; None if they could not be computed at once.
    """

    inputs: Chunk | None = None
    begin: int = 0
    end: int = 0
    values: tuple[Any, ...] = ()
    element_bytes: int | None = None
    chunk: Chunk | None = None


class CallLoop(StoppingOperator, Divisible):
    """Call loop of an operator: calls its function for each input; ``finish`` turns the results into outputs."""

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
        self._column_function = column_function
        self._vectorized = is_vectorized(function)
        self._columns = None if columnwise is None else Columns(columnwise)
        self._beginning = None if divided is None else Beginning(divided)
        self._wrapper: Callable[[Callable[..., Any]], Callable[..., Any]] = _itself
        self._outputs = _SharedOutputs()
        self.ahead: ReadAheadOperator | None = None
        """The source, if it reads ahead so that the function can share its calls."""
        self._is_last: Callable[[Any], bool] | None = None
        self._writer = RowWriter()
        self._begin(0)

    def _begin(self, position: int) -> None:
        self.position = position  # elements taken from the input whose calls are done
        self._todo = Remainder()  # inputs after an exception
        self.given: deque[Run] = deque()

    @property
    def runs_on_columns(self) -> bool:
        return self._column_function is not None or (self._columns is not None and self._columns.trusted)

    parses_blocks = False
    """Whether the source may return a BytesColumn."""

    returns_results = False
    """Whether the outputs are the results of the function."""

    is_unseen = False
    """Whether the caller cannot observe for how many elements it runs."""

    @abstractmethod
    def finish(self, inputs: Chunk, results: list[Any]) -> Chunk | None:
        """Return the output for these inputs, or None. If it raises, each element is finished separately."""

    @abstractmethod
    def finish_columns(self, inputs: Chunk, result: Any) -> Chunk | None:
        """Return the output for the result of a vectorized function for all of these inputs."""

    def arguments(self, inputs: Chunk) -> list[Any]:
        """Return, for each argument of the function, an iterable over its values."""
        return inputs.arguments()

    def produce(self, n: int) -> Chunk | None:
        while True:
            if self.given:
                n = self.after_given(n)  # which may compute more elements than have to be skipped
            if self.outbox.items:
                return self.outbox.give(n)
            inputs = self.next_inputs(n)
            if inputs is None:
                return None
            output = self.call_best(inputs)
            if output is not None:
                return output
            if self.is_unseen:
                n = min(2 * n, _UNSEEN_MAX)

    pull = produce  # which hands out the outbox itself

    @property
    def can_stop(self) -> bool:  # type: ignore[override]  # it is read-only
        """Whether inputs can be put back, and the function is called for each of them."""
        by_columns = self._vectorized or self._columns is not None or self._column_function is not None
        return self.ahead is not None and not by_columns

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

    def call_best(self, inputs: Chunk) -> Chunk | None:
        """Return the outputs for these inputs, in the cheapest way that gives the same as single calls."""
        position = self.position
        try:
            if self._column_function is not None and inputs.length >= self._column_function.length_min:
                with contextlib.suppress(Exception):  # the calls for single elements show which one failed
                    return self._accepted(inputs, self._column_function(*column_arguments(inputs)))
            if self._vectorized:
                return self._call_columns(inputs)
        except Exception:
            raise
        except BaseException:  # such as KeyboardInterrupt: no element is lost
            self.outbox.clear()
            self.position = position
            self.unread(inputs, 0)
            raise
        columns = self._columns  # if the function is proved to return the same for columns as for single elements
        may_fit = columns is not None and columns.may_fit(self._readable(inputs), self.position)
        return self._try_columns(inputs) if may_fit else self._call(inputs)

    def _try_columns(self, inputs: Chunk) -> Chunk | None:
        """Compute a function that is proved to be elementwise on columns; at the first doubt, on single elements."""
        columns = self._columns
        assert columns is not None  # checked by the caller
        is_trial = not columns.trusted  # read once: another worker may end the trial meanwhile
        tried = inputs.slice(0, TRIAL) if is_trial and inputs.length > TRIAL else inputs
        try:
            output = self._shared_output(columns, tried)
            if output is None:
                if inputs.length < columns.length_min:
                    return self._call(inputs)
                result = columns.call(tried)
                if result is None:
                    return self._call(inputs)
                output = self.finish_columns(tried, result)
        except Exception:  # noqa: BLE001  # the calls for single elements show which one failed
            columns.rest()
            return self._call(inputs)
        except BaseException:  # such as KeyboardInterrupt: no element is lost
            self.unread(inputs, 0)
            raise
        if not is_trial:
            self.position += inputs.length
            return output if inputs.lineage is None else descended(output, inputs)
        rest = inputs.length - tried.length
        self.unread(inputs, tried.length)
        expected = self._call(tried)
        columns.judge(tried.length, same=not self.outbox and are_identical(output, expected))
        if not (rest and columns.trusted):
            return expected
        # A state in the middle of the chunk would hold elements.
        later = self._todo.give(rest)
        assert later is not None  # it was put back
        try:
            further = self._try_columns(later)
        except BaseException:
            if expected is not None:
                self.outbox.put_first(expected)
            raise
        outputs = [part for part in (expected, further) if part is not None]
        return Chunk.concatenate(outputs) if outputs else None

    def _readable(self, inputs: Chunk) -> int:
        """Return the number of inputs together with those that were read ahead after them."""
        ahead = self.ahead
        if ahead is None or ahead.part is not inputs or ahead.whole is None or not self.one_to_one:
            return inputs.length
        return ahead.whole.length - ahead.end + inputs.length

    def _shared_output(self, columns: Columns, inputs: Chunk) -> Chunk | None:
        """Return the output for a part of what the source has read ahead, computed together with later parts.

        So many are computed at once that their outputs stay in the cache until they are requested.
        """
        ahead, shared = self.ahead, self._outputs
        if ahead is None or ahead.part is not inputs or not self.one_to_one:
            return None
        whole, begin = ahead.whole, ahead.end - inputs.length
        if whole is None or whole.length == inputs.length or (shared.inputs is whole and shared.chunk is None):
            return None
        values = columns.values_read()
        if values is None:
            return None
        stop = begin + inputs.length
        if shared.inputs is not whole or stop > shared.end or not are_same(shared.values, values):
            count = inputs.length if shared.element_bytes is None else STEP_BYTES // max(1, shared.element_bytes)
            rest = whole.slice(begin, min(whole.length, begin + max(count, inputs.length)))
            self._outputs = shared = _SharedOutputs(whole, begin, begin + rest.length, values, shared.element_bytes)
            with contextlib.suppress(Exception):  # of another part
                result = columns.call(rest)
                shared.chunk = None if result is None else self.finish_columns(rest, result)
            if shared.chunk is None:
                return None
            shared.element_bytes = shared.chunk.nbytes // rest.length
        assert shared.chunk is not None  # checked above
        return shared.chunk.slice(begin - shared.begin, stop - shared.begin)

    def next_inputs(self, n: int) -> Chunk | None:
        if self.given:
            n = self.after_given(n)
        if self._todo:
            return self._todo.give(n)
        on_columns = self.parses_blocks and n >= LENGTH_MIN and (self._vectorized or self.runs_on_columns)
        if self.ahead is not None:
            self.ahead.unpacks = not on_columns
        try:
            pull = self.source.pull
            inputs = pull(n) if self.input_reader is None else self.input_reader(pull, n)
        except Exception:
            self.position += 1  # a failed element of the input has a number, too
            raise
        if self.parses_blocks and not on_columns and inputs is not None and inputs.is_packed:
            return inputs.unpacked()
        return inputs

    def _call(self, inputs: Chunk) -> Chunk | None:
        results: list[Any] = []
        error: BaseException | None = None
        if self.parses_blocks and inputs.is_packed:
            inputs = inputs.unpacked()
        try:
            self._collect(results, inputs)
        except BaseException as raised:  # noqa: BLE001  # it is raised again, in its place
            error = as_error_of_element(raised)
        try:
            return self._conclude(inputs, results, error)
        finally:
            del error  # see runtime/contract.py on exceptions that are kept

    def _conclude(self, inputs: Chunk, results: list[Any], error: BaseException | None) -> Chunk | None:
        done = len(results)
        if done < inputs.length and error is None and self._is_last is not None:
            self.unread(inputs, done)
            inputs = inputs.slice(0, done)
        if done == inputs.length and (error is None or isinstance(error, Exception)):
            return self._finish(inputs, results)
        output = self._finish(inputs.slice(0, done), results) if done else None
        try:
            if error is None or isinstance(error, Exception):
                self.unread(inputs, done + 1)
                self._fail(StopIteration() if error is None else error)
                return self._first(output)
            # Such as KeyboardInterrupt: it concerns the program and not this element. Raised now, it loses no element.
            self.unread(inputs, done)
            if output is not None:
                self.outbox.put_first(output)
            raise error
        finally:
            del error  # see runtime/contract.py on exceptions that are kept

    @interruptible
    def _collect(self, results: list[Any], inputs: Chunk) -> None:
        with self.sharing(inputs):
            (function, given), count = self.calls(inputs), inputs.length
            if self._is_last is not None:
                collect_by_python(function, given, count, results, self._is_last)
            elif count > 1:
                self._writer.collect(function, given, count, results, self.position, self.structure)
            else:
                collect(function, given, 1, results)

    def calls(self, inputs: Chunk) -> tuple[Callable[..., Any], Iterable[tuple[Any, ...]]]:
        """Return the function that is called for each of these inputs, and the arguments of each call."""
        found = None if self._beginning is None else self._beginning.calls(inputs, self.position)
        if found is None:
            return self.function, zip(*self.arguments(inputs), strict=True)
        rest, given = found
        return self._wrapper(rest), given

    def wrap(self, wrapper: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        """Call what ``wrapper`` returns for the function in its place from now on."""
        self.function, self._wrapper = wrapper(self.function), wrapper

    def sharing(self, inputs: Chunk) -> contextlib.AbstractContextManager[None]:
        """Return the context in which the function shares its calls for these inputs."""
        shared = None if self.ahead is None else self.ahead.shared
        return shared or calling_for(inputs.length, inputs.columns)

    def unread(self, inputs: Chunk, start: int) -> None:
        """Put back inputs from index ``start`` on; they are read again before all others."""
        chunks = [inputs.slice(start, inputs.length)] if start < inputs.length else []
        later = self._todo.rest()
        if later is not None:
            chunks.append(later)
        self._todo = Remainder(Chunk.concatenate(chunks) if chunks else None)

    def _finish(self, inputs: Chunk, results: list[Any]) -> Chunk | None:
        written = self._writer.take(results) if results[0] is WRITTEN else None
        if written is not None:
            self.structure, done = written.structure, written.length
            self.position += done
            written = descended(written, inputs.slice(0, done))
            if not results:
                return written
            self._keep(written)
            inputs = inputs.slice(done, inputs.length)
        try:
            output = self.finish(inputs, results)
        except Exception:  # noqa: BLE001  # an unusable result fails only its own element
            return self._finish_singly(inputs, results)
        if written is None and self.returns_results and (inputs.length > 1 or self._writer.is_new):
            self._writer.learn(results[0], output)
        self.position += inputs.length
        output = output if inputs.lineage is None else descended(output, inputs)
        if written is None:
            return output
        self._keep(output)
        return self._first(None)

    def _finish_singly(self, inputs: Chunk, results: list[Any]) -> Chunk | None:
        for index, result in enumerate(results):
            try:
                element = inputs.slice(index, index + 1)
                self._keep(descended(self.finish(element, [result]), element))
                self.position += 1
            except StructureMismatchError:
                self._fail(SpecError(self.mismatch(result)))
            except Exception as error:  # noqa: BLE001  # raised in its place
                self._fail(error)
        return self._first(None)

    def mismatch(self, result: Any) -> str:
        """Return the error message for a result of a different structure."""
        return f"{self.node.label()} returned {structure_of(result)!r}"

    def _call_columns(self, inputs: Chunk) -> Chunk | None:
        if inputs.length > 1:
            with contextlib.suppress(Exception):
                return self._columns_output(inputs)
        # Calls for single elements show which one failed.
        for index in range(inputs.length):
            try:
                self._keep(self._columns_output(inputs.slice(index, index + 1)))
            except Exception as error:  # noqa: BLE001  # raised in its place
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
        return output if inputs.lineage is None else descended(output, inputs)

    def _keep(self, output: Chunk | None) -> None:
        if output is not None:
            self.outbox.put(output)

    def _fail(self, error: Exception) -> None:
        self.outbox.put(with_location(error, self.node, self.position))
        self.position += 1

    def _first(self, output: Chunk | None) -> Chunk | None:
        """Return ``output`` if it is not None, otherwise the first ready chunk, or None."""
        if output is None and self.outbox.next_chunk() is not None:
            return self.outbox.give(len(self.outbox))
        return output

    # As one of several fused functions, which run element by element (fused.py).

    structure: Structure | None = None
    """Structure of the outputs, if they are the results of the function and one exists."""

    bytes_passed = 0
    """Size of the last array that was passed on, if all arrays have the same size."""

    def pass_on(self, given: tuple[Any, ...], function: Callable[..., Any]) -> tuple[Any, ...] | None:
        """Call a function for one element; return the output as arguments for the next function, or None.

        Raises whatever the function raises, and SpecError for an unusable result. The position does not change then.
        """
        raise NotImplementedError

    @property
    def has_todo(self) -> bool:
        """Whether inputs that were taken from ``source`` are waiting."""
        return bool(self._todo)

    def merge_context(self, context: Any, position: int) -> Exception | None:  # noqa: ARG002  # used by subclasses
        """Merge the context that a worker returned with a task; return an exception if they contradict."""
        return None

    def save(self) -> State:
        state = super().save()
        return {**state, "todo": save_chunk(self._todo.rest())} if self._todo else state

    def load(self, state: State) -> None:
        super().load(state)
        self._todo = Remainder(load_chunk(state.get("todo"), lambda: self.node.source.element_spec))
