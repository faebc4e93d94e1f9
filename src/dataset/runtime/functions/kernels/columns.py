"""Column kernels: apply the operations of a function to columns, if its expression graph shows what it computes.

The graph is made from the function's code before anything runs. The checks here, done for each chunk, cover what it
cannot know: the structure of the elements, the dtypes and ranks of the columns (evaluate.py), and whether what the
function reads is still of the same kind. None of this calls user code.
"""

from __future__ import annotations

import contextlib
import operator
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dataset.amounts import FEW_ELEMENTS, STEP_BYTES
from dataset.plan.structure import Structure, is_tuple, to_plain
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.functions.evaluate import run_on_columns
from dataset.runtime.functions.expression import Graph, read_function
from dataset.runtime.functions.kernels.kernel import Calls, Done, Kernel, outcomes_of_output
from dataset.runtime.functions.kernels.vectorized import are_identical, column_arguments, done_at_once
from dataset.runtime.functions.places import Place
from dataset.runtime.parallel.read_ahead import ReadAheadOperator

# Below these measured lengths, calling the function for each element is faster.
COSTLY_MIN = 32  # for numbers, if a call is expensive: NumPy's functions are called, or elements are dicts
SCALARS_MIN = 64  # for numbers

TRIED_FROM = 512
"""From which position on columns are tried: a trial costs as much as a few hundred elements."""

TRIAL = 64
"""How many elements are computed both ways before columns are trusted."""


@dataclass(frozen=True, eq=False)
class ElementwiseFunction:
    """Function whose graph can be evaluated for many elements at once, instead of a call for each.

    If a graph is whole, calls are unobservable, whether they are early, late, repeated or omitted, with two exceptions:
    what the function reads may be rebound between two calls, and a failure belongs to an element and must be raised in
    its place.
    """

    function: Callable[..., Any]
    graph: Graph

    def fitted(self, structure: Structure) -> ElementwiseFunction | None:
        """Return the function with its graph for elements of this structure; None if it does not take them."""
        graph = read_function(self.function, structure=structure).graph if self.graph.waits else self.graph
        return ElementwiseFunction(self.function, graph) if isinstance(graph, Graph) and self.takes(structure) else None

    def is_alike(self, structure: Structure, other: Structure) -> bool:
        """Return whether the function is the same for two structures. The order of keys matters if it uses them."""
        return structure == other and (not self.graph.waits or repr(structure) == repr(other))

    def takes(self, structure: Structure) -> bool:
        """Return whether elements of this structure fit the function's arguments, and run no user code themselves."""
        count = len(structure.children) if is_tuple(structure) else 1
        return (
            to_plain(structure) is not None and count == self.graph.arity
        )  # constructors of user classes are user code

    def __reduce__(self) -> tuple[Any, ...]:
        return elementwise_function, (self.function,)  # code objects can't be pickled


def elementwise_function(function: Callable[..., Any]) -> ElementwiseFunction | str | None:
    """Return the function with its graph; or the reason why there is none; or None for other kinds of functions."""
    found = read_function(function)
    graph = found.waiting or found.graph
    return ElementwiseFunction(function, graph) if isinstance(graph, Graph) else graph


class Columns:
    """Decides for an operator on which chunks its function runs on columns, and computes the results.

    The checks have a cost per chunk, and a trial has a cost once. So a chunk must be long enough, and a minimum number
    of elements must have been seen. After chunks that do not qualify, an increasing number of chunks is not checked.
    """

    def __init__(self, function: ElementwiseFunction) -> None:
        self._function = function
        self._seen: tuple[Structure, ElementwiseFunction | None] | None = None
        self.length_min = FEW_ELEMENTS  # until elements have been seen
        self._failures = 0
        self._resting = 0  # how many more chunks to skip without a check
        self._refused = False
        self._compared = 0
        self.trusted = False
        """Whether columns and single elements gave the same results when both were computed."""

    def may_fit(self, length: int, position: int) -> bool:
        """Return whether to look at a chunk of this length, whose first element has this position."""
        if length < self.length_min or self._refused:
            return False
        if not self.trusted and position + length < TRIED_FROM:
            return False
        if self._resting:
            self._resting -= 1
            return False
        return True

    def call(self, inputs: Chunk) -> Any:
        """Return the results for whole columns; None if the function doesn't take such elements, or has changed.

        Raises:
            Exception: if the results may not be those of single elements, or one of these may raise or warn.
        """
        found = self.evaluate(inputs, run_on_columns)
        return None if found is None else found[0]

    def evaluate(
        self, inputs: Chunk, evaluate: Callable[..., tuple[Any, bool]]
    ) -> tuple[Any, bool, dict[Place, Any]] | None:
        """Return what ``evaluate`` returns, which is run_on_columns or like it, and what the function reads."""
        structure = inputs.structure
        found = self._fitted(structure)
        reads = None if found is None else found.graph.current(found.function)
        if found is None or reads is None or _overflow_raises():
            self.rest()
            return None
        result, uses_arrays = evaluate(found.graph, reads, structure, inputs.columns())
        is_costly = not structure.is_immutable or found.graph.calls_library
        self.length_min = FEW_ELEMENTS if uses_arrays else COSTLY_MIN if is_costly else SCALARS_MIN
        return result, uses_arrays, reads

    def values_read(self) -> tuple[Any, ...] | None:
        """Return what the function reads now, with the items of dicts; None if part of it may change in place."""
        found = self._function if self._seen is None or self._seen[1] is None else self._seen[1]
        graph, function = found.graph, found.function
        reads = None if graph.reads_containers else graph.current(function)
        if reads is None:
            return None
        values = [value for place, value in reads.items() if place]
        items = [item for value in values if type(value) is dict for item in (*value, *value.values())]
        return (*np.geterr().values(), *warnings.filters, *values, *items)

    def rest(self) -> None:
        """Note a chunk that did not qualify for columns."""
        self._failures += 1
        self._resting = 32 << min(self._failures, 30)

    def judge(self, length: int, *, same: bool) -> None:
        """Note whether some elements were the same both ways. Trust columns after enough; otherwise never use them."""
        self._compared += length
        if not same:
            self._refused = True  # never taken back: another worker may judge at the same time
        self.trusted = not self._refused and self._compared >= TRIAL

    def _fitted(self, structure: Structure) -> ElementwiseFunction | None:
        """Return the function for elements of this structure; None if it does not take them."""
        seen = self._seen
        if seen is None or (seen[0] is not structure and not self._function.is_alike(seen[0], structure)):
            self._seen = seen = structure, self._function.fitted(structure)
        return seen[1]


class ColumnFunction(Protocol):
    """Column version of a function, added by the optimizer: returns the same results for whole columns, or raises."""

    @property
    def length_min(self) -> int:
        """The number of elements from which a call costs less than single calls."""

    def __call__(self, *columns: Any) -> Any:
        """Return the results for the columns, as a vectorized function does. Runs no user code."""


class ColumnFunctionKernel(Kernel):
    """Kernel that calls a column version of the function; if it fails, ``otherwise`` shows for which element."""

    runs_on_columns = True

    def __init__(self, function: ColumnFunction, otherwise: Kernel) -> None:
        self._function, self._otherwise = function, otherwise

    def run(self, calls: Calls, inputs: Chunk, position: int) -> Done:
        if inputs.length >= self._function.length_min:
            with contextlib.suppress(Exception):
                return done_at_once(calls, inputs, self._function(*column_arguments(inputs)))
        return self._otherwise.run(calls, inputs, position)


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


class ColumnKernel(Kernel):
    """Kernel that evaluates the graph of the function; at the first doubt, ``otherwise`` calls it for each element.

    Args:
        columns: decides on which chunks; several workers share it.
        otherwise: the kernel that calls the function.
        ahead: the input of the operator, if it reads ahead.
    """

    def __init__(self, columns: Columns, otherwise: Kernel, ahead: ReadAheadOperator | None) -> None:
        self._columns, self._otherwise, self._ahead = columns, otherwise, ahead
        self._outputs = _SharedOutputs()

    @property
    def runs_on_columns(self) -> bool:  # type: ignore[override]  # it is read-only
        return self._columns.trusted

    def run(self, calls: Calls, inputs: Chunk, position: int) -> Done:
        columns = self._columns
        if not columns.may_fit(self._readable(inputs), position):
            return self._otherwise.run(calls, inputs, position)
        is_trusted = columns.trusted  # read once: another worker may end the trial meanwhile
        tried = inputs if is_trusted else inputs.slice(0, min(TRIAL, inputs.length))
        try:
            found = self._found(calls, tried)
        except Exception:  # noqa: BLE001  # the calls for single elements show which one failed
            columns.rest()
            found = None
        if found is None:
            return self._otherwise.run(calls, inputs, position)
        (output,) = found
        if not is_trusted:
            return self._judged(calls, output, tried.length, inputs, position)
        return Done(inputs.length, outcomes_of_output(output, inputs))

    def _judged(self, calls: Calls, output: Chunk | None, count: int, inputs: Chunk, position: int) -> Done:
        """Return the outcomes of single calls for the first elements, and those of the others if columns are trusted.

        ``output`` is that of columns for the first ``count`` elements.
        """
        done = self._otherwise.run(calls, inputs.slice(0, count), position)
        try:
            parts = [outcome for outcome in done.outcomes if isinstance(outcome, Chunk)]
            is_complete = len(parts) == len(done.outcomes) and done.interrupt is None
            expected = Chunk.concatenate(parts) if parts else None
            self._columns.judge(count, same=is_complete and are_identical(output, expected))
            if count == inputs.length or not (is_complete and self._columns.trusted):
                return done
            # A state in the middle of the chunk would hold elements.
            return _joined(done, self.run(calls, inputs.slice(count, inputs.length), position + count))
        finally:
            del done  # see runtime/contract.py on exceptions that are kept

    def _found(self, calls: Calls, inputs: Chunk) -> tuple[Chunk | None] | None:
        """Return the output in a tuple; None if the function is better called, or must be."""
        shared = self._shared_output(calls, inputs)
        if shared is not None:
            return (shared,)
        result = None if inputs.length < self._columns.length_min else self._columns.call(inputs)
        return None if result is None else (calls.finish_columns(inputs, result),)

    def _readable(self, inputs: Chunk) -> int:
        """Return the number of inputs together with those that were read ahead after them."""
        ahead = self._ahead
        if ahead is None or ahead.part is not inputs or ahead.whole is None:
            return inputs.length
        return ahead.whole.length - ahead.end + inputs.length

    def _shared_output(self, calls: Calls, inputs: Chunk) -> Chunk | None:
        """Return the output for a part of what the source has read ahead, computed together with later parts.

        So many are computed at once that their outputs stay in the cache until they are requested.
        """
        ahead, shared = self._ahead, self._outputs
        if ahead is None or ahead.part is not inputs:
            return None
        whole, begin = ahead.whole, ahead.end - inputs.length
        if whole is None or whole.length == inputs.length or (shared.inputs is whole and shared.chunk is None):
            return None
        values = self._columns.values_read()
        if values is None:
            return None
        stop = begin + inputs.length
        if shared.inputs is not whole or stop > shared.end or not are_same(shared.values, values):
            count = inputs.length if shared.element_bytes is None else STEP_BYTES // max(1, shared.element_bytes)
            rest = whole.slice(begin, min(whole.length, begin + max(count, inputs.length)))
            self._outputs = shared = _SharedOutputs(whole, begin, begin + rest.length, values, shared.element_bytes)
            with contextlib.suppress(Exception):  # of another part
                result = self._columns.call(rest)
                shared.chunk = None if result is None else calls.finish_columns(rest, result)
            if shared.chunk is None:
                return None
            shared.element_bytes = shared.chunk.nbytes // rest.length
        assert shared.chunk is not None  # checked above
        return shared.chunk.slice(begin - shared.begin, stop - shared.begin)


def _joined(done: Done, later: Done) -> Done:
    return Done(done.count + later.count, [*done.outcomes, *later.outcomes], later.interrupt)


def are_same(values: Sequence[Any], others: Sequence[Any]) -> bool:
    """Return whether two sequences contain the same objects."""
    return len(values) == len(others) and all(map(operator.is_, values, others))


def _overflow_raises() -> bool:
    """Return whether an integer overflow may raise; NumPy detects it in single numbers but not in arrays."""
    return not _QUIET.issuperset(np.geterr().values()) or _warning_raises()


_QUIET = frozenset({"ignore", "warn"})


def _warning_raises() -> bool:
    """Return whether the filters may turn a RuntimeWarning into an error. The first matching filter decides."""
    for action, message, category, module, line in warnings.filters:
        if issubclass(RuntimeWarning, category):
            if action == "error":
                return True
            if message is None and module is None and not line:
                return False
    return False
