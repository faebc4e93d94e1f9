"""Reference parser of CSV rows: splits one row at a time into fields, and converts fields to values.

It specifies the native kernels (native/csv.c), which leave malformed rows and unusual numbers to it. The grammar of
rows is tf.data's version of RFC 4180. A row ends with a line feed, a carriage return, or both. A field that begins with
a quotation mark ends with the next one. It may contain anything, and two quotation marks in it mean one. A quotation
mark anywhere else is an error of that row, but does not change where the row ends. ``scan_record`` implements the
grammar of ``decode_csv``, where a record is one row.
"""

from __future__ import annotations

import contextlib
import decimal
import math
import re
import sys
from typing import Any

import numpy as np

from dataset.io.csv.layout import CsvLayout

_STRAY_QUOTE = (
    "a field that does not begin with a quotation mark contains one; put the field in quotes and double the quotation "
    "marks in it, or pass use_quote_delim=False"
)
_AFTER_QUOTE = "text follows the closing quotation mark; double quotation marks inside a quoted field"
_NEVER_CLOSED = "the quotation mark that opens here is never closed; double quotation marks inside a quoted field"
_LINE_END = "an unquoted field contains a line end; pass one row per record"
_MISSING = "the field is empty, and the column has no default; to allow that, pass a default instead of the dtype"
_INT = re.compile(rb"\s*([+-]?)0*([0-9]{1,19})\s*")  # int() is slow for thousands of digits, and raises for more
_PAYLOAD = re.compile(rb"(?<=nan)\([0-9a-z_]*\)\Z")


class RowError(ValueError):
    """Internal error: a row can't be read.

    Attributes:
        words: the description of the error.
        field: the index of the column among all columns, or None.
        place: where the field begins, if it is incomplete.
    """

    def __init__(self, words: str, field: int | None = None, place: int = 0) -> None:
        super().__init__(words)
        self.words, self.field, self.place = words, field, place


def scan_row(data: bytes, start: int, layout: CsvLayout) -> tuple[list[bytes] | RowError, int]:
    """Return the fields of the row that begins at ``start``, or its first error, and where the next row begins.

    The row is complete only if its line end is within ``data``; a carriage return at the end of ``data`` is not
    complete, because a line feed may follow. For an incomplete row, the error is that of a quotation mark that is
    never closed, and the position is -1.
    """
    end = data.find(b"\n", start)
    if end >= 0 and _is_plain(line := data[start:end], layout):
        return line.split(layout.delimiter), end + 1
    fields: list[bytes] = []
    error, at, ends = None, start, re.compile(b"[\r\n%b]" % re.escape(layout.delimiter))
    while True:
        text, after, words = _scan_field(data, at, layout, ends)
        if after == len(data) or (after == len(data) - 1 and data.endswith(b"\r")):
            return RowError(_NEVER_CLOSED, len(fields), at), -1
        if words and error is None:
            error = RowError(words, len(fields))
        fields.append(text)
        if data[after : after + 1] != layout.delimiter:
            return error or fields, after + (2 if data.startswith(b"\r\n", after) else 1)
        at = after + 1


def scan_record(record: bytes, layout: CsvLayout) -> list[bytes] | RowError:
    """Return the fields of one record, or its error, as tf.io.decode_csv does: line ends before a field are ignored.

    The text after the last selected column is not checked.
    """
    if record and _is_plain(record, layout):
        return record.split(layout.delimiter)
    fields: list[bytes] = []
    at, ends = 0, re.compile(re.escape(layout.delimiter))
    count_max = layout.indices[-1] + 1 if layout.fields_max == sys.maxsize else sys.maxsize
    while at < len(record) + record.endswith(layout.delimiter) and len(fields) < count_max:
        if record.startswith((b"\r", b"\n"), at):
            at += 1
            continue
        text, after, words = _scan_field(record, at, layout, ends)
        if words:
            return RowError(words, len(fields))
        fields.append(text)
        at = after + 1
    return fields


def _is_plain(line: bytes, layout: CsvLayout) -> bool:
    """Return whether the delimiters alone divide a line into fields."""
    return b"\n" not in line and b"\r" not in line and not (layout.quotes and b'"' in line)


def _scan_field(data: bytes, at: int, layout: CsvLayout, ends: re.Pattern[bytes]) -> tuple[bytes, int, str]:
    """Return the text of the field at ``at``, the position after it, and a description of its error.

    The field ends before one of the bytes ``ends``, or at the end of ``data``.
    """
    if not (layout.quotes and data.startswith(b'"', at)):
        found = ends.search(data, at)
        after = found.start() if found else len(data)
        text = data[at:after]
        is_cut = b"\n" in text or b"\r" in text
        return text, after, _STRAY_QUOTE if layout.quotes and b'"' in text else _LINE_END if is_cut else ""
    quote = data.find(b'"', at + 1)
    while 0 <= quote < len(data) - 1 and not ends.match(data, quote + 1):
        quote = data.find(b'"', quote + 2)
    if quote < 0:
        return b"", len(data), _NEVER_CLOSED
    text = data[at + 1 : quote]
    return text.replace(b'""', b'"'), quote + 1, _AFTER_QUOTE if b'"' in text.replace(b'""', b"") else ""


def values_of(fields: list[bytes] | RowError, layout: CsvLayout, kind: str) -> list[Any] | RowError:
    """Return the values of the columns of a row, or its error; ``kind`` is the word for "row" in messages."""
    if isinstance(fields, RowError):
        return fields
    count, least, most = len(fields), layout.indices[-1] + 1, layout.fields_max
    if not least <= count <= most:
        wanted = f"at least {least}" if most == sys.maxsize else f"{least} to {most}" if least < most else f"{least}"
        return RowError(f"the {kind} has {count} field{'s' if count != 1 else ''}, expected {wanted}")
    try:
        return [convert_field(fields[field], index, layout) for index, field in enumerate(layout.indices)]
    except RowError as error:
        return RowError(error.words, error.field)  # unlike the exception that was raised, it holds no frames


def convert_field(text: bytes, index: int, layout: CsvLayout) -> Any:
    """Return the value of a field of the column ``index`` of those that are read.

    Raises:
        RowError: the field is missing or not a number.
    """
    dtype, default = layout.columns[index]
    if not text or text == layout.na_value:
        if default is None:
            raise RowError(_MISSING, layout.indices[index])
        return default
    if dtype.kind == "S":
        return text
    try:
        return parse_int(text, dtype) if dtype.kind == "i" else parse_float(text, dtype)
    except ValueError:
        kind = f"an integer from {np.iinfo(dtype).min} to {np.iinfo(dtype).max}" if dtype.kind == "i" else "a number"
        raise RowError(
            f"{text!r:.60} is not {kind}, as the column's dtype {dtype.name} requires; correct the file, or pass "
            "another dtype for the column (bytes accepts any text)",
            layout.indices[index],
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
    # In units of half the last bit of a float32. The smallest normal float32 is 2**-126.
    digits = value * 2.0**150 if abs(value) < 2.0**-126 else math.frexp(value)[0] * 2.0**25
    if abs(digits) % 2 == 1:
        with contextlib.suppress(decimal.InvalidOperation):  # hexadecimal, and few of them have that many digits
            exact = decimal.Decimal(text.decode().strip())
            value = value if exact == value else math.nextafter(value, math.inf if exact > value else -math.inf)
    # From 2**128 - 2**103 on, the nearest float32 is infinite.
    return math.copysign(math.inf, value) if abs(value) >= 2.0**128 - 2.0**103 else float(np.float32(value))


def _parse_double(text: bytes) -> float:
    try:
        return float(text if b"_" not in text else b"")
    except ValueError:
        word = _PAYLOAD.sub(b"", text.strip().lower())
    if b"x" not in word and not word.endswith(b"nan"):
        raise ValueError(text)
    try:
        return float.fromhex(word.decode())
    except OverflowError:
        return -math.inf if word.startswith(b"-") else math.inf
