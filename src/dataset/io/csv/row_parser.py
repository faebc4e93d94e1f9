"""Reference parser of CSV rows: splits one row at a time into fields, including malformed rows.

The grammar is tf.data's version of RFC 4180. A row ends with a line feed, a carriage return, or both. A field that
begins with a quotation mark ends with the next one. It may contain anything, and two quotation marks in it mean one. A
quotation mark anywhere else is an error of that row, but does not change where the row ends. ``scan_record`` implements
the grammar of ``decode_csv``, where a record is one row.
"""

from __future__ import annotations

from dataclasses import dataclass

from dataset.io.csv.fields import RowError, unescaped
from dataset.io.csv.layout import CsvLayout

__all__ = ["NEVER_CLOSED", "ScannedRow", "scan_record", "scan_row"]

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
        words: the description of the error, if any.
        field: the index of the invalid or incomplete field.
        place: where that field begins.
    """

    fields: list[bytes]
    end: int = -1
    words: str = ""
    field: int = 0
    place: int = 0

    def blame(self, words: str, place: int) -> None:
        """Record an error of the current field. Only the first error of a row is kept."""
        if not self.words:
            self.words, self.field, self.place = words, len(self.fields), place


def scan_row(data: bytes, start: int, layout: CsvLayout) -> ScannedRow:
    """Read the row that begins at ``start``. It is complete only if its line end is within ``data``.

    A carriage return at the end of ``data`` is not complete, because a line feed may follow.
    """
    end = data.find(b"\n", start)
    line = data[start:end]
    if end >= 0 and b"\r" not in line and not (layout.quotes and b'"' in line):
        return ScannedRow(line.split(layout.delimiter), end + 1)
    row, at = ScannedRow([]), start
    while row.end < 0:
        is_quoted = layout.quotes and data.startswith(b'"', at)
        after = _scan_quoted(data, at, layout, row) if is_quoted else _scan_plain(data, at, layout, row)
        if after < 0 or (after == len(data) - 1 and data.endswith(b"\r")):
            row.field, row.place = len(row.fields), at
            return row
        if data[after : after + 1] != layout.delimiter:
            row.end = after + (2 if data.startswith(b"\r\n", after) else 1)
        at = after + 1
    return row


def _scan_plain(data: bytes, at: int, layout: CsvLayout, row: ScannedRow) -> int:
    """Read a field without quotes; return the position after it, or -1 if the field is incomplete."""
    after = len(data)
    for byte in (b"\n", b"\r", layout.delimiter):
        found = data.find(byte, at, after)
        after = found if found >= 0 else after
    if after == len(data):
        return -1
    text = data[at:after]
    if layout.quotes and b'"' in text:
        row.blame(_STRAY_QUOTE, at)
    row.fields.append(text)
    return after


def _scan_quoted(data: bytes, at: int, layout: CsvLayout, row: ScannedRow) -> int:
    """Read a field that begins with a quotation mark; return the same as ``_scan_plain``."""
    quote = data.find(b'"', at + 1)
    while 0 <= quote < len(data) - 1:
        after = data[quote + 1 : quote + 2]
        if after == layout.delimiter or after in b"\r\n":
            row.fields.append(unescaped(data[at + 1 : quote]))
            return quote + 1
        if after != b'"':
            row.blame(_AFTER_QUOTE, at)
        quote = data.find(b'"', quote + 2)
    return -1


def scan_record(record: bytes, layout: CsvLayout) -> list[bytes]:
    """Return the fields of one record, as tf.io.decode_csv does: line ends before a field are ignored.

    The text after the last selected column is not checked.

    Raises:
        RowError: a quotation mark or line end is misplaced.
    """
    fields: list[bytes] = []
    at, wanted = 0, None if layout.select is None else layout.select[-1] + 1
    while at < len(record) and len(fields) != wanted:
        if record[at] in b"\r\n":
            at += 1
        elif layout.quotes and record.startswith(b'"', at):
            after = _closing_quote(record, at, layout.delimiter, len(fields))
            fields.append(unescaped(record[at + 1 : after]))
            at = after + 2
        else:
            after = record.find(layout.delimiter, at)
            after = len(record) if after < 0 else after
            fields.append(_checked(record[at:after], len(fields), layout))
            at = after + 1
    if record.endswith(layout.delimiter) and len(fields) != wanted:
        fields.append(b"")
    return fields


def _closing_quote(record: bytes, at: int, delimiter: bytes, field: int) -> int:
    quote = record.find(b'"', at + 1)
    while quote >= 0:
        after = record[quote + 1 : quote + 2]
        if after in {b"", delimiter}:
            return quote
        if after != b'"':
            raise RowError(_AFTER_QUOTE, field=field)
        quote = record.find(b'"', quote + 2)
    raise RowError(NEVER_CLOSED, field=field)


def _checked(text: bytes, field: int, layout: CsvLayout) -> bytes:
    if layout.quotes and b'"' in text:
        raise RowError(_STRAY_QUOTE, field=field)
    if b"\n" in text or b"\r" in text:
        raise RowError(_LINE_END, field=field)
    return text
