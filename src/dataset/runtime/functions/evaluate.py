"""Evaluation of an expression graph on columns: one pass over its operations for many elements.

Each value is a column of the values for the single elements, or something that is the same for all of them. Tuples,
lists and dicts that a function builds are real ones, with columns in them, so that they behave as for one element. A
branch divides the elements: each side is evaluated for its own, and the results are put together.

None of this runs user code. An operation that may not give the same as for single elements raises ``NotProvedError``.
Anything else that is raised belongs to some element. Then the function is called for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import EllipsisType
from typing import Any

import numpy as np

from dataset.plan.structure import Structure, is_tuple
from dataset.runtime.chunks.batching import ColumnMismatchError, stack_column
from dataset.runtime.chunks.chunk import Column, take_column
from dataset.runtime.functions import column_operations
from dataset.runtime.functions.bytecode import NotProvedError
from dataset.runtime.functions.column_operations import NUMBERS, ColumnValues, require, with_rank
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
        foreign: columns and arrays that may not be modified: what refers to them would have to change, too.
        length: the number of elements.
        outer: the evaluation for more elements, if these take one side of a branch.
        indices: the indices of these elements among those of the outer evaluation.

    Attributes:
        takes_arrays: whether it computes with components that are arrays, and not only with numbers.
    """

    def __init__(
        self,
        graph: Graph,
        reads: dict[Place, Any],
        arguments: Sequence[Any],
        foreign: Sequence[Any],
        length: int,
        outer: Evaluation | None = None,
        indices: Any = None,
    ) -> None:
        self._graph = graph
        self._reads = reads
        self._arguments = arguments
        self._length = length
        self._outer = outer
        self._indices = indices
        self._own_dicts = set(map(id, _dicts(arguments)))  # dicts that may be modified; others may be the user's
        self._foreign = [*foreign, *reads.values()]
        self._values: dict[Expression, Any] = {}
        self._gathered: dict[int, Any] = {}
        self._element_bytes = 0
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
            value = self._values[expression] = getattr(self, f"_{expression.kind}")(expression, *expression.operands)
            if type(value) is ColumnValues and value.source is not None:
                self._foreign += [value.values, value.source]
        end = block.end
        if isinstance(end, NotProvedError):
            raise NotProvedError(end.reason)
        return self._divided(end) if isinstance(end, Branch) else self.value(end)

    def value(self, expression: Expression) -> Any:
        """Return the value of an expression."""
        found = self._values.get(expression, self)
        if found is not self:
            return found
        kind, operands = expression.kind, expression.operands
        if kind == "constant":
            return operands[0]
        if kind == "read":
            return self._reads[operands[0]]
        if self._outer is None:  # every operation is executed before its value is used
            return self._arguments[operands[0]]
        value = self._values[expression] = self._gather(self._outer, self._outer.value(expression))
        return value

    def values(self, expressions: Sequence[Expression]) -> list[Any]:
        """Return the values of some expressions."""
        return [self.value(expression) for expression in expressions]

    # Branches

    def _divided(self, branch: Branch) -> Any:
        test = self.value(branch.test)
        if isinstance(test, Component):
            test = self._operand(test)
        if not isinstance(test, ColumnValues):
            require(_is_static(test))
            return self._run(branch.then if test else branch.otherwise)
        require(test.rank == 0, "it tests an array")
        is_true = test.values != 0
        count = int(np.count_nonzero(is_true))
        if count in {0, self._length}:
            return self._run(branch.then if count else branch.otherwise)
        sides = [(branch.then, np.flatnonzero(is_true)), (branch.otherwise, np.flatnonzero(~is_true))]
        return _joined([(self._side(block, indices), indices) for block, indices in sides], self._length)

    def _side(self, block: CodeBlock, indices: Any) -> Any:
        side = Evaluation(self._graph, self._reads, (), self._foreign, len(indices), self, indices)
        result = side._run(block)  # its own class
        self.takes_arrays |= side.takes_arrays
        return complete(result, len(indices))

    def _gather(self, outer: Evaluation, value: Any) -> Any:
        """Return the values of these elements. They are copied once, so that each stays the same object."""
        known = self._gathered.get(id(value))
        if known is not None:
            return known
        if isinstance(value, ColumnValues):
            known = ColumnValues(_taken(value, self._indices), value.is_python, value.is_array)
            others = [one for one in outer._values.values() if type(one) is ColumnValues and one is not value]
            if outer._is_foreign(value) or any(np.may_share_memory(value.values, other.values) for other in others):
                self._foreign.append(known.values)  # a change would have to be seen in these, too
        elif isinstance(value, Component):
            known = Component(take_column(value.column, self._indices))
            self._foreign.append(known.column)
        elif type(value) is dict:
            known = {key: self._gather(outer, item) for key, item in value.items()}
            if id(value) in outer._own_dicts:  # its own class
                self._own_dicts.add(id(known))
        elif type(value) in {tuple, list}:
            known = type(value)(self._gather(outer, item) for item in value)
        else:
            return value
        self._gathered[id(value)] = known
        return known

    # Operands

    def _operand(self, value: Any) -> Any:
        """Return an operand with columns in the form in which operations take them."""
        kind = type(value)
        if kind is Component:
            if value.values is None:
                value.values = self._checked(value.column)
            return value.values
        if kind is tuple or kind is list:
            return kind(map(self._operand, value))
        require(kind is ColumnValues or not isinstance(value, dict))
        return value

    def _operands(self, expressions: Sequence[Expression]) -> list[Any]:
        return [self._operand(self.value(expression)) for expression in expressions]

    def _checked(self, column: Column) -> ColumnValues:
        if type(column) is not np.ndarray or column.dtype not in NUMBERS:
            raise NotProvedError("it computes with more than numbers and arrays of them")
        if column.ndim > 1:
            require(column.flags.c_contiguous, "its arrays are not contiguous")  # results have the same memory layout
            self.takes_arrays = True
            self._element_bytes += column.nbytes // max(1, len(column))
            is_small = self._element_bytes <= ELEMENT_BYTES_MAX
            require(is_small, f"its arrays have more than {ELEMENT_BYTES_MAX} bytes, and are faster one by one")
        return ColumnValues(column)

    def _new_dict(self, items: dict[str, Any]) -> dict[str, Any]:
        self._own_dicts.add(id(items))
        return items

    def _require_own_dict(self, value: Any) -> None:
        if id(value) not in self._own_dicts:
            raise NotProvedError("it modifies a dict that it didn't create")

    def _is_foreign(self, rows: ColumnValues) -> bool:
        arrays = (other for other in self._foreign if type(other) is np.ndarray)
        return any(np.may_share_memory(rows.values, other) for other in arrays)

    # Operations

    def _operator(self, _: Expression, symbol: str, *operands: Expression) -> Any:
        values = self._operands(operands)
        target, in_place = values[0], _IN_PLACE.get(symbol)
        if ColumnValues not in map(type, values):
            require(all(map(_is_static, values)))
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
        return is_new and expression in self._values and len(self._graph.uses[expression]) == 1

    def _call(self, _: Expression, function: Any, positional: Any, names: Sequence[str], keywords: Any) -> Any:
        given, named = self._operands(positional), dict(zip(names, self._operands(keywords), strict=True))
        if _have_columns([*given, *named.values()]):
            return column_operations.call(function, given, named)
        for value in (*given, *named.values()):
            require(_is_static(value) or isinstance(value, type | np.dtype))
        return column_operations.call_on_constants(function, given, named)

    def _method(self, _: Expression, owner: Expression, name: str, positional: Any, names: Any, keywords: Any) -> Any:
        target = self.value(owner)
        if type(target) is dict:
            named = dict(zip(names, self.values(keywords), strict=True))
            return self._dict_method(target, name, self.values(positional), named)
        target, given = self._operand(target), self._operands(positional)
        named = dict(zip(names, self._operands(keywords), strict=True))
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
        if isinstance(target, ColumnValues):
            return column_operations.attribute(target, name)
        require(isinstance(target, np.ndarray | np.generic))
        return getattr(target, name)

    def _item(self, _: Expression, owner: Expression, key: Expression) -> Any:
        target, index = self.values([owner, key])
        if type(target) in {dict, tuple, list}:
            require(not isinstance(index, ColumnValues | Component))
            return target[index]
        target, index = self._operand(target), self._operand(index)
        if _have_columns([target, index]):
            return column_operations.subscript(target, index)
        require(isinstance(target, np.ndarray | str | bytes))
        return target[index]

    def _store(self, _: Expression, target: Expression, key: Expression, value: Expression) -> None:
        owner, index, stored = self.values([target, key, value])
        if type(owner) is dict and type(index) is str:
            self._require_own_dict(owner)
            owner[index] = stored
            return
        owner, stored = self._operand(owner), self._operand(stored)
        require(isinstance(owner, ColumnValues) and owner.rank)
        require(not self._is_foreign(owner), "it modifies an array of the element in place")
        part = column_operations.subscript(owner, self._operand(index)).values
        require(np.may_share_memory(part, owner.values))
        are_rows = isinstance(stored, ColumnValues)
        stored = with_rank(stored.values, part.ndim - 1) if are_rows else stored
        require(np.ndim(stored) < part.ndim + are_rows)
        require(type(stored) in {int, bool} or np.can_cast(np.result_type(stored), part.dtype, "same_kind"))
        part[...] = stored

    def _delete(self, _: Expression, target: Expression, key: Expression) -> None:
        owner, index = self.values([target, key])
        require(type(owner) is dict and type(index) is str)
        self._require_own_dict(owner)
        del owner[index]

    def _unpack(self, _: Expression, value: Expression, count: int) -> None:
        whole = self.value(value)
        if isinstance(whole, Component):
            whole = self._operand(whole)
        if isinstance(whole, ColumnValues):
            require(whole.rank and whole.values.shape[1] == count)
        else:
            require(type(whole) in {tuple, list} and len(whole) == count)

    def _tuple(self, _: Expression, parts: Sequence[Expression]) -> tuple[Any, ...]:
        return tuple(self.values(parts))

    def _list(self, _: Expression, parts: Sequence[Expression]) -> list[Any]:
        return self.values(parts)

    def _slice(self, _: Expression, parts: Sequence[Expression]) -> slice:
        bounds = self.values(parts)
        require(all(bound is None or type(bound) is int for bound in bounds))
        return slice(*bounds)

    def _dict(self, _: Expression, keys: Sequence[Expression], values: Sequence[Expression]) -> dict[str, Any]:
        names = self.values(keys)
        require(all(type(name) is str for name in names))
        return self._new_dict(dict(zip(names, self.values(values), strict=True)))

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
        what = self._operand(what)
        require(type(where) in {tuple, list} and where and isinstance(what, ColumnValues))
        found = [column_operations.operate("==", what, self._operand(item)).values for item in where]
        return ColumnValues(np.logical_or.reduce(found) != negated, is_python=True)

    def _twin(self, expression: Expression, twin: Callable[..., Any], part: Expression, *argument: Any) -> Any:
        value = self.value(part)
        require(isinstance(value, Component | ColumnValues))
        column = value.column if isinstance(value, Component) else value.values
        if not parses_records(twin):
            return self._checked(twin(column, *argument))
        uses = self._graph.keys_used(expression)
        octets = frozenset() if uses is None else self._graph.keys_decoded(expression)
        parsed = twin(column, *argument, uses, octets)
        return self._new_dict({name: Component(values) for name, values in parsed.items()})


def _is_static(value: Any) -> bool:
    """Return whether a value is a plain one that is the same for all elements."""
    if type(value) in {tuple, list}:
        return all(map(_is_static, value))
    return isinstance(value, _STATIC) and not (type(value) is dict and _have_columns([*value.values()]))


def _have_columns(values: Sequence[Any]) -> bool:
    return any(
        isinstance(value, ColumnValues | Component) or (type(value) in {tuple, list} and _have_columns(value))
        for value in values
    )


def _dicts(value: Any) -> list[Any]:
    """Return the dicts in a value, and in those."""
    kind = type(value)
    if kind is not dict and kind is not tuple and kind is not list:
        return []
    found = [one for item in (value.values() if kind is dict else value) for one in _dicts(item)]
    return [value, *found] if kind is dict else found


# Results


def complete(result: Any, length: int) -> Any:
    """Return a result with a column in the place of each component, also where it is the same for all elements."""
    kind = type(result)
    if kind is ColumnValues:
        return result
    if kind is Component:
        require(_is_passed_on(result.column))
        return result
    if kind in {tuple, list} and result:
        return kind(complete(part, length) for part in result)
    if kind is dict and result:
        return {key: complete(part, length) for key, part in result.items()}
    if kind in {bytes, str}:
        return Component([result] * length)
    require(isinstance(result, bool | int | float | np.generic | np.ndarray) and np.asarray(result).dtype in NUMBERS)
    value = np.asarray(result)
    return ColumnValues(np.broadcast_to(value, (length, *value.shape)).copy(), kind in {bool, int, float})


def _is_passed_on(column: Any) -> bool:
    """Return whether values passed through unchanged equal those of the column; scalars may lose a byte order."""
    return isinstance(column, list) or column.ndim > 1 or column.dtype in NUMBERS or column.dtype == object


def _taken(rows: ColumnValues, indices: Any) -> np.ndarray[Any, Any]:
    """Return some of the values, each with the same layout in memory."""
    if rows.are_contiguous:
        return rows.values.take(indices, 0)
    row = rows.values[0]
    low, high = np.lib.array_utils.byte_bounds(row)
    shape, storage = (len(indices), *row.shape), np.empty(len(indices) * (high - low), np.uint8)
    offset = row.__array_interface__["data"][0] - low
    taken = np.ndarray(shape, row.dtype, storage, offset, (high - low, *row.strides))
    taken[...] = rows.values[indices]
    return taken


def _joined(results: Sequence[tuple[Any, Any]], length: int) -> Any:
    """Return the results of the sides of a branch, given with the indices of their elements, as one."""
    (first, _), (second, _) = results
    kind, places = type(first), [at for _, at in results]
    differ = "its branches return different types"
    require(kind is type(second) or {kind, type(second)} == {Component, ColumnValues}, differ)
    if kind is dict:
        require([*first] == [*second], differ)
        return {key: _joined([(one[key], at) for one, at in results], length) for key in first}
    if kind in {tuple, list}:
        require(len(first) == len(second), differ)
        return kind(_joined([(one[n], at) for one, at in results], length) for n in range(len(first)))
    mine, other = columns = [_columns_of(one) for one, _ in results]
    if type(mine) is type(other) is np.ndarray and mine.dtype == other.dtype and mine.shape[1:] == other.shape[1:]:
        joined = np.empty((length, *mine.shape[1:]), mine.dtype)
        for column, at in zip(columns, places, strict=True):
            joined[at] = column
        return Component(joined) if kind is type(second) is Component else ColumnValues(joined)
    require(kind is type(second) is Component, differ)
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
    length, stacked = len(columns[0]), [*map(_stacked, columns)]
    element = structure.unflatten([*map(Component, stacked)])
    arguments = element if is_tuple(structure) else (element,)
    evaluation = Evaluation(graph, reads, arguments, stacked, length)
    with np.errstate(**{kind: "raise" for kind, how in np.geterr().items() if how != "ignore"}):  # type: ignore[arg-type]
        result = complete(evaluation.result(), length)
    uses_arrays = evaluation.takes_arrays or bool(graph.twins)
    if graph.called_one_by_one is not None and not uses_arrays:
        name = graph.called_one_by_one
        raise NotProvedError(f"it calls {name}() with single numbers, which is faster one by one")
    return _columns_of(result), uses_arrays


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
