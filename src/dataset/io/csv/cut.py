"""Blocks of text cut into rows and fields, all at once.

How it is fast. Where delimiters, line ends and quotation marks stand in a block is found by comparing all its bytes.
A delimiter or line end is inside of a quoted field if the number of quotation marks before it is odd. That is true as
long as every mark stands where RFC 4180 allows one, which is looked at, too; a block in which one does not is read by
``scan_row``, field by field. Either way the result is ``CsvRows``: positions of fields in a buffer, column by column.
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
from dataset.io.csv.scan import ScannedRow, scan_row

__all__ = ["PADDING", "CsvProblem", "CsvRows", "cut_rows", "joined_rows"]

Array: TypeAlias = npt.NDArray[Any]

PADDING = bytes(PAD)
"""What a block must begin with."""

_QUOTE = ord('"')
_LF, _CR = ord("\n"), ord("\r")
_WORD = 8
_SHORT_MAX = 64  # bytes of a field; longer ones cost less one by one


@dataclass(frozen=True, slots=True)
class CsvProblem:
    """What is wrong with a row.

    Attributes:
        row: its number in the block.
        words: what is wrong with it.
        column: the number of the column among those that are read, or None; ``field`` counts all.
    """

    row: int
    words: str
    column: int | None = None
    field: int | None = None


@dataclass
class CsvRows:
    """The rows of a block.

    Attributes:
        data: the block, or a buffer that their fields were put into.
        starts: where in the block each row begins, the bad ones included; and where the next one would.
        good: the numbers of the rows that have the fields that were asked for; None for all.
        problems: what is wrong with the others.
        fields: gives the starts and the ends of the fields of a column, in the good rows.
        are_lines: whether every row is known to be one line.
        doubled: whether there are doubled quotation marks, which stand for one.
    """

    data: bytes
    starts: Array
    good: Array | None
    problems: list[CsvProblem]
    fields: Callable[[int], tuple[Array, Array]]
    are_lines: bool = False
    doubled: bool = False

    def __len__(self) -> int:
        """How many rows, the bad ones included."""
        return len(self.starts) - 1

    def number_of(self, good_row: int) -> int:
        """The number in the block of a good row."""
        return good_row if self.good is None else int(self.good[good_row])

    def texts(self, column: int) -> list[bytes]:
        """The fields of a column."""
        return self._cut_out(*self.fields(column))

    def texts_at(self, column: int, good_rows: Array) -> list[bytes]:
        """Some of them."""
        starts, ends = self.fields(column)
        return self._cut_out(starts[good_rows], ends[good_rows])

    def _cut_out(self, starts: Array, ends: Array) -> list[bytes]:
        texts = _pieces(self.data, starts, ends)
        return [text.replace(b'""', b'"') for text in texts] if self.doubled else texts


def _pieces(data: bytes, starts: Array, ends: Array) -> list[bytes]:
    """The bytes from each start to its end.

    As many bytes as the longest has are copied from each start on, all at once, and what is behind its end becomes
    zeros, which NumPy leaves out of a text. It takes a third of the time of cutting them out one by one, which is done
    with the others: those that are long, end in a zero of their own, or stand too close to the end of the data.
    """
    lengths = ends - starts
    size = min(-(-int(lengths.max(initial=1)) // _WORD) * _WORD, _SHORT_MAX)
    stored = np.frombuffer(data, np.uint8)
    ends_in_zero = (stored[ends - 1] == 0) & (lengths > 0)
    others = np.flatnonzero(ends_in_zero | (lengths > size) | (starts + size > len(data)))
    if 4 * len(others) > len(starts):
        return _slices(data, starts, ends)
    # A view of as many bytes in a row, wherever they begin.
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
    """For each length up to ``size``, so many bytes of ones, then zeros."""
    kept = np.tri(size + 1, size, -1, np.uint8) * np.uint8(255)
    return kept.view(f"V{size}")[:, 0]


def _slices(data: bytes, starts: Array, ends: Array) -> list[bytes]:
    return list(map(data.__getitem__, map(slice, starts.tolist(), ends.tolist())))


def cut_rows(block: bytes, layout: CsvLayout) -> CsvRows:
    """All rows that end within the block.

    Args:
        block: PADDING, then text that begins where a row does. It does not end between the two halves of a line end.
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
    """Whether quotation marks open fields where fields begin, and close them where they end."""
    opening, closing = quotes[0::2], quotes[1::2]
    before = data[opening - 1]
    opens = (before == ord(delimiter)) | (before == _LF) | (before == _CR) | (opening == PAD)
    opens[1:] |= opening[1:] == closing[: len(opening) - 1] + 1  # the second of two
    if not opens.all():
        return False
    behind = data[np.minimum(closing + 1, len(data) - 1)]
    closes = (behind == ord(delimiter)) | (behind == _LF) | (behind == _CR) | (behind == _QUOTE)
    return bool((closes | (closing == len(data) - 1)).all())


def _rows_between(
    block: bytes, data: Array, marks: Array, layout: CsvLayout, *, has_quotes: bool, has_returns: bool
) -> CsvRows:
    """The rows whose fields end at ``marks``."""
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
    return CsvProblem(row, f"the row has {count} field{'s' if count != 1 else ''}; {layout.wanted()} are wanted")


def _scanned_rows(block: bytes, layout: CsvLayout) -> CsvRows:
    """``cut_rows``, one row after the other."""
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
    """Rows of ``count`` fields that have been taken apart already, put into one buffer."""
    texts = [text for row in rows for text in row]
    data = PADDING + b"\n".join(texts) + b"\n"
    lengths = np.fromiter(map(len, texts), np.intp, len(texts))
    ends = PAD - 1 + np.cumsum(lengths + 1)

    def fields(column: int) -> tuple[Array, Array]:
        end = ends[column::count]
        return end - lengths[column::count], end

    return CsvRows(data, np.arange(len(rows) + 1), None, [], fields)
