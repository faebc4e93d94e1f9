"""Divided functions: the beginning runs on columns, and the rest is called for each element.

If the beginning of a function can be proved, such as parsing and decoding, and its rest cannot, the values of the local
variables between the two are computed for many elements at once (evaluate.py). For each element, the rest is called
with these values. It is the user's code with NOPs in the place of the beginning, so tracebacks point into it as always.

The rest may change what the beginning reads, such as a counter. Then the values for the later elements are not used.

The beginning has no effects. If it may fail for an element or differ from single calls, the function is called as
usual. Before the values are trusted, some are compared with those of single calls of the beginning.
"""

from __future__ import annotations

import dataclasses
import dis
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Self

import numpy as np

from dataset.amounts import LARGE_ELEMENT_BYTES
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.functions.bytecode import NotProvedError, Variable
from dataset.runtime.functions.column_operations import ColumnValues
from dataset.runtime.functions.evaluate import rows_of_value, values_on_columns
from dataset.runtime.functions.expression import Division, read_function
from dataset.runtime.functions.kernels.columns import TRIAL, Columns, ElementwiseFunction
from dataset.runtime.functions.kernels.vectorized import is_same
from dataset.runtime.functions.places import members_of, method_of, value_at

_NOP, _LOAD, _BUILD, _RETURN = (dis.opmap[name] for name in ("NOP", "LOAD_FAST", "BUILD_TUPLE", "RETURN_VALUE"))
_NO_LINE = 0xF8
"""A location table entry without a line, for one instruction, as in CPython's InternalDocs/code_objects.md."""
_UNIT = 2  # the bytes of an instruction: the opcode and an operand


class DividedFunction:
    """Function with a known beginning.

    Args:
        function: the user function.
        division: where it is divided.

    Attributes:
        rest: the code after the division. Its parameters are the first local variables.
        beginning: the code that returns the variables of the division.
        positions: the positions of these variables among the parameters.
        values: the expressions of their values.
    """

    def __init__(self, function: Callable[..., Any], division: Division) -> None:
        self.function, self.division = function, division
        code, offset, names = division.code, division.offset, division.names
        self.positions = list(map(code.co_varnames.index, names))
        (self.values,) = division.graph.body.operations[-1].operands
        begin = next(one.offset for one in dis.get_instructions(code) if one.opname == "RESUME") + _UNIT
        nops = bytes([_NOP, 0]) * ((offset - begin) // _UNIT)
        self.rest = code.replace(
            co_code=code.co_code[:begin] + nops + code.co_code[offset:],
            co_argcount=max(self.positions, default=-1) + 1,
            co_posonlyargcount=0,
            co_kwonlyargcount=0,
        )
        loads = bytes(part for position in self.positions for part in (_LOAD, position))
        beginning = code.co_code[:offset] + loads + bytes([_BUILD, len(names), _RETURN, 0])
        whole, left = divmod(len(beginning) // 2, 8)
        self.beginning = code.replace(
            co_code=beginning,
            co_stacksize=code.co_stacksize + len(names),
            co_exceptiontable=b"",
            # A longer table makes a tracer write out of bounds. An entry is for up to 8 instructions without a line.
            co_linetable=bytes([*[_NO_LINE | 7] * whole, *[_NO_LINE | left - 1] * (left > 0)]),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return divided_function, (self.function,)  # code objects can't be pickled


def divided_function(function: Callable[..., Any]) -> DividedFunction | None:
    """Return the function with the place where it is divided; None if its beginning isn't known."""
    division = read_function(function).division
    return None if division is None else DividedFunction(function, division)


class Beginning(Columns):
    """Decides for an operator on which chunks the beginning of its function runs on columns, and computes them."""

    def __init__(self, divided: DividedFunction) -> None:
        super().__init__(ElementwiseFunction(divided.function, divided.division.graph))
        self._divided = divided
        self._are_read_only: list[bool] = []  # the arrays of each variable

    def __reduce__(self) -> tuple[Any, ...]:
        return _beginning_of, (self._divided.function,)

    def calls(self, inputs: Chunk, position: int) -> tuple[Any, Iterable[tuple[Any, ...]]] | None:
        """Return the rest, and the arguments of its calls for the elements; None to call the function itself."""
        if not self.may_fit(inputs.length, position):
            return None
        try:
            return self._calls(inputs)
        except Exception:  # noqa: BLE001  # the calls for single elements show which one failed
            self.rest()
            return None

    def _calls(self, inputs: Chunk) -> tuple[Any, Iterable[tuple[Any, ...]]] | None:
        found = self.evaluate(inputs, values_on_columns)
        if found is None:
            return None
        values, uses_arrays, reads = found
        if not uses_arrays:
            raise NotProvedError  # a few operations with numbers cost less than passing them on
        if not self.trusted:
            tried = inputs.slice(0, TRIAL)
            single = _with_code(self._divided.function, self._divided.beginning)
            expected = [single(*arguments) for arguments in zip(*tried.arguments(), strict=True)]
            self._are_read_only = [type(one) is np.ndarray and not one.flags.writeable for one in expected[0]]
            rows = [
                [row[position] for position in self._divided.positions]
                for row in itertools.islice(self._arguments(values, inputs.length), tried.length)
            ]
            others = [next(zip(*tried.arguments(), strict=True)), list(reads.values())]
            is_same = _sharing(rows[0], *others) == _sharing(expected[0], *others)
            is_same = is_same and all(map(_are_alike, map(tuple, rows), expected))
            self.judge(tried.length, same=is_same)
            if not is_same:
                return None
        division = self._divided.division
        function: Any = value_at(division.place, reads)
        rest = FunctionType(self._divided.rest, function.__globals__, function.__name__, None, function.__closure__)
        arguments = self._arguments(values, inputs.length)
        places = [read.place for read in division.graph.reads if read.place and not read.is_of_library]
        watched = _Watched(
            (place[-1], value_at(place[:-1], reads), reads[place])
            for place in places
            if type(reads[place]) not in _UNCHANGED and getattr(place[-1], "kind", "") not in _FIXED
        )
        return rest, UnchangedRows(arguments, watched, self) if watched else arguments

    def _arguments(self, values: Sequence[Any], length: int) -> Iterable[tuple[Any, ...]]:
        """Return the arguments of the rest for each element."""
        divided = self._divided
        if not values:
            return itertools.repeat((), length)
        containers = [
            id(one) for value in {id(value): value for value in values}.values() for one in _containers(value)
        ]
        if len(containers) != len(set(containers)):
            raise NotProvedError  # two variables hold a container that the rest may modify
        streams: list[Iterable[Any]] = [itertools.repeat(None)] * divided.rest.co_argcount
        first, again = dict[int, int](), list[tuple[int, int]]()
        for position, value, expression, is_read_only in zip(
            divided.positions, values, divided.values, self._are_read_only, strict=True
        ):
            if expression.kind in {"constant", "read"}:
                streams[position] = itertools.repeat(value, length)
            elif first.setdefault(id(value), position) != position:
                again.append((position, first[id(value)]))  # the same object, not an equal one
            else:
                streams[position] = rows_of_value(_read_only(value) if is_read_only else value, length)
        rows = zip(*streams, strict=False)  # an unused parameter has no end
        return map(functools.partial(_with_repeated, again), rows) if again else rows


_UNCHANGED = frozenset({FunctionType, CodeType, ModuleType, BuiltinFunctionType, type, np.ufunc})
"""Types of values that are not compared between two calls: code and modules are looked up again for each chunk only."""

_FIXED = frozenset({"self", "function", "called", "given", "keyword", "names"})
"""Kinds of steps to parts of objects that never change."""


class UnchangedRows:
    """Iterator over the arguments of the rest, until a call changes what the beginning has read.

    Attributes:
        has_ended: whether that was so; then the function is not divided any more.
    """

    def __init__(self, rows: Iterable[tuple[Any, ...]], watched: _Watched, columns: Columns) -> None:
        self._rows, self._watched, self._columns = iter(rows), watched, columns
        self._is_first = True
        self.has_ended = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> tuple[Any, ...]:
        if not self._is_first and not self._watched.is_unchanged():
            self._columns.judge(0, same=False)
            self.has_ended = True
            raise StopIteration
        self._is_first = False
        return next(self._rows)


class _Watched:
    """What a function reads and may change itself, with the values that it has.

    Args:
        found: for each, the last step of its place, where that begins, and the value.
    """

    def __init__(self, found: Iterable[tuple[Any, Any, Any]]) -> None:
        self._stored: list[tuple[Any, Any, Any]] = []  # dicts, keys and values: testing these costs least
        self._others: list[tuple[Any, Any, Any]] = []
        self._arrays: list[tuple[Any, bytes]] = []
        for step, owner, value in found:
            place = _place_in_dict(step, owner)
            if place is not None and place[0].get(place[1]) is value:
                self._stored.append((*place, value))
            else:
                self._others.append((step, owner, value))
            if type(value) is np.ndarray and value.flags.writeable:
                if value.nbytes > LARGE_ELEMENT_BYTES:
                    raise NotProvedError  # comparing it for each element would take long
                self._arrays.append((value, value.tobytes()))

    def __bool__(self) -> bool:
        return bool(self._stored or self._others)

    def is_unchanged(self) -> bool:
        """Return whether all of it is still the same."""
        for owner, key, value in self._stored:
            if owner.get(key) is not value:
                return False
        if not self._others and not self._arrays:
            return True
        is_same = all(step.value_in(owner) is value for step, owner, value in self._others)
        return is_same and all(array.tobytes() == content for array, content in self._arrays)


def _place_in_dict(step: Any, owner: Any) -> tuple[dict[Any, Any], Any] | None:
    """Return the dict and the key where a step finds its value, if it does so there."""
    if isinstance(step, Variable):
        return (owner.__globals__, step.name) if step.source == "global" else None
    if step.kind == "item":
        return (owner, step.name) if type(owner) is dict else None
    return (members_of(owner), step.name) if step.kind == "attribute" else None


def _beginning_of(function: Callable[..., Any]) -> Beginning | None:
    divided = divided_function(function)
    return None if divided is None else Beginning(divided)


def _with_repeated(again: list[tuple[int, int]], row: tuple[Any, ...]) -> tuple[Any, ...]:
    filled = list(row)
    for position, first in again:
        filled[position] = row[first]
    return tuple(filled)


def _read_only(value: Any) -> Any:
    """Return computed values whose rows are read-only, as those of np.frombuffer are."""
    if not isinstance(value, ColumnValues):
        return value
    values = value.values.view()
    values.flags.writeable = False
    return dataclasses.replace(value, values=values)


def _sharing(*values: Any) -> list[bool]:
    """Return which of the arrays in some values may share memory, so that a change of one changes the other."""
    return [np.may_share_memory(a, b) for a, b in itertools.combinations(_arrays(values), 2)]


def _arrays(value: Any) -> list[Any]:
    parts = value.values() if type(value) is dict else value if type(value) in {tuple, list} else ()
    return [value] if type(value) is np.ndarray else [array for part in parts for array in _arrays(part)]


def _containers(value: Any) -> Iterator[Any]:
    if type(value) in {dict, list, tuple}:
        yield value
        for item in value.values() if type(value) is dict else value:
            yield from _containers(item)


def _with_code(function: Any, code: CodeType) -> Callable[..., Any]:
    """Return a function that differs from another one only in its code, or in that of what it calls."""
    kind = type(function)
    if kind is FunctionType:
        found = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
        found.__kwdefaults__ = function.__kwdefaults__
        return found
    if kind is functools.partial:
        return functools.partial(_with_code(function.func, code), *function.args, **function.keywords)
    method = function.__func__ if kind is MethodType else method_of(function, "__call__")
    owner = function.__self__ if kind is MethodType else function
    return functools.partial(_with_code(method, code), owner)


def _are_alike(mine: Any, other: Any) -> bool:
    """Return whether two values are the same for the code that gets them."""
    kind = type(mine)
    if mine is other:
        return True
    if kind is not type(other):
        return False
    if kind is dict:
        return mine.keys() == other.keys() and all(_are_alike(mine[key], other[key]) for key in mine)
    if kind is tuple or kind is list:
        return len(mine) == len(other) and all(map(_are_alike, mine, other))
    if kind is np.ndarray and mine.flags.writeable != other.flags.writeable:
        return False
    if kind is float or issubclass(kind, np.generic):
        return np.asarray(mine).tobytes() == np.asarray(other).tobytes()
    return is_same(mine, other) or (kind in {int, str, bool} and bool(mine == other))
