"""Operations on columns of texts, str or bytes, one by one: what a function computes with them is mostly a column.

Only objects of exactly these types are texts, so none of this runs user code.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from dataset.runtime.chunks.chunk import Column
from dataset.runtime.functions.column_operations import ColumnValues, require

KNOWN_METHODS = frozenset(
    {"decode", "encode", "strip", "lstrip", "rstrip", "lower", "upper", "title", "replace", "zfill"}
)
KNOWN_METHODS |= {"removeprefix", "removesuffix", "startswith", "endswith", "find", "count", "isdigit", "isalpha"}
"""The methods without effects that return a text or a number."""

_TEXTS = (bytes, str)
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {"==": operator.eq, "!=": operator.ne, "+": operator.add}


def texts_of(column: Column) -> list[Any] | None:
    """Return the texts of a column, all of one type; None if it has other values."""
    if type(column) is np.ndarray and column.dtype != object:
        return None
    texts = column if type(column) is list else list(column)
    return texts if {*map(type, texts)} in ({bytes}, {str}) else None


def column_of(results: Iterable[Any]) -> ColumnValues | list[Any]:
    """Return results of one type for the elements: numbers of Python, or texts."""
    values = list(results)
    (kind,) = {*map(type, values)}  # a ValueError sends the elements to the function
    if kind in _TEXTS:
        return values
    require(kind in {bool, int, float})
    return ColumnValues(np.array(values, {int: np.int64, float: np.float64}.get(kind, bool)), is_python=True)


def operate(symbol: str, left: Any, right: Any, length: int) -> ColumnValues | list[Any]:
    """Return the results of an operator. An operand is a list, or one text for all."""
    require(symbol in _OPERATORS)
    sides = [side if type(side) is list else [side] * length for side in (left, right)]
    require(len({type(side[0]) for side in sides}) == 1)  # bytes and str may warn
    return column_of(map(_OPERATORS[symbol], *sides))


def call(function: Callable[..., Any], texts: Sequence[Any]) -> ColumnValues | list[Any]:
    """Return the results of ``len``, ``int`` or ``float``."""
    require(function in {len, int, float})
    return column_of(map(function, texts))


def method(texts: Sequence[Any], name: str, given: Sequence[Any], named: dict[str, Any]) -> ColumnValues | list[Any]:
    """Return the results of a method, called with constants."""
    require(name in KNOWN_METHODS and all(_is_argument(one) for one in (*given, *named.values())))
    return column_of(map(operator.methodcaller(name, *given, **named), texts))


def look_up(table: Any, keys: Iterable[Any], *default: Any) -> ColumnValues | list[Any]:
    """Return the items of a dict, list or tuple at some keys; a missing one of a dict is the default, if given."""
    return column_of(table.get(key, *default) if default else table[key] for key in keys)


def _is_argument(value: Any) -> bool:
    return type(value) in {*_TEXTS, int, type(None)} or (type(value) is tuple and all(map(_is_argument, value)))
