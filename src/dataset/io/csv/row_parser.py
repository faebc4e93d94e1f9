"""Reference parser of CSV rows: splits one row at a time into fields, including malformed rows.

The grammar is tf.data's version of RFC 4180. A row ends with a line feed, a carriage return, or both. A field that
begins with a quotation mark ends with the next one. It may contain anything, and two quotation marks in it mean one. A
quotation mark anywhere else is an error of that row, but does not change where the row ends. ``scan_record`` implements
the grammar of ``decode_csv``, where a record is one row.
"""

from __future__ import annotations

from dataclasses import dataclass

from dataset.io.csv.fields import unescaped
from dataset.io.csv.layout import CsvLayout

_STRAY_QUOTE = (
    "a field that does not begin with a quotation mark contains one; put the field in quotes and double the quotation "
    "marks in it, or pass use_quote_delim=False"
)
_AFTER_QUOTE = "text follows the closing quotation mark; double quotation marks inside a quoted field"
NEVER_CLOSED = "the quotation mark that opens here is never closed"
_LINE_END = "an unquoted field contains a line end; pass one row per record"


@dataclass(slots=True)
class ScannedRow:
    """Parse result of one row.

    Attributes:
        fields: the text of the fields; that of an invalid field is unspecified.
        end: where the next row begins; -1 if the end of this row has not been found.
        words: the description of the first error, if any.
        field: the index of the invalid or incomplete field.
        place: where the incomplete field begins.
    """

    fields: list[bytes]
    end: int = -1
    words: str = ""
    field: int = 0
    place: int = 0


def scan_row(data: bytes, start: int, layout: CsvLayout) -> ScannedRow:
    """Read the row that begins at ``start``. It is complete only if its line end is within ``data``.

    A carriage return at the end of ``data`` is not complete, because a line feed may follow.
    """
    end = data.find(b"\n", start)
    if end >= 0 and _is_plain(line := data[start:end], layout):
        return ScannedRow(line.split(layout.delimiter), end + 1)
    row, at = ScannedRow([]), start
    while row.end < 0:
        text, after, words = _scan_field(data, at, layout, (b"\n", b"\r", layout.delimiter))
        if after == len(data) or (after == len(data) - 1 and data.endswith(b"\r")):
            return ScannedRow(row.fields, field=len(row.fields), place=at)
        if words and not row.words:
            row.words, row.field = words, len(row.fields)
        row.fields.append(text)
        if data[after : after + 1] != layout.delimiter:
            row.end = after + (2 if data.startswith(b"\r\n", after) else 1)
        at = after + 1
    return row


def scan_record(record: bytes, layout: CsvLayout) -> ScannedRow:
    """Read one record, as tf.io.decode_csv does: line ends before a field are ignored.

    The text after the last selected column is not checked.
    """
    if record and _is_plain(record, layout):
        return ScannedRow(record.split(layout.delimiter))
    row, at = ScannedRow([]), 0
    wanted = None if layout.select is None else layout.select[-1] + 1
    while at < len(record) and len(row.fields) != wanted and not row.words:
        if record[at] in b"\r\n":
            at += 1
            continue
        text, after, row.words = _scan_field(record, at, layout, (layout.delimiter,))
        row.field = len(row.fields)
        row.fields.append(text)
        at = after + 1
    if record.endswith(layout.delimiter) and len(row.fields) != wanted:
        row.fields.append(b"")
    return row


def _is_plain(line: bytes, layout: CsvLayout) -> bool:
    """Return whether the delimiters alone divide a line into fields."""
    return b"\n" not in line and b"\r" not in line and not (layout.quotes and b'"' in line)


def _scan_field(data: bytes, at: int, layout: CsvLayout, ends: tuple[bytes, ...]) -> tuple[bytes, int, str]:
    """Return the text of the field at ``at``, the position after it, and a description of its first error.

    The field ends before one of the bytes ``ends``, or at the end of ``data``.
    """
    if not (layout.quotes and data.startswith(b'"', at)):
        after = len(data)
        for byte in ends:
            found = data.find(byte, at, after)
            after = found if found >= 0 else after
        text = data[at:after]
        is_cut = b"\n" in text or b"\r" in text
        return text, after, _STRAY_QUOTE if layout.quotes and b'"' in text else _LINE_END if is_cut else ""
    words, quote = "", data.find(b'"', at + 1)
    while 0 <= quote < len(data) - 1 and not data.startswith(ends, quote + 1):
        if not words and not data.startswith(b'"', quote + 1):
            words = _AFTER_QUOTE
        quote = data.find(b'"', quote + 2)
    if quote < 0:
        return data[at:], len(data), words or NEVER_CLOSED
    return unescaped(data[at + 1 : quote]), quote + 1, words
