"""Reader of one JSON Lines file, which returns rows as columns.

Lines are parsed and converted many at a time. A line that is not valid, or does not match the columns, is an error in
its place: the rows before it are returned first, and the next read continues after it. Blank lines are skipped, and so
is a byte order mark at the beginning of the file.
"""

from __future__ import annotations

import codecs
import os
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dataset.amounts import STEP_ELEMENTS
from dataset.errors import ParseError
from dataset.io.files.content_hint import content_hint
from dataset.io.json_lines.columns import Column, JsonColumns, JsonValueError
from dataset.io.json_lines.parser import line_parser, parse_line, syntax_error
from dataset.io.text.lines import TextLineFile
from dataset.redaction import redacted


@dataclass
class _ConvertedRows:
    """Consecutive rows, converted to columns.

    Attributes:
        places: the index of the line of each row among the lines in memory.
        columns: one column per component.
        given: how many rows were returned.
    """

    places: Sequence[int]
    columns: list[Column]
    given: int = 0


class JsonLinesFile(TextLineFile):
    """Sequential reader of the rows of one file. Positions are those of lines, as in ``TextLineFile``.

    Args:
        path: the file.
        columns: the columns to return; None to return parsed lines, as one column of Python values.
        compression_type: as in ``BlockFile``.
        buffer_size: as in ``BlockFile``.
    """

    def __init__(
        self,
        path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
        columns: JsonColumns | None,
        compression_type: str | None = None,
        buffer_size: int | None = None,
    ) -> None:
        self._layout = columns
        super().__init__(path, compression_type, buffer_size)

    def _forget(self) -> None:
        super()._forget()
        # Rows that were converted, or the place and words of an error.
        self._runs: deque[_ConvertedRows | tuple[int, str]] = deque()

    def columns(self, n: int) -> list[Any] | None:
        """Return the next 1 to ``n`` rows, one column per component; None at the end, and on every later call.

        Raises:
            ParseError: the next line is not a JSON object, or does not match the columns. Raised once; the next call
                continues after it.
            DataLossError, OSError, ClosedError: as in ``BlockFile.columns``.
        """
        while not self._runs:
            if self._next == len(self._ready) and not self._refill():
                return None
            self._parse()
        run = self._runs[0]
        if isinstance(run, tuple):
            self._runs.popleft()
            place, words = run
            self._next = place + 1
            raise ParseError(words)
        start, stop = run.given, min(run.given + n, len(run.places))
        run.given = stop
        self._next = run.places[stop - 1] + 1
        self.last = self._first, run.places[start:stop]  # of these rows: the first line of the block, and lines in it
        if stop == len(run.places):
            self._runs.popleft()
        return [column[start:stop] for column in run.columns]

    def _parse(self) -> None:
        """Convert the next lines of the block."""
        start = self._next
        lines = self._ready[start : start + STEP_ELEMENTS]
        if self._first + start == 0:
            lines[0] = lines[0].removeprefix(codecs.BOM_UTF8)
        places: Sequence[int] = range(start, start + len(lines))
        if not all(lines) or any(line.isspace() for line in lines):
            kept = [(place, line) for place, line in zip(places, lines, strict=True) if line.strip(b" \t\r")]
            places, lines = [place for place, _ in kept], [line for _, line in kept]
        if lines:
            self._add(places, lines)
        else:
            self._next = min(start + STEP_ELEMENTS, len(self._ready))

    def _add(self, places: Sequence[int], lines: list[bytes]) -> None:
        """Convert lines; if any is invalid, find out which by converting halves."""
        try:
            columns = converted(self._layout, lines)
        except ROW_ERRORS as error:
            if len(lines) == 1:
                words = row_words(self.path, self._first + places[0], lines[0], error)
                self._runs.append((places[0], words))
                return
            middle = len(lines) // 2
            self._add(places[:middle], lines[:middle])
            self._add(places[middle:], lines[middle:])
            return
        self._runs.append(_ConvertedRows(places, columns))


ROW_ERRORS = (ValueError, RecursionError, JsonValueError)
"""What ``converted`` raises if a line is invalid."""


def converted(layout: JsonColumns | None, lines: list[bytes]) -> list[Column]:
    """Return the columns of lines; without a layout, the parsed lines as one column. Raises one of ROW_ERRORS."""
    if layout is None:
        return [_objects(map(parse_line, lines))]
    try:
        columns = layout.convert(_objects(map(line_parser(), lines)))
        if not layout.may_be_rounded(columns):
            return columns
    except JsonValueError:
        if len(lines) > 1:
            raise
    return layout.convert(_objects(map(parse_line, lines)))


def row_words(path: str, number: int, line: bytes, error: Exception) -> str:
    """Return the message of an error in line ``number`` of a file, counted from 0."""
    words = str(error) if isinstance(error, JsonValueError) else syntax_error(line, error)
    return f"{redacted(path)}, line {number + 1}, {words}{'' if number else content_hint(line)}"


def _objects(parsed: Iterable[Any]) -> list[Any]:
    rows = list(parsed)
    if others := set(map(type, rows)) - {dict}:
        names = ", ".join(sorted(kind.__name__ for kind in others))
        raise JsonValueError(f"column 1: the line must hold an object, got {names}")
    return rows
