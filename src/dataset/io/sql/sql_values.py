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

__all__ = ["ValueRefusedError", "column_of", "inferred_dtype", "sql_dtype"]

Dtype = np.dtype[Any]


class ValueRefusedError(Exception):
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
    for kinds, dtype in _INFERRED:
        if isinstance(value, kinds):
            return dtype
    return None


_TEXT = (bytes, str, bytearray, memoryview)
_INFERRED: tuple[tuple[Any, Dtype], ...] = (
    (bool, np.dtype(bool)),
    (int, np.dtype(np.int64)),
    (float, np.dtype(np.float64)),
    (_TEXT, BYTES),
)


def column_of(values: Sequence[Any], dtype: Dtype) -> Any:
    """Return one column: an array, or a list of ``bytes`` if the dtype is text.

    Raises:
        ValueRefusedError: a value can't be converted to the dtype.

    >>> column_of([1, 2.0, None, b"3"], np.dtype(np.int8))
    array([1, 2, 0, 3], dtype=int8)
    >>> column_of([1.5, None, "text"], BYTES)
    [b'1.5', b'', b'text']
    """
    convert, kinds, finish = _BY_KIND[dtype.kind]
    if not set(map(type, values)) <= kinds:
        try:
            values = [convert(value) for value in values]
        except (ArithmeticError, ValueError) as error:  # such as a NaN or too large Decimal
            raise ValueRefusedError(f"a value can't be converted to {dtype.name}: {error}") from None
    return finish(values, dtype)


def _as_text(value: Any) -> bytes:
    match value:
        case None:
            return b""
        case bytes():
            return value
        case str():
            return value.encode()
        case bool() | int():
            return b"%d" % value
        case float():
            return _float_text(value)
        case bytearray() | memoryview():
            return bytes(value)
        case Decimal():
            return str(value).encode()
    raise _refused(value, "text")


def _float_text(value: float) -> bytes:
    """Return a float in SQLite's format: 15 digits, always with a point."""
    if not math.isfinite(value):
        return {math.inf: b"Inf", -math.inf: b"-Inf"}.get(value, b"")
    digits, exponent, power = f"{value:.15g}".partition("e")
    return f"{digits}{'' if '.' in digits else '.0'}{exponent}{power}".encode()


def _as_int(value: Any) -> int:
    number = _number(value, int, "an integer")
    if not isinstance(number, int) and (not math.isfinite(number) or number != int(number)):
        raise _refused(value, "an integer because it is not whole")
    return int(number)


def _as_float(value: Any) -> float:
    return float(_number(value, float, "a float"))


def _number(value: Any, parse: Callable[[Any], Any], wanted: str) -> Any:
    """Return ``value``, or the number in its text. ``parse`` is tried before ``float``."""
    match value:
        case None:
            return 0
        case bool():
            return int(value)
        case int() | float() | Decimal():
            return value
        case str() | bytes():
            text = value if isinstance(value, str) else value.decode("ascii", "replace")
            for read in (parse, float):  # "3.0" is an integer, too
                try:
                    if "_" not in text:  # Python accepts it in numbers, SQL does not
                        return read(text)
                except ValueError:
                    continue
    raise _refused(value, wanted)


def _refused(value: Any, wanted: str) -> ValueRefusedError:
    return ValueRefusedError(f"{value!r:.100} of type {type(value).__name__} can't be converted to {wanted}")


def _texts(values: Sequence[Any], dtype: Dtype) -> Any:  # noqa: ARG001  # the signature of all converters
    return list(values)


def _integers(values: Sequence[Any], dtype: Dtype) -> Any:
    info = np.iinfo(dtype)
    low, high = min(values), max(values)
    if low < info.min or high > info.max:
        raise _refused(low if low < info.min else high, f"{dtype.name}, which ranges from {info.min} to {info.max}")
    return np.array(values, dtype)


def _floats(values: Sequence[Any], dtype: Dtype) -> Any:
    try:
        exact = np.array(values, np.float64)
    except OverflowError:
        raise _refused(max(values, key=abs), "a float because it is too large") from None
    if dtype.itemsize >= exact.itemsize:
        return exact.astype(dtype, copy=False)
    with np.errstate(over="ignore"):
        rounded = exact.astype(dtype)
    lost = np.isinf(rounded) & np.isfinite(exact)
    if lost.any():
        raise _refused(values[int(lost.argmax())], f"{dtype.name} because it is too large")
    return rounded


def _bools(values: Sequence[Any], dtype: Dtype) -> Any:
    return np.array(list(map(bool, values)), dtype)


# By dtype kind: the converter of a value, the types that need no conversion, and the constructor of the column.
_BY_KIND: dict[str, tuple[Callable[[Any], Any], set[type], Callable[[Sequence[Any], Dtype], Any]]] = {
    "S": (_as_text, {bytes}, _texts),
    "i": (_as_int, {int}, _integers),
    "u": (_as_int, {int}, _integers),
    "f": (_as_float, {float, int}, _floats),
    "b": (_as_int, {int, bool}, _bools),
}
