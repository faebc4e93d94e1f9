"""Evaluation of an expression graph on columns: one pass over its operations for many elements.

Each value is a column of the values for the single elements, or something that is the same for all of them. Tuples,
lists and dicts that a function builds are real ones, with columns in them, so that they behave as for one element. A
branch divides the elements: each side is evaluated for its own, and the results are put together.

None of this runs user code. An operation that may not give the same as for single elements raises ``NotProvedError``.
Anything else that is raised belongs to some element. Then the function is called for each of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import EllipsisType
from typing import Any

import numpy as np

from dataset.amounts import LARGE_ELEMENT_BYTES
from dataset.plan.structure import Structure, is_tuple
from dataset.runtime.chunks.batching import ColumnMismatchError, stack_column
from dataset.runtime.chunks.chunk import Column, take_column
from dataset.runtime.functions import column_operations, text_operations
from dataset.runtime.functions.bytecode import NotProvedError
from dataset.runtime.functions.column_operations import NUMBERS, ColumnValues, require, with_rank
from dataset.runtime.functions.expression import Branch, CodeBlock, Expression, Graph, parses_records
from dataset.runtime.functions.places import Place
from dataset.runtime.functions.text_operations import FORMATTERS, TextValues

_STATIC = (bool, int, float, str, bytes, tuple, list, dict, slice, type(None), EllipsisType, np.ndarray, np.generic)
_IN_PLACE = {f"{symbol}=": symbol for symbol in ("+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>", "**")}
_NEW_ARRAYS = (np.zeros, np.ones, np.full)  # functions of constants whose results a function may modify


@dataclass(eq=False, slots=True)
class Component:
    """A component of the elements, which may be passed on unchanged whatever it is."""

    column: Column
    values: ColumnValues | TextValues | None = None  # once it is an operand


_COLUMNS = (ColumnValues, TextValues, Component)
_CONTAINERS = (tuple, list, dict)


@dataclass(eq=False, slots=True)
class Evaluation:
    """Evaluation of a graph for some elements.

    Attributes:
        graph: the graph.
        reads: the current values of what the function reads, see ``Graph.current``.
        arguments: the arguments with a ``Component`` for each component.
        length: the number of elements.
        foreign: columns and arrays that may not be modified: what refers to them would have to change, too.
        own_dicts: identities of the dicts that may be modified; all others may belong to the user.
        outer: the evaluation for more elements, if these take one side of a branch.
        indices: the indices of these elements among those of the outer evaluation.
        known: the values of expressions.
        gathered: the values of these elements, by the identities of those of the outer evaluation.
        element_bytes: the size of the arrays in an element.
        takes_arrays: whether it computes with components that are arrays, and not only with numbers.
        takes_texts: whether it computes with texts, which takes as long as single calls.
    """

    graph: Graph
    reads: dict[Place, Any]
    arguments: Sequence[Any]
    length: int
    foreign: list[Any]
    own_dicts: set[int] = field(default_factory=set)
    outer: Evaluation | None = None
    indices: Any = None
    known: dict[Expression, Any] = field(default_factory=dict)
    gathered: dict[int, Any] = field(default_factory=dict)
    element_bytes: int = 0
    takes_arrays: bool = False
    takes_texts: bool = False

    def run(self, block: CodeBlock) -> Any:
        """Return the function's result, with columns in the places of its components.

        Raises:
            NotProvedError: it may not be that of the single elements.
            Exception: the function may fail for an element, or warn.
        """
        for expression in block.operations:
            value = getattr(self, f"_{expression.kind}")(expression, *expression.operands)
            if type(value) is TextValues:
                self.takes_texts, value = True, Component(value.texts, value)
            elif type(value) is ColumnValues and value.source is not None:
                self.foreign += [value.values, value.source]
            self.known[expression] = value
        end = block.end
        if isinstance(end, NotProvedError):
            raise NotProvedError(end.reason)
        return self._divided(end) if isinstance(end, Branch) else self.value(end)

    def value(self, expression: Expression) -> Any:
        """Return the value of an expression."""
        found = self.known.get(expression, self)
        if found is not self:
            return found
        kind, operands = expression.kind, expression.operands
        if kind == "constant":
            return operands[0]
        if kind == "read":
            return self.reads[operands[0]]
        if self.outer is None:  # every operation is executed before its value is used
            return self.arguments[operands[0]]
        value = self.known[expression] = self._gather(self.outer, self.outer.value(expression))
        return value

    def values(self, expressions: Sequence[Expression]) -> list[Any]:
        """Return the values of some expressions."""
        return [self.value(expression) for expression in expressions]

    # Branches

    def _divided(self, branch: Branch) -> Any:
        test = self.value(branch.test)
        test = self._operand(test) if isinstance(test, Component) else test
        test = text_operations.call(bool, [test]) if isinstance(test, TextValues) else test
        if not isinstance(test, ColumnValues):
            require(_is_static(test))
            return self.run(branch.then if test else branch.otherwise)
        require(test.rank == 0, "it tests an array")
        is_true = test.values != 0
        count = int(np.count_nonzero(is_true))
        if count in {0, self.length}:
            return self.run(branch.then if count else branch.otherwise)
        places = np.flatnonzero(is_true), np.flatnonzero(~is_true)
        then, otherwise = map(self._side, (branch.then, branch.otherwise), places)
        return _joined(then, otherwise, places, self.length)

    def _side(self, block: CodeBlock, indices: Any) -> Any:
        side = Evaluation(self.graph, self.reads, (), len(indices), [*self.foreign], set(), self, indices)
        result = side.run(block)
        self.takes_arrays |= side.takes_arrays
        self.takes_texts |= side.takes_texts
        return complete(result, len(indices))

    def _gather(self, outer: Evaluation, value: Any) -> Any:
        """Return the values of these elements. They are copied once, so that each stays the same object."""
        known = self.gathered.get(id(value))
        if known is not None:
            return known
        if isinstance(value, ColumnValues):
            known = ColumnValues(_taken(value, self.indices), value.is_python, value.is_array)
            others = [one for one in outer.known.values() if type(one) is ColumnValues and one is not value]
            if outer._is_foreign(value) or any(np.may_share_memory(value.values, other.values) for other in others):
                self.foreign.append(known.values)  # a change would have to be seen in these, too
        elif isinstance(value, Component):
            known = Component(take_column(value.column, self.indices))
            self.foreign.append(known.column)
        elif isinstance(value, _CONTAINERS):
            known = _map(lambda item: self._gather(outer, item), value)
            if id(value) in outer.own_dicts:
                self.own_dicts.add(id(known))
        else:
            return value
        self.gathered[id(value)] = known
        return known

    # Operands

    def _operand(self, value: Any) -> Any:
        """Return an operand with columns in the form in which operations take them."""
        kind = type(value)
        if kind is Component:
            if value.values is None:
                texts = text_operations.texts_of(value.column)
                self.takes_texts |= texts is not None
                value.values = texts or self._checked(value.column)
            return value.values
        if kind is tuple or kind is list:
            return kind(map(self._operand, value))
        require(kind is ColumnValues or not isinstance(value, dict))
        return value

    def _operands(self, expressions: Sequence[Expression]) -> list[Any]:
        return [self._operand(self.value(expression)) for expression in expressions]

    def _checked(self, column: Column) -> ColumnValues:
        if type(column) is not np.ndarray or column.dtype not in NUMBERS:
            raise NotProvedError(text_operations.NOT_NUMBERS)
        if column.ndim > 1:
            require(column.flags.c_contiguous, "its arrays are not contiguous")  # results have the same memory layout
            self.takes_arrays = True
            self.element_bytes += column.nbytes // max(1, len(column))
            is_small = self.element_bytes <= LARGE_ELEMENT_BYTES
            require(is_small, f"its arrays have more than {LARGE_ELEMENT_BYTES} bytes, and are faster one by one")
        return ColumnValues(column)

    def _new_dict(self, items: dict[str, Any]) -> dict[str, Any]:
        self.own_dicts.add(id(items))
        return items

    def _require_own_dict(self, value: Any) -> None:
        require(id(value) in self.own_dicts, "it modifies a dict that it didn't create")

    def _is_foreign(self, rows: ColumnValues) -> bool:
        return any(type(other) is np.ndarray and np.may_share_memory(rows.values, other) for other in self.foreign)

    # Operations

    def _operator(self, _: Expression, symbol: str, *operands: Expression) -> Any:
        given = self.values(operands)
        if _is_of_sequences(symbol, *given):
            return column_operations.operate_on_constants(symbol, given)
        if symbol == "|" and all(type(one) is dict for one in given):
            return self._new_dict({**given[0], **given[1]})
        values = [*map(self._operand, given)]
        if text_operations.takes(*values) and _have_columns(values):
            return text_operations.operate(_IN_PLACE.get(symbol, symbol), *values)
        if any(type(value) is ColumnValues and value.rank for value in values):
            values = [np.asarray(value) if type(value) is list else value for value in values]
        target, in_place = values[0], _IN_PLACE.get(symbol)
        if ColumnValues not in map(type, values):
            require(all(_is_static(one) or isinstance(one, type | np.dtype) for one in values))
            require(not in_place or type(target) is not np.ndarray, "it modifies an array in place")
            return column_operations.operate_on_constants(in_place or symbol, values)
        if not in_place or type(target) is not ColumnValues or not target.rank:  # or a number, which is replaced
            reuse = not in_place and self._is_intermediate(operands[0])
            return column_operations.operate(in_place or symbol, *values, reuse=reuse)
        require(not self._is_foreign(target), "it modifies an array of the element in place")
        result = column_operations.operate(in_place, *values, reuse=True)
        require(result.values.shape == target.values.shape)
        if result.values is not target.values:
            np.copyto(target.values, result.values, casting="same_kind")
        return target

    def _is_intermediate(self, expression: Expression) -> bool:
        """Return whether a value is a new array that only the current operation uses."""
        kind, operands = expression.kind, expression.operands
        is_new = kind == "call" or (kind == "operator" and operands[0] not in _IN_PLACE)
        is_new |= kind == "method" and operands[1] == "astype"
        return is_new and expression in self.known and len(self.graph.uses[expression]) == 1

    def _call(self, call: Expression, function: Any, positional: Any, names: Sequence[str], keywords: Any) -> Any:
        if function is isinstance:
            value, classes = self.values(positional)
            return issubclass(_type_of(value), classes)
        given, named = self._operands(positional), dict(zip(names, self._operands(keywords), strict=True))
        if function in FORMATTERS or text_operations.are_texts([*given, *named.values()]):
            return text_operations.call(function, given, named)
        if _have_columns([*given, *named.values()]):
            return column_operations.call(function, given, named)
        require(all(_is_static(one) or isinstance(one, type | np.dtype) for one in (*given, *named.values())))
        value = column_operations.call_on_constants(function, given, named)
        return self._copied_for_each(value) if call in self.graph.modified and function in _NEW_ARRAYS else value

    def _copied_for_each(self, array: np.ndarray[Any, Any]) -> ColumnValues:
        """Return an array of its own for each element."""
        self.element_bytes += array.nbytes
        require(self.element_bytes <= LARGE_ELEMENT_BYTES)
        return ColumnValues(np.broadcast_to(array, (self.length, *array.shape)).copy(), is_array=True)

    def _method(self, _: Expression, owner: Expression, name: str, positional: Any, names: Any, keywords: Any) -> Any:
        target = self.value(owner)
        take = self.values if type(target) is dict else self._operands
        given, named = take(positional), dict(zip(names, take(keywords), strict=True))
        if type(target) is dict:
            return self._dict_method(target, name, given, named)
        target = self._operand(target)
        if text_operations.takes(target):
            return text_operations.method(target, name, given, named)
        if _have_columns([target, *given, *named.values()]):
            return column_operations.method(target, name, given, named)
        require(isinstance(target, np.ndarray | np.generic))
        return column_operations.method_of_constant(target, name, given, named)

    def _dict_method(self, target: dict[str, Any], name: str, given: list[Any], named: dict[str, Any]) -> Any:
        self._require_own_dict(target)
        if name == "copy" and not given and not named:
            return self._new_dict(target.copy())
        if name == "update" and all(type(other) is dict for other in given):
            return target.update(*given, **named)
        require(name in {"get", "pop", "setdefault"} and not named and given and type(given[0]) is str)
        return getattr(target, name)(*given)

    def _attribute(self, _: Expression, owner: Expression, name: str) -> Any:
        target = self._operand(self.value(owner))
        require(isinstance(target, ColumnValues | np.ndarray | np.generic))
        return column_operations.attribute(target, name) if isinstance(target, ColumnValues) else getattr(target, name)

    def _item(self, _: Expression, owner: Expression, key: Expression) -> Any:
        target, index = self.values([owner, key])
        if isinstance(target, _CONTAINERS):
            require(not isinstance(index, _COLUMNS))
            return target[index]
        target, index = self._operand(target), self._operand(index)
        if text_operations.takes(target):
            return text_operations.subscript(target, index)
        if _have_columns([target, index]):
            return column_operations.subscript(target, index)
        require(isinstance(target, np.ndarray))
        return target[index]

    def _lookup(self, _: Expression, table: Expression, key: Expression, *default: Expression) -> Any:
        others = self.values(default)
        require(not _have_columns(others))
        rows = self._operand(self.value(key))
        require(isinstance(rows, TextValues) or (isinstance(rows, ColumnValues) and rows.rank == 0))
        self.takes_texts = True
        keys = rows.texts if isinstance(rows, TextValues) else rows.values.tolist()
        return text_operations.look_up(self.value(table), keys, *others)

    def _store(self, _: Expression, target: Expression, key: Expression, value: Expression) -> None:
        owner, index, stored = self.values([target, key, value])
        if type(owner) is dict and type(index) is str:
            self._require_own_dict(owner)
            owner[index] = stored
            return
        owner, stored = self._operand(owner), self._operand(stored)
        require(isinstance(owner, ColumnValues) and owner.rank)
        require(not self._is_foreign(owner), "it modifies an array of the element in place")
        index = self._operand(index)
        if isinstance(index, ColumnValues):
            self._store_at(owner, index, stored)
            return
        part = column_operations.subscript(owner, index).values
        require(np.may_share_memory(part, owner.values) and _may_store(stored, part.dtype))
        are_rows = isinstance(stored, ColumnValues)
        stored = with_rank(stored.values, part.ndim - 1) if are_rows else stored
        require(np.ndim(stored) < part.ndim + are_rows)
        part[...] = stored

    def _store_at(self, owner: ColumnValues, index: ColumnValues, stored: Any) -> None:
        """Store a number at another index of each array, or where a mask is true."""
        values, places = owner.values, index.values
        are_rows = isinstance(stored, ColumnValues)
        require(_may_store(stored, values.dtype))
        stored = stored.values if are_rows else stored
        require(np.ndim(stored) == are_rows)
        if places.dtype == bool and places.shape == values.shape and not are_rows:
            values[places] = stored
            return
        require(owner.rank == 1 and index.rank == 0 and places.dtype.kind in "iu")
        values[np.arange(self.length), places] = stored

    def _delete(self, _: Expression, target: Expression, key: Expression) -> None:
        owner, index = self.values([target, key])
        require(type(index) is str)
        self._require_own_dict(owner)
        del owner[index]

    def _unpack(self, _: Expression, value: Expression, count: int) -> None:
        whole = self.value(value)
        whole = self._operand(whole) if isinstance(whole, Component) else whole
        items = whole.values[0] if isinstance(whole, ColumnValues) else whole
        require(type(items) in {tuple, list, np.ndarray} and len(items) == count)

    def _tuple(self, _: Expression, parts: Sequence[Expression]) -> tuple[Any, ...]:
        return tuple(self.values(parts))

    def _build(self, _: Expression, cls: type[Any], parts: Sequence[Expression]) -> Any:
        return tuple.__new__(cls, self.values(parts))

    def _list(self, _: Expression, parts: Sequence[Expression]) -> list[Any]:
        return self.values(parts)

    def _slice(self, _: Expression, parts: Sequence[Expression]) -> slice:
        return slice(*self._operands(parts))

    def _dict(self, _: Expression, keys: Sequence[Expression], values: Sequence[Expression]) -> dict[str, Any]:
        names = self.values(keys)
        require(all(type(name) is str for name in names))
        return self._new_dict(dict(zip(names, self.values(values), strict=True)))

    def _keys(self, _: Expression, owner: Expression, names: tuple[str, ...]) -> None:
        target = self.value(owner)
        require(type(target) is dict and (*target,) == names)

    def _merge(self, _: Expression, target: Expression, other: Expression) -> dict[str, Any]:
        mine, more = self.values([target, other])
        require(type(mine) is dict and type(more) is dict)
        return self._new_dict({**mine, **more})

    def _extend(self, _: Expression, target: Expression, other: Expression) -> list[Any]:
        mine, more = self.values([target, other])
        require(type(mine) is list and type(more) in {list, tuple})
        return [*mine, *more]

    def _is(self, _: Expression, left: Expression, right: Expression, negated: bool) -> bool:
        values = self.values([left, right])
        require(any(value is None for value in values))
        require(all(type(value) is not Component or type(value.column) is np.ndarray for value in values))
        return (values[0] is values[1]) != negated

    def _contains(self, _: Expression, container: Expression, value: Expression, negated: bool) -> Any:
        where, what = self.values([container, value])
        if type(where) is dict and type(what) is str:
            return (what in where) != negated
        what, where = self._operand(what), self._operand(where)
        if text_operations.takes(what, where):
            return text_operations.contains(where, what, negated=negated)
        require(type(where) in {tuple, list} and where and isinstance(what, ColumnValues) and what.rank == 0)
        found = [column_operations.operate("==", what, item).values for item in where]
        return ColumnValues(np.logical_or.reduce(found) != negated, is_python=True)

    def _twin(self, expression: Expression, twin: Callable[..., Any], part: Expression, *argument: Any) -> Any:
        value = self.value(part)
        require(isinstance(value, _COLUMNS))
        column = _columns_of(value)
        if not parses_records(twin):
            return self._checked(twin(column, *argument))
        uses = self.graph.keys_used(expression)
        octets = frozenset() if uses is None else self.graph.keys_decoded(expression)
        parsed = twin(column, *argument, uses, octets)
        return self._new_dict({name: Component(values) for name, values in parsed.items()})


def _may_store(value: Any, dtype: np.dtype[Any]) -> bool:
    """Return whether storing a value in an array of this dtype gives the same for all elements at once."""
    require(not isinstance(value, TextValues), text_operations.NOT_NUMBERS)
    if isinstance(value, ColumnValues):
        is_checked = value.is_python and value.values.dtype.kind == "i" and dtype.kind in "iu"  # too large an int fails
        return np.can_cast(value.values.dtype, dtype, "safe" if is_checked else "same_kind")
    return type(value) in {int, bool} or np.can_cast(np.result_type(value), dtype, "same_kind")


def _is_of_sequences(symbol: str, left: Any, right: Any = None) -> bool:
    """Return whether an operator joins or repeats lists or tuples."""
    is_like = type(right) is int if symbol == "*" else symbol == "+" and type(right) is type(left)
    return is_like and type(left) in {list, tuple}


def _type_of(value: Any) -> type:
    """Return the type that a value has for each element."""
    if isinstance(value, Component):
        column = value.column
        if type(column) is np.ndarray and column.dtype != object:
            return np.ndarray if column.ndim > 1 else column.dtype.type
        (kind,) = {*map(type, column)}  # a ValueError sends the elements to the function
        return kind
    if isinstance(value, ColumnValues):
        if value.is_python:
            return type(value.values[0].item())
        return np.ndarray if value.rank or value.is_array else value.values.dtype.type
    return type(value)


def _items(value: Any) -> Iterable[Any]:
    return value.values() if type(value) is dict else value if isinstance(value, _CONTAINERS) else ()


def _is_static(value: Any) -> bool:
    """Return whether a value is a plain one that is the same for all elements."""
    return isinstance(value, _STATIC) and not _have_columns([value])


def _have_columns(values: Iterable[Any]) -> bool:
    return any(isinstance(one, _COLUMNS) or _have_columns(_items(one)) for one in values)


def _dicts(value: Any) -> list[Any]:
    """Return the dicts in a value, and in those."""
    return [value] * (type(value) is dict) + [one for item in _items(value) for one in _dicts(item)]


# Results


def complete(result: Any, length: int) -> Any:
    """Return a result with a column in the place of each component, also where it is the same for all elements."""
    kind = type(result)
    if kind is ColumnValues or (kind is Component and _is_passed_on(result.column)):
        return result
    if isinstance(result, _CONTAINERS) and result:
        return _map(lambda part: complete(part, length), result)
    if kind in {bytes, str}:
        return Component([result] * length)
    require(isinstance(result, bool | int | float | np.generic | np.ndarray) and np.asarray(result).dtype in NUMBERS)
    value = np.asarray(result)
    return ColumnValues(np.broadcast_to(value, (length, *value.shape)).copy(), kind in {bool, int, float})


def _is_passed_on(column: Any) -> bool:
    """Return whether values passed through unchanged equal those of the column; scalars may lose a byte order."""
    return isinstance(column, list) or column.ndim > 1 or column.dtype in NUMBERS or column.dtype == object


def _taken(rows: ColumnValues, indices: Any) -> Any:
    """Return some of the values, each with the same layout in memory."""
    if rows.are_contiguous:
        return rows.values.take(indices, 0)
    row, n = rows.values[0], len(indices)
    low, high = np.lib.array_utils.byte_bounds(row)
    storage, offset = np.empty(n * (high - low), np.uint8), row.__array_interface__["data"][0] - low
    taken = np.ndarray((n, *row.shape), row.dtype, storage, offset, (high - low, *row.strides))
    taken[...] = rows.values[indices]
    return taken


def _joined(first: Any, second: Any, places: Sequence[Any], length: int) -> Any:
    """Return the results of the sides of a branch, given with the indices of their elements, as one."""
    kinds = {type(first), type(second)}
    if isinstance(first, _CONTAINERS) and isinstance(second, _CONTAINERS):
        return _map(lambda one, other: _joined(one, other, places, length), first, second)
    require(kinds <= {Component, ColumnValues}, _DIFFER)
    mine, other = columns = _columns_of(first), _columns_of(second)
    if type(mine) is type(other) is np.ndarray and mine.dtype == other.dtype and mine.shape[1:] == other.shape[1:]:
        joined = np.empty((length, *mine.shape[1:]), mine.dtype)
        for column, at in zip(columns, places, strict=True):
            joined[at] = column
        return Component(joined) if kinds == {Component} else ColumnValues(joined)
    require(kinds == {Component}, _DIFFER)
    found: list[Any] = [None] * length
    for column, at in zip(columns, places, strict=True):
        for index, value in zip(at.tolist(), column, strict=True):
            found[index] = value
    return Component(found)


_DIFFER = "its branches return different types"


def _map(function: Callable[..., Any], *containers: Any) -> Any:
    """Return a container with the results of a function for the items of some containers, which must be alike."""
    first, *others = containers
    require(all(type(one) is type(first) and len(one) == len(first) for one in others), _DIFFER)
    if type(first) is not dict:
        items = map(function, *containers)
        return [*items] if type(first) is list else tuple.__new__(type(first), items)
    require(all([*one] == [*first] for one in others), _DIFFER)
    return {key: function(*(one[key] for one in containers)) for key in first}


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
    found = _columns_of(complete(result, len(columns[0])))
    is_one = isinstance(result, Component | str | bytes) and type(found) is list  # not a column for each component
    return np.fromiter(found, object, len(found)) if is_one else found, uses_arrays


def values_on_columns(
    graph: Graph, reads: dict[Place, Any], structure: Structure, columns: Sequence[Column]
) -> tuple[Any, bool]:
    """Return the same as ``run_on_columns``, but as the values of an evaluation; ``rows_of_value`` divides them."""
    length, stacked = len(columns[0]), [*map(_stacked, columns)]
    element = structure.unflatten([*map(Component, stacked)])
    arguments = element if is_tuple(structure) else (element,)
    own_dicts = set() if structure.is_immutable else set(map(id, _dicts(arguments)))
    evaluation = Evaluation(graph, reads, arguments, length, [*stacked, *reads.values()], own_dicts)
    with np.errstate(**{kind: "raise" for kind, how in np.geterr().items() if how != "ignore"}):  # type: ignore[arg-type]
        result = evaluation.run(graph.body)
    uses_arrays = evaluation.takes_arrays or bool(graph.twins)
    name = graph.called_one_by_one
    require(name is None or uses_arrays, f"it calls {name}() with single numbers, which is faster one by one")
    require(uses_arrays or not evaluation.takes_texts, "it computes with texts, which is as fast one by one")
    return result, uses_arrays


def rows_of_value(value: Any, length: int) -> Iterable[Any]:
    """Return what a value is for each element, exactly as a function of single elements computes it.

    Raises:
        NotProvedError: the elements would share something that they may modify.
    """
    if isinstance(value, ColumnValues):
        require(value.source is None)
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
        require(value.flags.owndata and value.flags.c_contiguous and value.flags.writeable)
        return (value.copy() for _ in range(length))
    require(isinstance(value, bool | int | float | str | bytes | slice | np.generic | None))
    return itertools.repeat(value, length)


def _made(kind: Any, length: int) -> Iterator[Any]:
    return (kind() for _ in range(length))


def _columns_of(result: Any) -> Any:
    if isinstance(result, _CONTAINERS):
        return _map(_columns_of, result)
    return result.column if isinstance(result, Component) else result.values


def _stacked(column: Column) -> Column:
    """Return arrays of one shape and dtype as one array, and other columns as they are."""
    first = column[0] if isinstance(column, list) else None
    if type(first) is np.ndarray and first.nbytes <= LARGE_ELEMENT_BYTES and first.dtype in NUMBERS:
        with suppress(ColumnMismatchError):  # results of arrays that are not contiguous have the same memory layout
            return stack_column(column) if all(array.flags.c_contiguous for array in column) else column
    return column
