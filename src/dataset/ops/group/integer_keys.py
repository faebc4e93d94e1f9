"""Key operator: calls a user function that returns an integer for each element, such as a group key or a length."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from dataset.errors import SpecError, StateError
from dataset.ops.group.lengths import LengthFunction
from dataset.plan.node import UnaryNode
from dataset.plan.structure import LEAF, Structure, tuple_of
from dataset.runtime.chunks.chunk import Chunk, Column
from dataset.runtime.chunks.ownership import own
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, StoppingOperator
from dataset.runtime.functions.elementwise_operator import ElementwiseOperator
from dataset.runtime.functions.kernels.kernel import Done, Kernel
from dataset.runtime.functions.kernels.rows import RowKernel
from dataset.runtime.functions.kernels.vectorized import is_vectorized
from dataset.runtime.position import Position
from dataset.runtime.state.held_elements import ElementsOperator
from dataset.world.interrupts import interruptible

Integers = npt.NDArray[np.int64]

_MANY = 16  # minimum elements for which calling the function for all at once pays off
_LEAST, _GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_INTEGERS = frozenset({int, *(np.dtype(code).type for code in np.typecodes["AllInteger"])})


class _KeyRows(RowKernel):
    """Kernel that calls the function, and converts all results to keys at once if they are of the usual types."""

    def _done(self, calls: Any, inputs: Chunk, results: list[Any], error: BaseException | None, position: int) -> Done:
        count = len(results)
        if error is not None and not isinstance(error, Exception):
            return Done(0, [], error)
        if (count == inputs.length or calls.stops) and (keys := calls.keys_of_results(results)) is not None:
            return Done(count, [calls.with_keys(inputs.slice(0, count), keys)])
        return super()._done(calls, inputs, results, error, position)


class _KnownKeys(Kernel):
    """Kernel that prepends keys which are known without a call of the function."""

    def __init__(self, otherwise: Kernel) -> None:
        self._otherwise = otherwise

    def run(self, calls: Any, inputs: Chunk, position: int) -> Done:
        keys = calls.known_keys(inputs)
        if keys is None:
            return self._otherwise.run(calls, inputs, position)
        if not len(keys):  # raises the error of an element without a key
            return self._otherwise.run(calls, inputs.slice(0, 1), position)
        return Done(len(keys), [calls.with_keys(inputs.slice(0, len(keys)), keys)])


class KeyOperator(ElementwiseOperator):
    """Operator that prepends to each element the integer that a function returns for it.

    Inputs for which the function must not be called yet are buffered here.

    Args:
        source: the input.
        node: the node that needs the keys.
        function: the user's function; it receives an element as in ``map``.
        argument: the parameter name of the function, for messages.
        key_of: converts the result of the function to a key; may raise.
        keys_of: the same for an array; if a number has no key, it returns the keys of the numbers before.
    """

    one_to_one = True
    row_kernel = _KeyRows

    def __init__(
        self,
        source: Operator,
        node: UnaryNode,
        function: Callable[..., Any],
        argument: str,
        key_of: Callable[[int], int] | None = None,
        keys_of: Callable[[Integers], Integers] | None = None,
    ) -> None:
        super().__init__(source, node, function)
        self.argument = argument
        self.key_of = key_of
        self.keys_of = keys_of
        self._certain = 1
        self._room: Callable[[int], int] = _one
        self._stopped = False  # because the group of a key is full
        self._found: list[int] = []  # keys of the last results that are already known
        self._known: list[int] = []  # keys of the last inputs, if there is one for each
        self._lengths: LengthFunction | None = None
        self._stopping: StoppingOperator | None = None  # the input, if it is pulled until the group of a key is full
        self._context: ExecutionContext | None = None
        self._before: tuple[Position, int] | None = (
            None  # position of the input, and how many elements it returned after it
        )
        self._keyed_structure: Structure | None = None

    def pull_until_full(self, n: int, certain: int, room: Callable[[int], int]) -> Chunk | None:
        """Return the same as ``pull(n)``, but end with the first element that uses up the room of its key.

        Args:
            n: how many elements may be pulled from the input.
            certain: for how many of them a vectorized function may be called.
            room: returns how many elements of a key still have room, at least 1. It is called for each key.
        """
        self._certain, self._room = certain, room
        at_once = self._stopping is None and (is_vectorized(self.function) or certain >= _MANY)
        return self.pull(min(n, certain) if at_once else n)

    def run_unseen(self, lengths: LengthFunction, context: ExecutionContext | None = None) -> None:
        """Declare that it is unobservable when, or for how many elements, the function is called.

        The function is ``lengths``, and upstream operators call no user code for elements that are requested early.
        ``context`` says whether the input can save its state; if it is None, a state holds such elements by value.
        """
        self.is_unseen = True
        self._lengths = lengths
        self._context = context
        if isinstance(self.source, ElementsOperator):
            self.source.unpacks = False

    def stop_when_full(self, source: StoppingOperator, lengths: LengthFunction, room: Callable[[int], int]) -> None:
        """Pull from the input only up to an element that uses up the room of its key.

        The arguments are the input, the function, and a function as for ``pull_until_full``.
        """
        self._stopping, self._lengths, self._room = source, lengths, room

    def _pull_until_full(self, source: StoppingOperator, n: int) -> Chunk | None:
        function, key_of, room_of, left = self.function, self.key_of or _itself, self._room, dict[int, int]()
        keys = self._known = list[int]()
        if self._lengths is None or not self._lengths.holds():
            return super().next_inputs(1)  # its result may be anything

        def is_last(result: Any) -> bool:
            try:
                if type(result) is np.ndarray:
                    key = key_of(int(function(result)))
                    keys.append(key)
                else:
                    self._known = []
                    if type(result) is list and source.lists_are_structure:
                        result = tuple(result)
                    key = key_of(_length_of(function, result))
            except Exception:  # noqa: BLE001  # raised again at its position
                return True
            room = left[key] = (left.get(key) or room_of(key)) - 1
            return not room

        try:
            return source.pull_until(n, is_last)
        except Exception:
            self.at += 1  # as in next_inputs
            raise

    def next_inputs(self, n: int) -> Chunk | None:
        if self._stopping is not None:
            self._known = []
            if not self._todo:
                return self._pull_until_full(self._stopping, n)
        if self._context is None or self._todo:
            return super().next_inputs(n)
        self._before, before = None, None
        if self._context.input_is_replayable:
            with contextlib.suppress(StateError):  # an operator holds data that cannot be saved; save() reports it
                before = self.source.save()
        inputs = super().next_inputs(n)
        if before is not None and inputs is not None and self.source.advance(before, inputs.length) is not None:
            self._before = before, inputs.length
        return inputs

    @property
    def tells_places(self) -> bool:
        """Whether a state need not hold the elements that were read ahead."""
        return self._before is not None

    def new_kernel(self) -> Kernel:
        return _KnownKeys(super().new_kernel())

    @property
    def stops(self) -> bool:
        return self._stopped or super().stops

    def known_keys(self, inputs: Chunk) -> Column | None:
        """Return the keys of these inputs, or of the first of them, without a call of the function; None to call it."""
        if len(self._known) == inputs.length:
            return self._known
        if not self.is_unseen or self._lengths is None or inputs.length == 1 or not self._lengths.holds():
            return None
        lengths = self._lengths.lengths(inputs)
        return lengths if self.keys_of is None else self.keys_of(lengths)

    def unread_keyed(self, keyed: Chunk) -> None:
        """Put back the last elements; the function will be called for them again."""
        structure, columns = keyed.structure.children[1], keyed.columns()[1:]
        self.unread(Chunk(structure, keyed.length, columns, lineage=keyed.lineage), 0)
        self.at -= keyed.length

    def position_before(self, elements: Chunk) -> Position:
        """Return the position before the last elements, which are ``elements``."""
        todo, position = self._todo, self.at
        self.unread(elements, 0)
        self.at -= elements.length
        try:
            return self.save()
        finally:
            self._todo, self.at = todo, position

    def save(self) -> Position:
        exact = self._source_before_todo()
        if exact is None:
            return super().save()
        return Position(self.op, self.at, (exact,))

    def _source_before_todo(self) -> Position | None:
        """Return a position of the input before the buffered elements, so that none need be saved; None if unknown."""
        todo = self._todo.rest()
        if todo is None or self._before is None or self.outbox:
            return None
        before, given = self._before
        taken = given - todo.length
        return self.source.advance(before, taken) if taken else before

    @interruptible
    def collect(self, results: list[Any], inputs: Chunk, position: int) -> None:
        self._stopped = False
        self._found = []
        if inputs.length <= self._certain:
            super().collect(results, inputs, position)
            return
        function, key_of, keep = self.function, self.key_of or _itself, self._found.append
        left: dict[int, int] = {}  # key -> remaining room
        columns = self.arguments(inputs, position)
        for number in map(function, *columns):
            if type(number) not in _INTEGERS or type(number) is np.uint64:
                results.append(own(number, [column[len(results)] for column in columns]))
                break  # this result needs conversion to a key first
            results.append(number)
            try:
                key = key_of(int(number))
            except Exception:  # noqa: BLE001  # raised again at its position
                break
            keep(key)
            room = left.get(key) or self._room(key)
            if room == 1:
                break
            left[key] = room - 1
        else:
            return  # all elements are done, unless the function raised StopIteration
        self._stopped = True

    def keys_of_results(self, results: list[Any]) -> list[int] | None:
        """Return the keys of results of the usual types; None if any result cannot be a key."""
        if len(self._found) == len(results) and min(results) >= _LEAST and max(results) <= _GREATEST:
            return self._found
        if not _INTEGERS.issuperset(map(type, results)):
            return None
        try:
            numbers: list[int] = np.array(results, np.int64).tolist()
            return numbers if self.key_of is None else list(map(self.key_of, numbers))
        except Exception:  # noqa: BLE001  # raised again at its position
            return None

    def finish(self, inputs: Chunk, results: list[Any]) -> Chunk:
        if not _INTEGERS.issuperset(map(type, results)):
            results = [as_integer(self.node, self.argument, result) for result in results]
        return self._keyed(inputs, np.array(results, np.int64))

    def finish_columns(self, inputs: Chunk, result: Any) -> Chunk:
        numbers = np.asarray(result)
        if numbers.dtype.kind not in "iu" or numbers.shape != (inputs.length,):
            raise SpecError(
                f"{self.node.label()}: a vectorized {self.argument} must return {inputs.length} ints, one per "
                f"element, got dtype {numbers.dtype} and shape {numbers.shape}"
            )
        return self._keyed(inputs, numbers.astype(np.int64))

    def _keyed(self, inputs: Chunk, numbers: Integers) -> Chunk:
        if self.key_of is not None:
            numbers = np.array(list(map(self.key_of, numbers.tolist())), np.int64)
        return self.with_keys(inputs, numbers)

    def with_keys(self, inputs: Chunk, keys: Column) -> Chunk:
        """Return the elements with their keys."""
        structure = inputs.structure
        if self._keyed_structure is None or self._keyed_structure.children[1] is not structure:
            self._keyed_structure = tuple_of(LEAF, structure)
        return Chunk(self._keyed_structure, inputs.length, [keys, *inputs.columns()], lineage=inputs.lineage)


def _length_of(function: Callable[..., Any], result: Any) -> int:
    """Return the length of an element in the user's form; raise if that of its components is not certainly the same."""
    is_tuple = type(result) is tuple
    parts = result if is_tuple else result.values() if type(result) is dict else [result]
    if str in map(type, parts):
        raise TypeError("text may have another length when it is encoded")
    return int(function(*result) if is_tuple else function(result))


def _itself(number: int) -> int:
    return number


def _one(key: int) -> int:  # noqa: ARG001  # the default for unknown room
    return 1


def as_integer(node: UnaryNode, argument: str, value: Any) -> int:
    """Return the result of the user function ``argument`` as an int.

    Raises:
        SpecError: if it is not an integer, or is a bool.
    """
    number = np.asarray(value)
    if number.dtype.kind not in "iu" or number.ndim:
        raise SpecError(
            f"{node.label()}: {argument} must return an int, got {value!r:.100} of type {type(value).__name__}"
        )
    return int(number)
