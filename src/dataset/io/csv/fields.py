"""Conversion of a single field to a value. The native kernels (native/csv.c) do the same for decimal numbers."""

from __future__ import annotations

import contextlib
import decimal
import math
import re
from typing import Any

import numpy as np

from dataset.io.csv.layout import CsvLayout

_MISSING = (
    "the field is empty, and the column has no default; if fields may be empty, pass a default value instead of the "
    "dtype"
)
_SHOWN_MAX = 60  # bytes of a field in a message
_INT = re.compile(rb"\s*([+-]?)0*([0-9]{1,19})\s*")  # int() is slow for thousands of digits, and raises for more
_HEXADECIMAL = re.compile(rb"[+-]?0x[0-9a-f.]+(p[+-]?[0-9]+)?")
_NAN_WITH_PAYLOAD = re.compile(rb"[+-]?nan\([0-9a-z_]*\)")

_NORMAL_MIN = 2.0**-126  # of float32
_ROUNDED_UP = 2.0**128 - 2.0**103  # from here on, the nearest float32 is infinite


class RowError(ValueError):
    """Internal error: a row can't be read.

    Attributes:
        words: the description of the error.
        column: the index of the column among those that are read, or None.
        field: the index of the column among all columns, or None.
        row: the index of the row among those that are read at once.
    """

    def __init__(self, words: str, column: int | None = None, field: int | None = None, row: int = 0) -> None:
        super().__init__(words)
        self.words, self.column, self.field, self.row = words, column, field, row

    def at(self, row: int) -> RowError:
        """Return a copy with another row. Unlike an exception that was raised, it holds no frames."""
        return RowError(self.words, self.column, self.field, row)


def unescaped(text: bytes) -> bytes:
    """Return the content of a quoted field, in which quotation marks are doubled."""
    return text.replace(b'""', b'"')


def convert_field(text: bytes, index: int, layout: CsvLayout) -> Any:
    """Return the value of a field of the column ``index`` of those that are read.

    Raises:
        RowError: the field is missing or not a number.
    """
    column = layout.columns[index]
    dtype = column.dtype
    if not text or text == layout.na_value:
        if column.default is None:
            raise RowError(_MISSING, index)
        return column.default
    if dtype.kind == "S":
        return text
    try:
        return parse_int(text, dtype) if dtype.kind == "i" else parse_float(text, dtype)
    except ValueError:
        shown = repr(text[:_SHOWN_MAX]) + ("..." if len(text) > _SHOWN_MAX else "")
        kind = f"an integer from {np.iinfo(dtype).min} to {np.iinfo(dtype).max}" if dtype.kind == "i" else "a number"
        raise RowError(
            f"{shown} is not {kind}, as the column's dtype {dtype.name} requires; correct the file, or pass "
            "another dtype for the column (bytes accepts any text)",
            index,
        ) from None


def parse_int(text: bytes, dtype: np.dtype[Any]) -> int:
    """Return the integer in a text; blanks around it are allowed.

    Raises:
        ValueError: the text is not an integer, or the integer does not fit into ``dtype``.
    """
    found = _INT.fullmatch(text)
    value = int(found[1] + found[2]) if found else math.inf
    limit = 1 << 8 * dtype.itemsize - 1
    if not -limit <= value < limit:
        raise ValueError(text)
    return int(value)


def parse_float(text: bytes, dtype: np.dtype[Any]) -> float:
    """Return the float nearest to a text, as C's ``strtod`` does; blanks around it are allowed.

    Rounding to float64 and then to float32 gives a wrong result if the float64 is exactly between two float32s and the
    text is not. Then the next float64 on the side of the text is rounded.

    Raises:
        ValueError: the text is not a number.
    """
    value = _parse_double(text)
    if dtype.itemsize == 8:
        return value
    digits = value * 2.0**150 if abs(value) < _NORMAL_MIN else math.frexp(value)[0] * 2.0**25
    if abs(digits) % 2 == 1:
        with contextlib.suppress(decimal.InvalidOperation):  # hexadecimal, and few of them have that many digits
            exact = decimal.Decimal(text.decode().strip())
            value = value if exact == value else math.nextafter(value, math.inf if exact > value else -math.inf)
    return math.copysign(math.inf, value) if abs(value) >= _ROUNDED_UP else float(np.float32(value))


def _parse_double(text: bytes) -> float:
    try:
        return float(text if b"_" not in text else b"")
    except ValueError:
        word = text.strip().lower()
    if _NAN_WITH_PAYLOAD.fullmatch(word):
        return math.nan
    if not _HEXADECIMAL.fullmatch(word):
        raise ValueError(text)
    try:
        return float.fromhex(word.decode())
    except OverflowError:
        return float("-inf" if word.startswith(b"-") else "inf")
