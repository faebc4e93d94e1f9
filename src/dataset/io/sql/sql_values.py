"""Conversion of the values of an SQL database to columns of declared dtypes.

A column whose values all match its dtype is converted at once. Other columns are converted value by value, with rules
that preserve the meaning of a value or reject it:

- NULL becomes 0, 0.0, False or empty text, as in SQLite and tf.data.
- A number becomes text in SQLite's format. Text becomes a number if it is one.
- A float becomes an integer if it is whole. An integer must fit its dtype.
- A number is True unless it is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from dataset.plan.spec import BYTES, as_dtype

Dtype = np.dtype[Any]


class ValueRefusedError(TypeError):
    """A value can't be converted to the declared dtype. The message shows the value and the reason."""


def sql_dtype(dtype: npt.DTypeLike) -> Dtype:
    """Check and return the dtype of a column: bool, integer, float or text.

    Raises:
        TypeError: it is another dtype.

    >>> sql_dtype(np.int32), sql_dtype(str)
    (dtype('int32'), dtype('S'))
    """
    found = as_dtype(dtype)
    if found != BYTES and found.kind not in "biuf":
        raise TypeError(f"expected a dtype of bools, integers, floats or text, got {found!r}")
    return found


def inferred_dtype(value: Any) -> Dtype | None:
    """Return the dtype of a column inferred from one of its values; None if it can't be inferred, as from NULL.

    >>> inferred_dtype(3), inferred_dtype(b"text"), inferred_dtype(None)
    (dtype('int64'), dtype('S'), None)
    """
    if isinstance(value, bytes | str | bytearray | memoryview):
        return BYTES
    return next((np.dtype(kind) for kind in (bool, int, float) if isinstance(value, kind)), None)


def column_of(values: Sequence[Any], dtype: Dtype) -> Any:
    """Return one column: an array, or a list of ``bytes`` if the dtype is text.

    Raises:
        ValueRefusedError: a value can't be converted to the dtype. Only for a single value, the message is about it.

    >>> column_of([1, 2.0, None, b"3"], np.dtype(np.int8))
    array([1, 2, 0, 3], dtype=int8)
    >>> column_of([1.5, None, "text"], BYTES)
    [b'1.5', b'', b'text']
    """
    convert, wanted, *kinds = _BY_KIND[dtype.kind]
    if not set(map(type, values)).issubset(kinds):
        values = [_converted(value, convert, wanted) for value in values]
    if dtype == BYTES:
        return list(values)
    try:
        with np.errstate(over="raise"):
            return np.array(values, dtype)
    except ArithmeticError:
        info: Any = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
        raise _refused(values[0], f"{dtype.name}, which ranges from {info.min} to {info.max}") from None


def _converted(value: Any, convert: Callable[[Any], Any], wanted: str) -> Any:
    try:
        return convert(value)
    except (ArithmeticError, ValueError):  # such as for a NaN
        raise _refused(value, wanted) from None


def _refused(value: Any, wanted: str) -> ValueRefusedError:
    return ValueRefusedError(f"{value!r:.100} of type {type(value).__name__} can't be converted to {wanted}")


def _as_text(value: Any) -> bytes:
    match value:
        case None:
            return b""
        case int():
            return b"%d" % value
        case float():
            return _float_text(value)
        case str() | Decimal():
            return str(value).encode()
        case bytes() | bytearray() | memoryview():
            return bytes(value)
    raise ValueError


def _float_text(value: float) -> bytes:
    """Return a float in SQLite's format: 15 digits, always with a point."""
    if not math.isfinite(value):
        return {math.inf: b"Inf", -math.inf: b"-Inf"}.get(value, b"")
    digits, exponent, power = f"{value:.15g}".partition("e")
    return f"{digits}{'' if '.' in digits else '.0'}{exponent}{power}".encode()


def _as_int(value: Any) -> int:
    try:
        number = _number(value, int)
    except ValueError:  # "3.0" is an integer, too
        number = _number(value, Decimal)
    if not math.isfinite(number) or number != int(number):
        raise _refused(value, "an integer because it is not whole")
    return int(number)


def _as_float(value: Any) -> float:
    return float(_number(value, float))


def _number(value: Any, read: Callable[[str], Any]) -> Any:
    """Return ``value``, or the number in its text."""
    match value:
        case None:
            return 0
        case int() | float() | Decimal():
            return value
        case str() | bytes():
            text = value if isinstance(value, str) else value.decode("ascii", "replace")
            if "_" not in text:  # Python accepts it in numbers, SQL does not
                return read(text)
    raise ValueError


# By dtype kind: the converter of a value, what it returns, and the types that need no conversion.
_BY_KIND: dict[str, tuple[Any, ...]] = {
    "S": (_as_text, "text", bytes),
    "i": (_as_int, "an integer", int),
    "u": (_as_int, "an integer", int),
    "f": (_as_float, "a float", float, int),
    "b": (_as_int, "an integer", int, bool),
}
