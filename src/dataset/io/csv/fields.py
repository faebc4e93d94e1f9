"""Conversion of a single field to a value. The native kernels (native/csv.c) do the same for decimal numbers."""

from __future__ import annotations

import decimal
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from dataset.io.csv.layout import CsvLayout

__all__ = ["RowError", "convert_field", "convert_fields", "convert_texts", "parse_float", "parse_int", "unescaped"]

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
    if not text or text == layout.na_value:
        if column.default is None:
            raise RowError(_MISSING, index)
        return column.default
    if column.dtype.kind == "S":
        return text
    try:
        return parse_int(text, column.dtype) if column.dtype.kind == "i" else parse_float(text, column.dtype)
    except ValueError:
        raise RowError(_no_number(text, column.dtype), index) from None


def convert_texts(texts: Sequence[bytes], index: int, layout: CsvLayout) -> Any:
    """Return the values of many fields of a column as a list or array; raises the same as ``convert_field``."""
    dtype = layout.columns[index].dtype
    if b"" not in texts and layout.na_value not in texts:
        if dtype.kind == "S":
            return texts
        if dtype.itemsize == 8 and b"_" not in b"".join(texts):
            try:
                return np.fromiter(map(int if dtype.kind == "i" else float, texts), dtype, len(texts))
            except (ValueError, OverflowError):
                pass  # one is not a number, or not a decimal one
    return [convert_field(text, index, layout) for text in texts]


def convert_fields(fields: list[bytes], layout: CsvLayout, kind: str) -> list[Any]:
    """Return the values of the columns, given all fields of a row; ``kind`` is the word for "row" in messages.

    Raises:
        RowError: there are too few or too many fields, or one can't be converted.
    """
    count = len(fields)
    if not layout.fields_min <= count <= layout.fields_max:
        raise RowError(f"the {kind} has {count} field{'s' if count != 1 else ''}, expected {layout.wanted()}")
    return [convert_field(fields[field], index, layout) for index, field in enumerate(layout.indices)]


def _no_number(text: bytes, dtype: np.dtype[Any]) -> str:
    shown = repr(text[:_SHOWN_MAX]) + ("..." if len(text) > _SHOWN_MAX else "")
    limits = f" from {np.iinfo(dtype).min} to {np.iinfo(dtype).max}" if dtype.kind == "i" else ""
    kind = "an integer" if dtype.kind == "i" else "a number"
    return (
        f"{shown} is not {kind}{limits}, as the column's dtype {dtype.name} requires; correct the file, or pass "
        "another dtype for the column (bytes accepts any text)"
    )


def parse_int(text: bytes, dtype: np.dtype[Any]) -> int:
    """Return the integer in a text; blanks around it are allowed.

    Raises:
        ValueError: the text is not an integer, or the integer does not fit into ``dtype``.
    """
    found = _INT.fullmatch(text)
    if found:
        value = int(found[1] + found[2])
        limit = 1 << 8 * dtype.itemsize - 1
        if -limit <= value < limit:
            return value
    raise ValueError(text)


def parse_float(text: bytes, dtype: np.dtype[Any]) -> float:
    """Return the float nearest to a text, as C's ``strtod`` does; blanks around it are allowed.

    Raises:
        ValueError: the text is not a number.
    """
    value = _parse_double(text)
    return value if dtype.itemsize == 8 else _narrowed(text, value)


def _parse_double(text: bytes) -> float:
    try:
        if b"_" not in text:
            return float(text)
    except ValueError:
        pass
    word = text.strip().lower()
    if _NAN_WITH_PAYLOAD.fullmatch(word):
        return math.nan
    if not _HEXADECIMAL.fullmatch(word):
        raise ValueError(text)
    try:
        return float.fromhex(word.decode())
    except OverflowError:
        return float("-inf" if word.startswith(b"-") else "inf")


def _narrowed(text: bytes, value: float) -> float:
    """Return the float32 nearest to a text, given the nearest float64.

    Rounding twice gives a wrong result if the float64 is exactly between two float32s and the text is not. Then the
    next float64 on the side of the text is rounded.
    """
    digits = value * 2.0**150 if abs(value) < _NORMAL_MIN else math.frexp(value)[0] * 2.0**25
    if abs(digits) % 2 == 1:
        try:
            exact, between = decimal.Decimal(text.decode().strip()), decimal.Decimal(value)
        except decimal.InvalidOperation:
            pass  # hexadecimal, and few of them have that many digits
        else:
            if exact != between:
                value = math.nextafter(value, math.inf if exact > between else -math.inf)
    return math.copysign(math.inf, value) if abs(value) >= _ROUNDED_UP else float(np.float32(value))
