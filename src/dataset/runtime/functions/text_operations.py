"""Operations on columns of texts, str or bytes, one by one: what a function computes with them is mostly a column.

Only objects of exactly these types are texts, so none of this runs user code.
"""

from __future__ import annotations

import itertools
import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from dataset.runtime.chunks.chunk import Column
from dataset.runtime.functions.bytecode import joined
from dataset.runtime.functions.column_operations import NUMBERS, SCALARS, ColumnValues, require, stream

KNOWN_METHODS = frozenset(
    {"decode", "encode", "strip", "lstrip", "rstrip", "lower", "upper", "title", "replace", "zfill", "format", "join"}
)
KNOWN_METHODS |= {"removeprefix", "removesuffix", "startswith", "endswith", "find", "count", "isdigit", "isalpha"}
"""The methods without effects that return a text or a number."""

NOT_NUMBERS = "it computes with more than numbers and arrays of them"
"""Why operations that do not take texts are refused."""

TEXTS = frozenset({bytes, str})
_EMPTY: Mapping[str, Any] = MappingProxyType({})
_CONSTANTS = TEXTS | SCALARS | {bool, int, float, type(None), slice}


@dataclass(eq=False, slots=True)
class TextValues:
    """The texts that one expression has for n elements, all str or all bytes."""

    texts: list[Any]

    def each(self) -> Iterator[Any]:
        """Yield the texts."""
        return iter(self.texts)


def texts_of(column: Column) -> TextValues | None:
    """Return the texts of a column, all of one type; None if it has other values."""
    if type(column) is np.ndarray and column.dtype != object:
        return None
    texts = column if type(column) is list else list(column)
    return TextValues(texts) if {*map(type, texts)} in ({bytes}, {str}) else None


FORMATTERS = frozenset({str, repr, ascii, format, joined})
"""The functions that return a text whatever they are given."""

_FUNCTIONS = FORMATTERS | {bool, int, float, len}
_COMPARISONS: dict[str, Callable[..., Any]] = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt}
_COMPARISONS |= {"<=": operator.le, ">=": operator.ge, "+": operator.add}
_OTHERS: dict[str, Callable[..., Any]] = {"%": operator.mod, "not": operator.not_}


def are_texts(operands: Iterable[Any]) -> bool:
    """Return whether there are columns of texts among the operands, or in those."""
    return any(type(one) is TextValues or (type(one) in {tuple, list} and are_texts(one)) for one in operands)


def takes(target: Any, *operands: Any) -> bool:
    """Return whether an operation is one of texts: it is applied to a text, or to columns of texts."""
    return type(target) in TEXTS or are_texts((target, *operands))


def operate(symbol: str, *operands: Any) -> Any:
    """Return the results of an operator."""
    if symbol in _OTHERS:
        return _each(_OTHERS[symbol], operands)
    require(symbol in _COMPARISONS)
    _require_alike(operands)
    return _each(_COMPARISONS[symbol], operands)


def contains(container: Any, value: Any, *, negated: bool) -> Any:
    """Return whether a text, or a tuple, list or set of texts contains a text; or whether it does not."""
    _require_alike([value, *(container if type(container) in {tuple, list, frozenset} else [container])])
    return _each(lambda container, value: (value in container) != negated, [container, value])


def call(function: Callable[..., Any], positional: Sequence[Any], keywords: Mapping[str, Any] = _EMPTY) -> Any:
    """Return the results of a function that converts, formats or measures texts."""
    require(function in _FUNCTIONS, NOT_NUMBERS)
    if function in {str, format} and len(positional) == 1 and sys.flags.bytes_warning:
        require(_type_of(positional[0]) is not bytes)
    return _each(function, positional, keywords, prints=function in FORMATTERS)


def method(target: Any, name: str, positional: Sequence[Any], keywords: Mapping[str, Any] = _EMPTY) -> Any:
    """Return the results of a method of texts."""
    require(name in KNOWN_METHODS and _type_of(target) in TEXTS)

    def single(target: Any, *positional: Any, **keywords: Any) -> Any:
        return getattr(target, name)(*positional, **keywords)

    return _each(single, [target, *positional], keywords, prints=name == "format")


def subscript(target: Any, key: Any) -> Any:
    """Return the items of texts at a key."""
    return _each(operator.getitem, [target, key])


def look_up(table: Any, keys: Iterable[Any], *default: Any) -> ColumnValues | TextValues:
    """Return the items of a dict, list or tuple at some keys; a missing one of a dict is the default, if given."""
    return _column_of(table.get(key, *default) if default else table[key] for key in keys)


def _each(
    function: Callable[..., Any],
    positional: Sequence[Any],
    keywords: Mapping[str, Any] = _EMPTY,
    *,
    prints: bool = False,
) -> Any:
    """Return what a function gives for each element; without columns, a value that is the same for all of them.

    ``prints`` tells whether it prints arrays; others are refused.
    """
    operands, count = [*positional, *keywords.values()], len(positional)
    lengths = [max(_lengths(one, prints), default=None) for one in operands]
    if not any(lengths):
        return function(*positional, **keywords)
    columns = (itertools.repeat(one) if n is None else stream(one, n) for one, n in zip(operands, lengths, strict=True))
    rows: Any = zip(*columns, strict=False)
    if keywords:
        return _column_of(function(*row[:count], **dict(zip(keywords, row[count:], strict=True))) for row in rows)
    return _column_of(itertools.starmap(function, rows))


def _column_of(results: Iterable[Any]) -> ColumnValues | TextValues:
    """Return results of one type for the elements: numbers of Python, or texts."""
    values = list(results)
    (kind,) = {*map(type, values)}  # a ValueError sends the elements to the function
    if kind in TEXTS:
        return TextValues(values)
    require(kind in {bool, int, float})
    return ColumnValues(np.array(values, {int: np.int64, float: np.float64}.get(kind, bool)), is_python=True)


def _lengths(operand: Any, prints: bool) -> Iterator[int]:
    """Yield the lengths of the columns in an operand, after a check that the operation calls no code of the user."""
    kind = type(operand)
    if kind is TextValues:
        yield len(operand.texts)
    elif kind is ColumnValues or kind is np.ndarray:
        is_number = kind is ColumnValues and operand.rank == 0 and not operand.is_array
        are_printed = prints and np.get_printoptions()["formatter"] is None  # which is a function of the user
        require(is_number or (are_printed and (kind is ColumnValues or operand.dtype in NUMBERS)), NOT_NUMBERS)
        if kind is ColumnValues:
            yield len(operand.values)
    elif kind in {tuple, list, frozenset}:
        for item in operand:
            yield from _lengths(item, prints)
    elif kind is slice:
        yield from _lengths((operand.start, operand.stop, operand.step), prints)
    else:
        require(
            kind in _CONSTANTS or isinstance(operand, np.dtype),
            f"it computes a text with a value of type {kind.__name__}",
        )


def _type_of(operand: Any) -> type:
    return type(operand.texts[0]) if type(operand) is TextValues else type(operand)


def _require_alike(operands: Iterable[Any]) -> None:
    """Check that operands are texts of one type: Python may warn where bytes are compared with others."""
    kinds = {*map(_type_of, operands)}
    require(len(kinds) == 1 and kinds <= TEXTS)
