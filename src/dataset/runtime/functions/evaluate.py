"""Evaluation of an expression graph on columns: one pass over its operations for many elements.

Each value is a column of the values for the single elements, or something that is the same for all of them. Tuples,
lists and dicts that a function builds are real ones, with columns in them, so that they behave as for one element. A
branch divides the elements: each side is evaluated for its own, and the results are put together.

None of this runs user code. An operation that may not give the same as for single elements raises ``NotProvedError``.
Anything else that is raised belongs to some element. Then the function is called for each of them.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import EllipsisType
from typing import Any

import numpy as np

from dataset.plan.structure import Structure, is_tuple
from dataset.runtime.chunks.batching import ColumnMismatchError, stack_column
from dataset.runtime.chunks.chunk import Column, take_column
from dataset.runtime.functions import column_operations
from dataset.runtime.functions.bytecode import NotProvedError
from dataset.runtime.functions.column_operations import NUMBERS, ColumnValues
from dataset.runtime.functions.expression import Branch, CodeBlock, Expression, Graph, parses_records
from dataset.runtime.functions.places import Place

ELEMENT_BYTES_MAX = 8192
"""Larger elements are expensive by themselves, and a column of them does not stay in the cache for the next step."""

_STATIC = (bool, int, float, str, bytes, tuple, list, dict, slice, type(None), EllipsisType, np.ndarray, np.generic)
_IN_PLACE = {f"{symbol}=": symbol for symbol in ("+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>", "**")}


class Component:
    """A component of the elements, which may be passed on unchanged whatever it is."""

    __slots__ = ("column", "values")

    def __init__(self, column: Column) -> None:
        self.column = column
        self.values: ColumnValues | None = None  # once it is an operand


class Evaluation:
    """Evaluation of a graph for some elements.

    Args:
        graph: the graph.
        reads: the current values of what the function reads, see ``Graph.current``.
        arguments: the arguments with a ``Component`` for each component.
        length: the number of elements.

    Attributes:
        takes_arrays: whether it computes with components that are arrays, and not only with numbers.
    """

    def __init__(self, graph: Graph, reads: dict[Place, Any], arguments: Sequence[Any], length: int) -> None:
        self._graph = graph
        self._reads = reads
        self._arguments = arguments
        self._columns = [
            component.column for component in _leaves(arguments)
        ]  # arguments that are dicts may be modified
        self._own_dicts = set(map(id, _dicts(arguments)))  # all others may belong to the user
        self._length = length
        self._values: dict[Expression, Any] = {}
        self._element_bytes = 0
        self._outer: Evaluation | None = None
        self._indices: Any = None  # of these elements among those of the outer evaluation
        self._gathered: dict[int, Any] = {}
        self.takes_arrays = False

    def result(self) -> Any:
        """Return the function's result, with columns in the places of its components.

        Raises:
            NotProvedError: it may not be that of the single elements.
            Exception: the function may fail for an element, or warn.
        """
        return self._run(self._graph.body)

    def _run(self, block: CodeBlock) -> Any:
        for expression in block.operations:
            operate = getattr(self, f"_{expression.kind}")
            self._values[expression] = operate(expression, *expression.operands)
        end = block.end
        if isinstance(end, NotProvedError):
            raise NotProvedError(end.reason)
        return self._divided(end) if isinstance(end, Branch) else self.value(end)

    def value(self, expression: Expression) -> Any:
        """Return the value of an expression."""
        if expression in self._values:
            return self._values[expression]
        match expression.kind:
            case "constant":
                return expression.operands[0]
            case "read":
                return self._reads[expression.operands[0]]
            case "argument" if self._outer is None:
                return self._arguments[expression.operands[0]]
        assert self._outer is not None  # every operation is executed before its value is used
        value = self._values[expression] = self._gather(self._outer.value(expression))
        return value

    def values(self, expressions: Sequence[Expression]) -> list[Any]:
        """Return the values of some expressions."""
        return list(map(self.value, expressions))

    # Branches

    def _divided(self, branch: Branch) -> Any:
        test = self.value(branch.test)
        if isinstance(test, Component):
            test = self._operand(test)
        if not isinstance(test, ColumnValues):
            if not _is_static(test):
                raise NotProvedError
            return self._run(branch.then if test else branch.otherwise)
        if test.values.ndim > 1:
            raise NotProvedError("it tests an array")
        is_true = test.values != 0
        count = int(np.count_nonzero(is_true))
        if count in {0, self._length}:
            return self._run(branch.then if count else branch.otherwise)
        sides = [(branch.then, np.flatnonzero(is_true)), (branch.otherwise, np.flatnonzero(~is_true))]
        results = [(self._side(block, indices), indices) for block, indices in sides]
        return _joined(results, self._length)

    def _side(self, block: CodeBlock, indices: Any) -> Any:
        side = Evaluation(self._graph, self._reads, (), len(indices))
        side._outer, side._indices = self, indices  # its own class
        result = side._run(block)  # its own class
        self.takes_arrays |= side.takes_arrays
        return complete(result, len(indices))

    def _gather(self, value: Any) -> Any:
        """Return the values of these elements. A container is copied once, so that it stays the same object."""
        if isinstance(value, ColumnValues):
            return dataclasses.replace(value, values=value.values[self._indices])
        if isinstance(value, Component):
            return Component(take_column(value.column, self._indices))
        if type(value) not in {tuple, list, dict}:
            return value
        assert self._outer is not None  # or there is nothing to gather
        known = self._gathered.get(id(value))
        if known is None:
            if type(value) is dict:
                known = {key: self._gather(item) for key, item in value.items()}
                known = self._new_dict(known) if id(value) in self._outer._own_dicts else known  # noqa: SLF001  # its own class
            else:
                known = type(value)(map(self._gather, value))
            self._gathered[id(value)] = known
        return known

    # Operands

    def _operand(self, value: Any) -> Any:
        """Return an operand with columns in the form in which operations take them."""
        if isinstance(value, Component):
            return self._values_of(value)
        if type(value) is tuple or type(value) is list:
            return type(value)(map(self._operand, value))
        if isinstance(value, dict):
            raise NotProvedError
        return value

    def _values_of(self, component: Component) -> ColumnValues:
        if component.values is None:
            component.values = self._checked(component.column)
        return component.values

    def _checked(self, column: Column) -> ColumnValues:
        if type(column) is not np.ndarray or column.dtype not in NUMBERS:
            raise NotProvedError("it computes with more than numbers and arrays of them")
        if column.ndim > 1:
            if not column.flags.c_contiguous:  # the results would have the same memory layout
                raise NotProvedError("its arrays are not contiguous")
            self.takes_arrays = True
            self._element_bytes += column.nbytes // max(1, len(column))
            if self._element_bytes > ELEMENT_BYTES_MAX:
                raise NotProvedError(f"its arrays have more than {ELEMENT_BYTES_MAX} bytes, and are faster one by one")
        return ColumnValues(column)

    def _new_dict(self, items: dict[str, Any]) -> dict[str, Any]:
        self._own_dicts.add(id(items))
        return items

    def _require_own_dict(self, value: Any) -> None:
        if id(value) not in self._own_dicts:
            raise NotProvedError("it modifies a dict that it didn't create")

    # Operations

    def _operator(self, _: Expression, symbol: str, *operands: Expression) -> Any:
        values = [self._operand(value) for value in self.values(operands)]
        if not any(isinstance(value, ColumnValues) for value in values):
            if not all(map(_is_static, values)):
                raise NotProvedError
            if symbol in _IN_PLACE and type(values[0]) is np.ndarray:
                raise NotProvedError("it modifies an array in place")
            return column_operations.operate_on_constants(_IN_PLACE.get(symbol, symbol), values)
        if symbol in _IN_PLACE:
            return self._in_place(_IN_PLACE[symbol], *values)
        return column_operations.operate(symbol, *values, reuse=self._is_intermediate(operands[0]))

    def _is_intermediate(self, expression: Expression) -> bool:
        """Return whether a value is a new array that only the current operation uses."""
        is_new = expression.kind == "operator" and expression.operands[0] in column_operations.REUSING
        is_new |= expression.kind == "method" and expression.operands[1] == "astype"
        return is_new and expression in self._values and len(self._graph.uses[expression]) == 1

    def _in_place(self, symbol: str, target: Any, value: Any) -> Any:
        if isinstance(target, ColumnValues) and target.values.ndim > 1:
            self._require_own(target)
            result = column_operations.operate(symbol, target, value)
            if result.values.shape != target.values.shape:
                raise NotProvedError
            np.copyto(target.values, result.values, casting="same_kind")
            return target
        return column_operations.operate(symbol, target, value)  # a number, or an array that is the same for all

    def _require_own(self, target: ColumnValues) -> None:
        """Check that an array may be modified: nothing outside of the evaluation refers to its memory."""
        if any(np.may_share_memory(target.values, other) for other in self._foreign()):
            raise NotProvedError("it modifies an array of the element in place")

    def _foreign(self) -> list[Any]:
        if self._outer is not None:
            return self._outer._foreign()  # noqa: SLF001  # its own class
        return [value for value in (*self._columns, *self._reads.values()) if type(value) is np.ndarray]

    def _call(
        self, _: Expression, function: Any, positional: Any, names: Sequence[str], keywords: Sequence[Expression]
    ) -> Any:
        given = [self._operand(value) for value in self.values(positional)]
        named = dict(zip(names, map(self._operand, self.values(keywords)), strict=True))
        if _have_columns([*given, *named.values()]):
            return column_operations.call(function, given, named)
        if not all(map(_is_constant_argument, [*given, *named.values()])):
            raise NotProvedError
        return column_operations.call_on_constants(function, given, named)

    def _method(
        self,
        _: Expression,
        owner: Expression,
        name: str,
        positional: Any,
        names: Sequence[str],
        keywords: Sequence[Expression],
    ) -> Any:
        target, given = self.value(owner), self.values(positional)
        named = dict(zip(names, self.values(keywords), strict=True))
        if type(target) is dict:
            return self._dict_method(target, name, given, named)
        target, given = self._operand(target), list(map(self._operand, given))
        if isinstance(target, ColumnValues):
            return column_operations.method(
                target, name, given, {key: self._operand(one) for key, one in named.items()}
            )
        if isinstance(target, np.ndarray | np.generic) and not _have_columns([*given, *named.values()]):
            return column_operations.method_of_constant(target, name, given, named)
        raise NotProvedError

    def _dict_method(self, target: dict[str, Any], name: str, given: list[Any], named: dict[str, Any]) -> Any:
        self._require_own_dict(target)
        if name == "copy" and not given and not named:
            return self._new_dict(target.copy())
        keys = given[:1] if name in {"get", "pop", "setdefault"} else []
        if name == "update" and all(type(other) is dict for other in given):
            return target.update(*given, **named)
        if named or not keys or type(keys[0]) is not str:
            raise NotProvedError
        return getattr(target, name)(*given)

    def _attribute(self, _: Expression, owner: Expression, name: str) -> Any:
        target = self._operand(self.value(owner))
        if isinstance(target, ColumnValues):
            return column_operations.attribute(target, name)
        if isinstance(target, np.ndarray | np.generic):
            return getattr(target, name)
        raise NotProvedError

    def _item(self, _: Expression, owner: Expression, key: Expression) -> Any:
        target, index = self.value(owner), self.value(key)
        if type(target) in {dict, tuple, list}:
            if isinstance(index, ColumnValues | Component):
                raise NotProvedError
            return target[index]
        target, index = self._operand(target), self._operand(index)
        if isinstance(target, ColumnValues) or _have_columns([index]):
            return column_operations.subscript(target, index)
        if isinstance(target, np.ndarray | str | bytes):
            return target[index]
        raise NotProvedError

    def _store(self, _: Expression, target: Expression, key: Expression, value: Expression) -> None:
        owner, index, stored = self.values([target, key, value])
        if type(owner) is dict and type(index) is str:
            self._require_own_dict(owner)
            owner[index] = stored
            return
        owner, stored = self._operand(owner), self._operand(stored)
        if not isinstance(owner, ColumnValues) or owner.values.ndim < 2:
            raise NotProvedError
        self._require_own(owner)
        part = column_operations.subscript(owner, self._operand(index))
        if not np.shares_memory(part.values, owner.values):
            raise NotProvedError
        rank = part.values.ndim - 1
        if isinstance(stored, ColumnValues):
            missing = rank - (stored.values.ndim - 1)
            if missing < 0:
                raise NotProvedError
            stored = stored.values.reshape(len(stored.values), *(1,) * missing, *stored.values.shape[1:])
        elif np.ndim(stored) > rank:
            raise NotProvedError
        if not np.can_cast(np.result_type(stored), part.values.dtype, "same_kind") and type(stored) not in {int, bool}:
            raise NotProvedError
        part.values[...] = stored

    def _delete(self, _: Expression, target: Expression, key: Expression) -> None:
        owner, index = self.values([target, key])
        if type(owner) is not dict or type(index) is not str:
            raise NotProvedError
        self._require_own_dict(owner)
        del owner[index]

    def _unpack(self, _: Expression, value: Expression, count: int) -> None:
        whole = self.value(value)
        if isinstance(whole, Component):
            whole = self._operand(whole)
        size = whole.values.shape[1] if isinstance(whole, ColumnValues) and whole.values.ndim > 1 else None
        if type(whole) in {tuple, list}:
            size = len(whole)
        if size != count:
            raise NotProvedError

    def _tuple(self, _: Expression, parts: Sequence[Expression]) -> tuple[Any, ...]:
        return tuple(self.values(parts))

    def _list(self, _: Expression, parts: Sequence[Expression]) -> list[Any]:
        return self.values(parts)

    def _slice(self, _: Expression, parts: Sequence[Expression]) -> slice:
        bounds = self.values(parts)
        if not all(bound is None or type(bound) is int for bound in bounds):
            raise NotProvedError
        return slice(*bounds)

    def _dict(self, _: Expression, keys: Sequence[Expression], values: Sequence[Expression]) -> dict[str, Any]:
        names = self.values(keys)
        if not all(type(name) is str for name in names):
            raise NotProvedError
        return self._new_dict(dict(zip(names, self.values(values), strict=True)))

    def _merge(self, _: Expression, target: Expression, other: Expression) -> dict[str, Any]:
        mine, more = self.values([target, other])
        if type(mine) is not dict or type(more) is not dict:
            raise NotProvedError
        return self._new_dict({**mine, **more})

    def _extend(self, _: Expression, target: Expression, other: Expression) -> list[Any]:
        mine, more = self.values([target, other])
        if type(mine) is not list or type(more) not in {list, tuple}:
            raise NotProvedError
        return [*mine, *more]

    def _is(self, _: Expression, left: Expression, right: Expression, negated: bool) -> bool:
        mine, other = self.values([left, right])
        if any(isinstance(value, Component) and not isinstance(value.column, np.ndarray) for value in (mine, other)):
            raise NotProvedError
        if mine is not None and other is not None:
            raise NotProvedError
        return (mine is other) != negated

    def _contains(self, _: Expression, container: Expression, value: Expression, negated: bool) -> Any:
        where, what = self.values([container, value])
        if type(where) is dict and type(what) is str:
            return (what in where) != negated
        what = self._operand(what)
        if type(where) not in {tuple, list} or not where or not isinstance(what, ColumnValues):
            raise NotProvedError
        found = column_operations.operate("==", what, self._operand(where[0]))
        for item in where[1:]:
            found = ColumnValues(found.values | column_operations.operate("==", what, self._operand(item)).values)
        return ColumnValues(found.values != negated, is_python=True)

    def _twin(self, expression: Expression, twin: Callable[..., Any], part: Expression, *argument: Any) -> Any:
        value = self.value(part)
        if not isinstance(value, Component | ColumnValues):
            raise NotProvedError
        column = value.column if isinstance(value, Component) else value.values
        if not parses_records(twin):
            return self._values_of(Component(twin(column, *argument)))
        uses = self._graph.keys_used(expression)
        octets = frozenset() if uses is None else self._graph.keys_decoded(expression)
        return self._new_dict(
            {name: Component(parsed) for name, parsed in twin(column, *argument, uses, octets).items()}
        )


def _is_static(value: Any) -> bool:
    """Return whether a value is a plain one that is the same for all elements."""
    if type(value) in {tuple, list}:
        return all(map(_is_static, value))
    return isinstance(value, _STATIC) and not (type(value) is dict and _have_columns([*value.values()]))


def _is_constant_argument(value: Any) -> bool:
    return _is_static(value) or isinstance(value, type | np.dtype)


def _have_columns(values: Sequence[Any]) -> bool:
    return any(
        isinstance(value, ColumnValues | Component) or (type(value) in {tuple, list} and _have_columns(value))
        for value in values
    )


def _dicts(value: Any) -> list[Any]:
    """Return the dicts in a value, and in those."""
    if type(value) is dict:
        return [value, *(found for item in value.values() for found in _dicts(item))]
    return [found for item in value for found in _dicts(item)] if type(value) in {tuple, list} else []


def _leaves(value: Any) -> list[Any]:
    if type(value) in {tuple, list}:
        return [leaf for item in value for leaf in _leaves(item)]
    return [leaf for item in value.values() for leaf in _leaves(item)] if type(value) is dict else [value]


# Results


def complete(result: Any, length: int) -> Any:
    """Return a result with a column in the place of each component, also where it is the same for all elements."""
    if isinstance(result, ColumnValues):
        return result
    if isinstance(result, Component):
        if not _is_passed_on(result.column):
            raise NotProvedError
        return result
    if type(result) in {tuple, list} and result:
        return type(result)(complete(part, length) for part in result)
    if type(result) is dict and result:
        return {key: complete(part, length) for key, part in result.items()}
    if type(result) in {bytes, str}:
        return Component([result] * length)
    if not isinstance(result, bool | int | float | np.generic | np.ndarray) or np.asarray(result).dtype not in NUMBERS:
        raise NotProvedError
    value = np.asarray(result)
    return ColumnValues(np.broadcast_to(value, (length, *value.shape)).copy(), type(result) in {bool, int, float})


def _is_passed_on(column: Any) -> bool:
    """Return whether values passed through unchanged equal those of the column; scalars may lose a byte order."""
    return isinstance(column, list) or column.ndim > 1 or column.dtype in NUMBERS or column.dtype == object


def _joined(results: Sequence[tuple[Any, Any]], length: int) -> Any:
    """Return the results of the sides of a branch, given with the indices of their elements, as one."""
    (first, _), (second, _) = results
    kind, places = type(first), [at for _, at in results]
    if kind is type(second) and kind in {tuple, list} and len(first) == len(second):
        return kind(_joined([(one[n], at) for one, at in results], length) for n in range(len(first)))
    if kind is type(second) is dict and [*first] == [*second]:
        return {key: _joined([(one[key], at) for one, at in results], length) for key in first}
    if not all(isinstance(one, Component | ColumnValues) for one, _ in results):
        raise NotProvedError("its branches return different types")
    mine, other = columns = [_columns_of(one) for one, _ in results]
    if type(mine) is type(other) is np.ndarray and mine.dtype == other.dtype and mine.shape[1:] == other.shape[1:]:
        joined = np.empty((length, *mine.shape[1:]), mine.dtype)
        for column, at in zip(columns, places, strict=True):
            joined[at] = column
        return Component(joined) if kind is type(second) is Component else ColumnValues(joined)
    if not kind is type(second) is Component:
        raise NotProvedError("its branches return different types")
    found: list[Any] = [None] * length
    for column, at in zip(columns, places, strict=True):
        for index, value in zip(at.tolist(), column, strict=True):
            found[index] = value
    return Component(found)


def run_on_columns(
    graph: Graph, reads: dict[Place, Any], structure: Structure, columns: Sequence[Column]
) -> tuple[Any, bool]:
    """Return the result of a graph for the columns of a chunk, and whether it computes with arrays.

    Args:
        graph: the graph.
        reads: what ``Graph.current`` returned.
        structure: the structure of the elements.
        columns: their components.

    Raises:
        NotProvedError: the result may not be that of single elements.
        FloatingPointError: NumPy would warn. For single elements, the warning differs in text and location.
        Exception: the function may fail for an element.
    """
    result, uses_arrays = values_on_columns(graph, reads, structure, columns)
    return _columns_of(complete(result, len(columns[0]))), uses_arrays


def values_on_columns(
    graph: Graph, reads: dict[Place, Any], structure: Structure, columns: Sequence[Column]
) -> tuple[Any, bool]:
    """Return the same as ``run_on_columns``, but as the values of an evaluation; ``rows_of_value`` divides them."""
    element = structure.unflatten([Component(_stacked(column)) for column in columns])
    arguments = element if is_tuple(structure) else (element,)
    evaluation = Evaluation(graph, reads, arguments, len(columns[0]))
    with np.errstate(**{kind: "raise" for kind, how in np.geterr().items() if how != "ignore"}):  # type: ignore[arg-type]
        result = evaluation.result()
    uses_arrays = evaluation.takes_arrays or bool(graph.twins)
    if graph.called_one_by_one is not None and not uses_arrays:
        name = graph.called_one_by_one
        raise NotProvedError(f"it calls {name}() with single numbers, which is faster one by one")
    return result, uses_arrays


def rows_of_value(value: Any, length: int) -> Iterable[Any]:
    """Return what a value is for each element, exactly as a function of single elements computes it.

    Raises:
        NotProvedError: the elements would share something that they may modify.
    """
    if isinstance(value, ColumnValues):
        return value.each()
    if isinstance(value, Component):
        return value.column
    kind = type(value)
    if kind is dict:
        parts = [rows_of_value(part, length) for part in value.values()]
        return (
            (dict(zip(value, row, strict=True)) for row in zip(*parts, strict=True)) if parts else _made(dict, length)
        )
    if kind is tuple or kind is list:
        parts = [rows_of_value(part, length) for part in value]
        return map(kind, zip(*parts, strict=True)) if parts else _made(kind, length)
    if kind is np.ndarray:
        if not (value.flags.owndata and value.flags.c_contiguous and value.flags.writeable):
            raise NotProvedError
        return (value.copy() for _ in range(length))
    if not isinstance(value, bool | int | float | str | bytes | slice | np.generic | None):
        raise NotProvedError
    return itertools.repeat(value, length)


def _made(kind: Any, length: int) -> Iterator[Any]:
    return (kind() for _ in range(length))


def _columns_of(result: Any) -> Any:
    if isinstance(result, Component):
        return result.column
    if isinstance(result, ColumnValues):
        return result.values
    if type(result) in {tuple, list}:
        return type(result)(map(_columns_of, result))
    return {key: _columns_of(part) for key, part in result.items()}


def _stacked(column: Column) -> Column:
    """Return arrays of one shape and dtype as one array, and other columns as they are."""
    if not isinstance(column, list) or type(column[0]) is not np.ndarray:
        return column
    if column[0].nbytes > ELEMENT_BYTES_MAX or column[0].dtype not in NUMBERS:
        return column
    if not all(array.flags.c_contiguous for array in column):  # the results would have the same memory layout
        return column
    try:
        return stack_column(column)  # type: ignore[no-any-return]  # they are arrays
    except ColumnMismatchError:
        return column
