"""Index of the lines of a text file, or of those that are not blank, and the reader of lines by number.

The index is sparse: an entry is a group of whole lines, at most 4 KiB or a single line. A line is found by reading its
group, which costs about as much as reading the line. An entry per line would take 8 bytes of memory for each line, a
tenth of a typical file; the groups take 12 bytes of the saved index, and 24 bytes of memory, for each 4 KiB.

Which bytes are a line is defined in lines.py, and which lines of a JSON Lines file are blank, in json_lines/reader.py.
"""

from __future__ import annotations

import codecs
import contextlib
from collections.abc import Iterator, Sequence
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from dataset.amounts import BLOCK_BYTES, PEEK_BYTES
from dataset.errors import DataLossError
from dataset.io.files.opening import FileStamp, open_input, read_whole
from dataset.io.indexed.index_file import LINES, index_hint
from dataset.io.indexed.records_at import RecordsAt
from dataset.io.indexed.saved_index import SavedIndex

_FEED, _SPACE = b"\n "


class LineIndex(SavedIndex):
    """Index of the lines of a file.

    Args:
        path: the file.
        columns: for each group of lines its size in bytes, the number of its lines, and how many of them are not blank.
        stamp: the stamp of the file when these were determined.

    Attributes:
        offsets: where each group begins, and where the last one ends.
        first_lines: the number of the first line of each group, and the number of all lines.
        firsts: the same for the lines that are records.
    """

    KIND: ClassVar[bytes] = LINES
    COLUMNS: ClassVar[int] = 3
    skips_blank: ClassVar[bool] = False
    """Whether lines that are blank are not records."""

    def __init__(self, path: str, columns: Sequence[npt.NDArray[np.int64]], stamp: FileStamp) -> None:
        self.path = path
        self.stamp = stamp
        self.offsets, self.first_lines, self._first_rows = (_sums(column) for column in columns)
        self.firsts = self._first_rows if self.skips_blank else self.first_lines

    @classmethod
    def of_columns(cls, path: str, columns: Sequence[npt.NDArray[np.int64]], stamp: FileStamp) -> Self:
        return cls(path, columns, stamp)

    def columns(self) -> Sequence[npt.NDArray[np.int64]]:
        return [np.diff(self.offsets), np.diff(self.first_lines), np.diff(self._first_rows)]

    @classmethod
    def scan(cls, path: str, on_error: str) -> Sequence[npt.NDArray[np.int64]]:  # noqa: ARG003  # no file is damaged
        groups: list[tuple[int, int, int]] = []
        with contextlib.closing(open_input(path)) as file:
            pieces: list[bytes] = []  # of an incomplete line
            while block := read_whole(file.read, BLOCK_BYTES):
                if not groups and not pieces and (hint := index_hint(block)):
                    raise DataLossError(f"these bytes are not text{hint}", path=path, offset=0, record=0)
                stop = block.rfind(b"\n") + 1
                if stop:
                    groups += _groups(b"".join([*pieces, block[:stop]]), is_first=not groups)
                    pieces = []
                pieces.append(block[stop:])
        if rest := b"".join(pieces):
            groups += _groups(rest, is_first=not groups)
        return list(np.array(groups, np.int64).reshape(-1, cls.COLUMNS).T)

    def __len__(self) -> int:
        return int(self.firsts[-1])

    def group_of(self, number: int) -> int:
        """Return the group of a record."""
        return int(self.firsts.searchsorted(number, "right")) - 1

    def span(self, first: int, stop: int) -> tuple[int, int]:
        return int(self.offsets[self.group_of(first)]), int(self.offsets[self.group_of(stop - 1) + 1])

    def run_end(self, first: int, stop: int, run_bytes: int) -> int:
        group = self.group_of(first)
        fitting = int(np.searchsorted(self.offsets, self.offsets[group] + run_bytes, "right")) - 1
        return min(stop, int(self.firsts[max(fitting, group + 1)]))

    def line_numbers(self, records: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        groups = np.searchsorted(self.firsts, records, "right") - 1
        numbers: npt.NDArray[np.int64] = self.first_lines[groups] + records - self.firsts[groups]
        have_blank = np.flatnonzero(
            self.first_lines[groups + 1] - self.first_lines[groups] != self.firsts[groups + 1] - self.firsts[groups]
        )
        if len(have_blank):
            with contextlib.closing(self.open_records()) as file:
                for place in have_blank.tolist():
                    numbers[place] = file.line_number(int(records[place]))
        return numbers

    def open_records(self) -> LinesAt:
        return LinesAt(self)


class RowLineIndex(LineIndex):
    """Index of the lines of a file that are not blank. Both share the saved index of the file."""

    skips_blank: ClassVar[bool] = True


class LinesAt(RecordsAt[bytes]):
    """Random-access reader of the lines of one open file, without line ends. Thread-safe.

    The number of lines is compared with the index wherever they are read, so no other line is returned if the file was
    modified.
    """

    _index: LineIndex

    def record(self, number: int) -> bytes:
        index = self._index
        group = index.group_of(number)
        first, stop = index.first_lines[group : group + 2].tolist()
        if stop - first != index.firsts[group + 1] - index.firsts[group]:
            return super().record(number)
        begin, end = int(index.offsets[group]), int(index.offsets[group + 1])
        block = self._read_unchanged(begin, end, number)
        # The lines are not all sliced: the time is the same if there are thousands of short ones.
        ends = _line_ends(block).nonzero()[0]
        if len(ends) != stop - first:
            raise self._modified(number)
        place = number - int(index.firsts[group])
        start = int(ends[place - 1]) + 1 if place else 0
        line = block[start : int(ends[place]) + 1].removesuffix(b"\n")
        if b"\r" in line:
            line = line.replace(b"\r", b"")
        return line.removeprefix(codecs.BOM_UTF8) if index.skips_blank and not begin + start else line

    def records(self, first: int, stop: int) -> tuple[list[bytes], DataLossError | None]:
        index = self._index
        group = index.group_of(first)
        start = int(index.firsts[group])
        _, lines = self._records_of(group, index.group_of(stop - 1) + 1)
        return lines[first - start : stop - start], None

    def line_number(self, record: int) -> int:
        """Return the number of the line that is this record."""
        group = self._index.group_of(record)
        places, _ = self._records_of(group, group + 1)
        return int(self._index.first_lines[group]) + places[record - int(self._index.firsts[group])]

    def _records_of(self, group: int, stop: int) -> tuple[Sequence[int], list[bytes]]:
        """Return which of the lines of some groups are records, and these."""
        index = self._index
        base, end = int(index.offsets[group]), int(index.offsets[stop])
        record = int(index.firsts[group])
        block = self._read_unchanged(base, end, record)
        lines = block.replace(b"\r", b"").split(b"\n")
        if not lines[-1]:
            lines.pop()
        if len(lines) != index.first_lines[stop] - index.first_lines[group]:
            raise self._modified(record)
        if not index.skips_blank:
            return range(len(lines)), lines
        if not base:
            lines[0] = lines[0].removeprefix(codecs.BOM_UTF8)
        places = [place for place, line in enumerate(lines) if not _is_blank(line)]
        if len(places) != index.firsts[stop] - record:
            raise self._modified(record)
        return places, [lines[place] for place in places]


def _sums(column: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    sums = np.zeros(len(column) + 1, np.int64)
    np.cumsum(column, out=sums[1:])
    return sums


def _is_blank(line: bytes) -> bool:
    return not line.strip(b" \t\r")


def _line_ends(content: bytes) -> npt.NDArray[np.bool_]:
    r"""Return which bytes are the last of a line: every ``\n``, and the last byte, unless only ``\r`` precede it."""
    is_end: npt.NDArray[np.bool_] = np.frombuffer(content, np.uint8) == _FEED
    if not content.endswith(b"\n") and content[content.rfind(b"\n") + 1 :].strip(b"\r"):
        is_end[-1] = True
    return is_end


def _groups(content: bytes, *, is_first: bool) -> Iterator[tuple[int, int, int]]:
    """Yield the size, the number of lines, and that of lines that are not blank, of the groups of whole lines.

    Args:
        content: whole lines.
        is_first: whether the first of them is that of the file.
    """
    is_line_end = _line_ends(content)
    is_row_end = _row_ends(content, is_line_end, is_first=is_first)
    start = 0
    while start < len(content):
        stop = content.rfind(b"\n", start, start + PEEK_BYTES) + 1
        stop = stop or content.find(b"\n", start + PEEK_BYTES) + 1 or len(content)
        lines = int(np.count_nonzero(is_line_end[start:stop]))
        rows = lines if is_row_end is is_line_end else int(np.count_nonzero(is_row_end[start:stop]))
        yield stop - start, lines, rows
        start = stop


def _row_ends(content: bytes, is_line_end: npt.NDArray[np.bool_], *, is_first: bool) -> npt.NDArray[np.bool_]:
    """Return which bytes are the last of a line that is not blank. The same array if no line is blank."""
    values = np.frombuffer(content, np.uint8)
    may_begin_blank = values[1:] <= _SPACE
    may_begin_blank &= is_line_end[:-1]
    may_begin_first = is_first or values[0] <= _SPACE
    if not may_begin_first and not may_begin_blank.any():
        return is_line_end
    found = is_line_end.copy()
    ends = np.flatnonzero(is_line_end)
    starts = np.concatenate([[0], ends[:-1] + 1])[: len(ends)]
    is_first_line = starts == 0
    # A blank line begins and ends with a blank.
    before = values[np.maximum(ends - 1, starts)]
    may_be_blank = (values[starts] <= _SPACE) & (before <= _SPACE) | (is_first_line & is_first)
    for start, end in zip(starts[may_be_blank].tolist(), ends[may_be_blank].tolist(), strict=True):
        line = content[start : end + 1].removesuffix(b"\n")
        if is_first and not start:
            line = line.replace(b"\r", b"").removeprefix(codecs.BOM_UTF8)
        if _is_blank(line):
            found[end] = False
    return found
