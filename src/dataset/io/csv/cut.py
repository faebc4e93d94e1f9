"""Vectorized tokenizer: splits blocks of text into rows and fields.

It finds the delimiters, line ends and quotation marks by comparing all bytes of a block at once. A delimiter or line
end is inside a quoted field if an odd number of quotation marks precede it. This rule holds only if every quotation
mark is where RFC 4180 allows one, which is checked. ``scan_row`` reads all other blocks field by field. Either way the
result is ``CsvRows``: the positions of fields in a buffer, column by column.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dataset.io.csv.layout import CsvLayout
from dataset.io.csv.numbers import PAD
from dataset.io.csv.row_parser import ScannedRow, scan_row

__all__ = ["PADDING", "CsvProblem", "CsvRows", "cut_rows", "joined_rows"]

Array: TypeAlias = npt.NDArray[Any]

PADDING = bytes(PAD)
"""The bytes that a block must begin with."""

_QUOTE = ord('"')
_LF, _CR = ord("\n"), ord("\r")
_WORD = 8
_SHORT_MAX = 64  # bytes of a field; longer fields are cheaper to copy one by one


@dataclass(frozen=True, slots=True)
class CsvProblem:
    """Parse error of one row.

    Attributes:
        row: its index in the block.
        words: the description of the error.
        column: the index of the column among those that are read, or None.
        field: the index of the column among all columns, or None.
    """

    row: int
    words: str
    column: int | None = None
    field: int | None = None


@dataclass
class CsvRows:
    """The rows of a block, as positions of their fields.

    Attributes:
        data: the block, or a buffer that holds its fields.
        starts: where each row begins in the block, including bad rows, and where the next row would begin.
        good: the indices of the rows that have the requested fields; None for all.
        problems: the errors of the other rows.
        fields: returns the starts and the ends of the fields of a column in the good rows.
        are_lines: whether every row is known to be one line.
        doubled: whether fields may contain doubled quotation marks, which mean single ones.
    """

    data: bytes
    starts: Array
    good: Array | None
    problems: list[CsvProblem]
    fields: Callable[[int], tuple[Array, Array]]
    are_lines: bool = False
    doubled: bool = False

    def __len__(self) -> int:
        """Return the number of rows, including bad rows."""
        return len(self.starts) - 1

    def number_of(self, good_row: int) -> int:
        """Return the index in the block of a good row."""
        return good_row if self.good is None else int(self.good[good_row])

    def texts(self, column: int) -> list[bytes]:
        """Return the fields of a column."""
        return self._cut_out(*self.fields(column))

    def texts_at(self, column: int, good_rows: Array) -> list[bytes]:
        """Return the fields of a column in some of the good rows."""
        starts, ends = self.fields(column)
        return self._cut_out(starts[good_rows], ends[good_rows])

    def _cut_out(self, starts: Array, ends: Array) -> list[bytes]:
        texts = _pieces(self.data, starts, ends)
        return [text.replace(b'""', b'"') for text in texts] if self.doubled else texts


def _pieces(data: bytes, starts: Array, ends: Array) -> list[bytes]:
    """Return the bytes from each start to its end.

    All fields are copied at once, at the length of the longest. The bytes after the end of a field become zeros, which
    NumPy strips from ``S`` dtypes. This takes a third of the time of slicing the fields one by one. Fields that are
    long, end in a zero byte or are too close to the end of the data are sliced.
    """
    lengths = ends - starts
    size = min(-(-int(lengths.max(initial=1)) // _WORD) * _WORD, _SHORT_MAX)
    stored = np.frombuffer(data, np.uint8)
    ends_in_zero = (stored[ends - 1] == 0) & (lengths > 0)
    others = np.flatnonzero(ends_in_zero | (lengths > size) | (starts + size > len(data)))
    if 4 * len(others) > len(starts):
        return _slices(data, starts, ends)
    # A view of ``size`` consecutive bytes from every position.
    everywhere = np.lib.stride_tricks.as_strided(
        np.frombuffer(data, f"V{size}", 1), (len(data) - size + 1,), (1,), writeable=False
    )
    words = everywhere[np.minimum(starts, len(everywhere) - 1)].view(np.uint64)
    words &= _kept(size)[np.minimum(lengths, size)].view(np.uint64)
    texts: list[bytes] = words.view(f"S{size}").tolist()
    for row, text in zip(others.tolist(), _slices(data, starts[others], ends[others]), strict=True):
        texts[row] = text
    return texts


@functools.cache
def _kept(size: int) -> Array:
    """Return a mask for each length up to ``size``: that many bytes of ones, then zeros."""
    kept = np.tri(size + 1, size, -1, np.uint8) * np.uint8(255)
    return kept.view(f"V{size}")[:, 0]


def _slices(data: bytes, starts: Array, ends: Array) -> list[bytes]:
    return list(map(data.__getitem__, map(slice, starts.tolist(), ends.tolist())))


def cut_rows(block: bytes, layout: CsvLayout) -> CsvRows:
    """Return all rows that end within the block.

    Args:
        block: PADDING, then text that begins at the start of a row. It does not end within a CR LF pair.
        layout: how to read it.
    """
    data = np.frombuffer(block, np.uint8)
    has_returns = b"\r" in block
    is_mark = data == ord(layout.delimiter)
    is_mark |= data == _LF
    if has_returns:
        is_mark |= data == _CR
    is_mark[:PAD] = False  # the padding may hold the delimiter
    has_quotes = layout.quotes and b'"' in block
    if has_quotes:
        is_mark |= data == _QUOTE
    marks = np.flatnonzero(is_mark)
    if has_quotes:
        is_quote = data[marks] == _QUOTE
        if not _are_well_placed(marks[is_quote], data, layout.delimiter):
            return _scanned_rows(block, layout)
        is_inside = np.cumsum(is_quote, dtype=np.uint8) & 1 == 1
        marks = marks[~(is_inside | is_quote)]
    if has_returns:
        marks = marks[(data[marks] != _LF) | (data[marks - 1] != _CR)]  # the second half of a line end
    return _rows_between(block, data, marks, layout, has_quotes=has_quotes, has_returns=has_returns)


def _are_well_placed(quotes: Array, data: Array, delimiter: bytes) -> bool:
    """Return whether all quotation marks open fields where fields begin and close them where they end."""
    opening, closing = quotes[0::2], quotes[1::2]
    before = data[opening - 1]
    opens = (before == ord(delimiter)) | (before == _LF) | (before == _CR) | (opening == PAD)
    opens[1:] |= opening[1:] == closing[: len(opening) - 1] + 1  # the second of a doubled quotation mark
    if not opens.all():
        return False
    behind = data[np.minimum(closing + 1, len(data) - 1)]
    closes = (behind == ord(delimiter)) | (behind == _LF) | (behind == _CR) | (behind == _QUOTE)
    return bool((closes | (closing == len(data) - 1)).all())


def _rows_between(
    block: bytes, data: Array, marks: Array, layout: CsvLayout, *, has_quotes: bool, has_returns: bool
) -> CsvRows:
    """Return the rows whose fields end at ``marks``."""
    bytes_there = data[marks]
    row_ends = np.flatnonzero((bytes_there == _LF) | (bytes_there == _CR))
    marks = marks[: row_ends[-1] + 1] if len(row_ends) else marks[:0]
    begins = np.empty(len(marks) + 1, np.intp)  # of fields; the last is where the next row begins
    begins[0] = PAD
    np.add(marks, 1, out=begins[1:])
    if has_returns:
        followed = data[np.minimum(marks + 1, len(data) - 1)] == _LF
        begins[1:] += (data[marks] == _CR) & followed & (marks + 1 < len(data))
    first = np.empty(len(row_ends), np.intp)  # the first mark of each row
    first[:1] = 0
    np.add(row_ends[:-1], 1, out=first[1:])
    counts = row_ends - first + 1
    starts = np.append(begins[first], begins[-1])
    fits = layout.fits(counts)
    good = None if fits.all() else np.flatnonzero(fits)
    problems = (
        [] if good is None else [_wrong_length(int(row), int(counts[row]), layout) for row in np.flatnonzero(~fits)]
    )
    if good is not None:
        first = first[good]
    indices = layout.indices

    @functools.lru_cache(maxsize=1)
    def fields(column: int) -> tuple[Array, Array]:
        at = first + indices[column]
        begin, end = begins[at], marks[at]
        if has_quotes:
            quoted = (data[begin] == _QUOTE).astype(np.intp)
            begin, end = begin + quoted, end - quoted
        return begin, end

    doubled = has_quotes and b'""' in block
    return CsvRows(block, starts, good, problems, fields, are_lines=not has_quotes, doubled=doubled)


def _wrong_length(row: int, count: int, layout: CsvLayout) -> CsvProblem:
    return CsvProblem(row, f"the row has {count} field{'s' if count != 1 else ''}, expected {layout.wanted()}")


def _scanned_rows(block: bytes, layout: CsvLayout) -> CsvRows:
    """Do the work of ``cut_rows`` one row at a time."""
    scanned: list[ScannedRow] = []
    starts = [PAD]
    while starts[-1] < len(block):
        row = scan_row(block, starts[-1], layout)
        if row.end < 0:
            break
        scanned.append(row)
        starts.append(row.end)
    problems = [_problem_of(number, row, layout) for number, row in enumerate(scanned)]
    texts = [row.fields for row, problem in zip(scanned, problems, strict=True) if problem is None]
    rows = joined_rows([[text[index] for index in layout.indices] for text in texts], len(layout.columns))
    rows.starts = np.array(starts, np.intp)
    rows.problems = [problem for problem in problems if problem is not None]
    rows.good = np.array([number for number, problem in enumerate(problems) if problem is None], np.intp)
    return rows


def _problem_of(number: int, row: ScannedRow, layout: CsvLayout) -> CsvProblem | None:
    if row.words:
        return CsvProblem(number, row.words, field=row.field)
    return None if layout.fits(len(row.fields)) else _wrong_length(number, len(row.fields), layout)


def joined_rows(rows: list[list[bytes]], count: int) -> CsvRows:
    """Return rows that have been split into ``count`` fields each as ``CsvRows`` with one buffer."""
    texts = [text for row in rows for text in row]
    data = PADDING + b"\n".join(texts) + b"\n"
    lengths = np.fromiter(map(len, texts), np.intp, len(texts))
    ends = PAD - 1 + np.cumsum(lengths + 1)

    def fields(column: int) -> tuple[Array, Array]:
        end = ends[column::count]
        return end - lengths[column::count], end

    return CsvRows(data, np.arange(len(rows) + 1), None, [], fields)
