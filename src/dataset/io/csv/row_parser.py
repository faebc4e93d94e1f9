"""Reference parser of CSV rows: reads one row at a time, including malformed rows.

The grammar is tf.data's version of RFC 4180. A row ends with a line feed, a carriage return, or both. A field that
begins with a quotation mark ends with the next one. It may contain anything, and two quotation marks in it mean one. A
quotation mark anywhere else is an error of that row, but does not change where the row ends. cut.py does the same for
whole blocks and uses this module if a block has such errors. ``scan_record`` implements the grammar of ``decode_csv``,
where a record is one row.
"""

from __future__ import annotations

from dataclasses import dataclass

from dataset.io.csv.layout import CsvLayout

__all__ = ["NEVER_CLOSED", "RowError", "ScannedRow", "scan_record", "scan_row"]

_STRAY_QUOTE = (
    "a field that does not begin with a quotation mark contains one; put the field in quotes and double the quotation "
    "marks in it, or pass use_quote_delim=False"
)
_BEHIND_QUOTE = "text follows the closing quotation mark; double quotation marks inside a quoted field"
NEVER_CLOSED = "the quotation mark that opens here is never closed"
_LINE_END = "an unquoted field contains a line end; pass one row per record"


class RowError(ValueError):
    """Internal error: a row can't be split into fields."""

    def __init__(self, words: str, field: int) -> None:
        super().__init__(words)
        self.words, self.field = words, field


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
    """Read the row that begins at ``start``. It is complete only if its line end is within ``data``."""
    row, at = ScannedRow([]), start
    while row.end < 0:
        if layout.quotes and data.startswith(b'"', at):
            after = _scan_quoted(data, at, layout.delimiter, row)
        else:
            after = _scan_plain(data, at, layout, row)
        if after < 0:
            row.field, row.place = len(row.fields), at
            return row
        if data[after : after + 1] != layout.delimiter:
            row.end = after + (2 if data.startswith(b"\r\n", after) else 1)
        at = after + 1
    return row


def _scan_plain(data: bytes, at: int, layout: CsvLayout, row: ScannedRow) -> int:
    """Read a field without quotes; return the position after it, or -1 if the field is incomplete."""
    after = _first_of(data, at, layout.delimiter)
    if after < 0:
        return -1
    text = data[at:after]
    if layout.quotes and b'"' in text:
        row.blame(_STRAY_QUOTE, at)
    row.fields.append(text)
    return after


def _first_of(data: bytes, at: int, delimiter: bytes) -> int:
    """Return the position of the next delimiter or line end, or -1."""
    found = data.find(b"\n", at)
    for byte in (b"\r", delimiter):
        earlier = data.find(byte, at, found if found >= 0 else len(data))
        found = earlier if earlier >= 0 else found
    return found


def _scan_quoted(data: bytes, at: int, delimiter: bytes, row: ScannedRow) -> int:
    """Read a field that begins with a quotation mark; return the same as ``_scan_plain``."""
    quote = data.find(b'"', at + 1)
    while 0 <= quote < len(data) - 1:
        behind = data[quote + 1 : quote + 2]
        if behind == delimiter or behind in {b"\n", b"\r"}:
            row.fields.append(data[at + 1 : quote].replace(b'""', b'"'))
            return quote + 1
        if behind != b'"':
            row.blame(_BEHIND_QUOTE, at)
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
            fields.append(record[at + 1 : after].replace(b'""', b'"'))
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
        behind = record[quote + 1 : quote + 2]
        if behind in {b"", delimiter}:
            return quote
        if behind != b'"':
            raise RowError(_BEHIND_QUOTE, field)
        quote = record.find(b'"', quote + 2)
    raise RowError(NEVER_CLOSED, field)


def _checked(text: bytes, field: int, layout: CsvLayout) -> bytes:
    if layout.quotes and b'"' in text:
        raise RowError(_STRAY_QUOTE, field)
    if b"\n" in text or b"\r" in text:
        raise RowError(_LINE_END, field)
    return text
