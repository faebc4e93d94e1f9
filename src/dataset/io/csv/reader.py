"""Sequential reader of one CSV file.

A row that can't be read raises a ``ParseError`` in its place. block_file.py owns the open file, rows.py splits rows and
converts fields. This module does not depend on datasets.

For speed, the reader reads a block of the file at a time and converts many of the rows in it to columns, which it
returns as slices. The rest of the block, an incomplete row, is prepended to the next block.
"""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Sequence

import numpy as np

from dataset.errors import ParseError
from dataset.io.csv.layout import Array, CsvLayout
from dataset.io.csv.row_parser import RowError, scan_row
from dataset.io.csv.rows import CsvRows, read_rows
from dataset.io.files.block_file import BlockFile
from dataset.io.files.compression import DamagedStreamError, InputStream
from dataset.io.files.content_hint import content_hint
from dataset.redaction import redacted

ROW_BYTES_MAX = 1 << 26  # so that an unclosed quotation mark does not read a whole file into memory
_EMPTY = RowError("the file is empty; header=True requires a first row with column names")


class CsvFile(BlockFile):
    r"""Sequential reader of one CSV file, which returns rows as columns. Positions hold the number of lines before.

    The first read opens the file. A row that can't be read raises ``ParseError`` in its place, and the next read
    continues after it. A byte order mark at the beginning of the file is skipped.

    Args:
        path: the file.
        layout: the layout of the file.
        compression_type: as in ``BlockFile``.
        buffer_size: as in ``BlockFile``. Memory use is a few times this or the longest row.
        header: whether the first row is a header, which is not returned.
        order: the indices of the columns of the layout in the order of the result. Default: all, in their order.

    >>> import tempfile
    >>> from dataset.io.csv.layout import layout_of
    >>> with tempfile.NamedTemporaryFile(suffix=".csv") as target:
    ...     _ = target.write(b"id,name\n1,one\n2,two\n")
    ...     target.flush()
    ...     file = CsvFile(target.name, layout_of("example", [int, bytes]), header=True)
    ...     file.columns(10), file.columns(10)
    ([array([1, 2]), array([b'one', b'two'], dtype=object)], None)
    """

    def __init__(
        self,
        path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
        layout: CsvLayout,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        header: bool = False,
        order: Sequence[int] | None = None,
    ) -> None:
        self.layout, self.header = layout, header
        self.order = range(len(layout.columns)) if order is None else order
        super().__init__(path, compression_type, buffer_size)

    def columns(self, n: int) -> list[Array] | None:
        """Return the columns of the next rows.

        Args:
            n: the maximum number of rows.

        Returns:
            One array for each column, of 1 to ``n`` values; ``None`` at the end, and on every later call.

        Raises:
            ParseError: the next row can't be read. Raised once; the next call continues after it.
            DataLossError, OSError, ClosedError: as in ``BlockFile.columns``.
        """
        if self._next == len(self._ready) and not self._refill():
            return None
        errors, first = self._rows.errors, self._next
        stop = next(iter(errors), len(self._ready))
        if first == stop:
            self._next += 1
            raise self._error(errors.pop(first), int(self._rows.starts[first]))
        self._next = min(first + n, stop)
        return [self._rows.columns[index][first : self._next] for index in self.order]

    def header_names(self) -> list[bytes]:
        """Return the fields of the first row. The file must be at its beginning and have a header.

        Raises:
            ParseError: the header can't be read.
            DataLossError, OSError, ClosedError: as in ``BlockFile.columns``.
        """
        self._refill()
        if not self._names:
            self.columns(1)  # raises the error of the header
        return self._names or []

    def _forget(self) -> None:
        self._names: list[bytes] | None = None if self.header and not self._offset else []  # None before the header
        self._block, self._base = b"", self._offset  # bytes of the file, and where they begin in it
        self._size = sys.maxsize  # of the file, if known
        self._counted = 0  # a position in the block; _first is the number of lines before it
        self._rows = CsvRows([0], [], {})  # of the block
        self._is_searched = True  # whether no other row of the block is complete

    def _offset_of(self, index: int) -> int:
        return self._offset if index == len(self._ready) else self._base + int(self._rows.starts[index])

    def _number_of(self, index: int) -> int:
        return self._line_at(int(self._rows.starts[index]))

    def _described(self, damage: str) -> str:
        return f"line {self._first + 1}: {damage}"

    def _read_elements(self, stream: InputStream) -> Sequence[int]:
        if self._is_searched:
            self._read_more(stream)
        self._rows = self._next_rows(int(self._rows.starts[-1]))
        self._offset = min(self._base + int(self._rows.starts[-1]), self._size)
        return range(len(self._rows.starts) - 1)

    def _next_rows(self, start: int) -> CsvRows:
        """Return complete rows of the block, from ``start`` on and after the header."""
        self._is_searched = False
        if self._names is None:
            fields, end = scan_row(self._block, start, self.layout)
            if not isinstance(fields, RowError):
                self._names, start = fields, end
            elif end >= 0 or (self._ended and not self._block):
                self._names = []
                problem = RowError(f"the header can't be read: {fields.words}", fields.field) if self._block else _EMPTY
                return CsvRows([start, max(start, end)], [], {0: problem})
        rows = read_rows(self._block, start, self.layout) if start < len(self._block) else CsvRows([start], [], {})
        self._is_searched = len(rows.starts) <= self.layout.rows_max
        if self._ended and len(rows.starts) == 1 and start < len(self._block):  # a quotation mark is not closed
            error, _ = scan_row(self._block, start, self.layout)
            assert isinstance(error, RowError)
            return CsvRows([start, len(self._block)], [], {0: error})
        return rows

    def _read_more(self, stream: InputStream) -> None:
        """Append more of the file to the rest of the block, in which no row is complete.

        At the end of the file, the last row gets a line end.
        """
        start = int(self._rows.starts[-1])
        self._line_at(start)
        rest = self._block[start:]
        self._block, self._base = rest, self._base + start
        self._rows, self._counted = CsvRows([0], [], {}), 0
        if len(rest) > max(ROW_BYTES_MAX, self._block_bytes):
            raise DamagedStreamError(
                f"no row ends within {len(rest) >> 20} MiB; close the quotation mark, or raise buffer_size"
            )
        piece = stream.read(max(self._block_bytes, len(rest)))
        if not piece:
            self._end()
            self._size = self._base + len(rest)
            piece = b"\n" if rest else b""
        self._block += piece
        if not self._base and self._block.startswith(codecs.BOM_UTF8):
            self._base = len(codecs.BOM_UTF8)
            self._block = self._block[self._base :]

    def _line_at(self, position: int) -> int:
        """Return the number of lines before a position in the block, which is not before that of the last call."""
        text = np.frombuffer(self._block, np.uint8)[self._counted : position]
        feeds = text == ord("\n")
        count = np.count_nonzero(feeds)
        if self._block.find(b"\r", self._counted, position) >= 0:
            returns = text == ord("\r")
            count += np.count_nonzero(returns) - np.count_nonzero(returns[:-1] & feeds[1:])
        self._first, self._counted = self._first + int(count), position
        return self._first

    def _error(self, error: RowError, start: int) -> ParseError:
        """Return the public error for that of the row that begins at ``start``."""
        line, hint = self._line_at(max(start, error.place)) + 1, ""
        if line == 1:
            names = "" if self.header else "; if this line holds the names of the columns, pass header=True"
            hint = content_hint(self._block) or names
        column = self.layout.place(error.field)
        return ParseError(f"{redacted(self.path)}, line {line}{column}: {error.words}{hint}")
