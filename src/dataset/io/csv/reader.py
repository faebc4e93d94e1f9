"""Sequential reader of one CSV file.

This module owns the open file and the position in it. A row that can't be read raises a ``ParseError`` in its place.
rows.py splits rows and converts fields, and io/files/compression.py decompresses. This module does not depend on
datasets.

For speed, the reader reads a block of the file at a time and converts many of the rows in it to columns, which it
returns as slices. The rest of the block, an incomplete row, is prepended to the next block.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable

import numpy as np

from dataset.errors import DataLossError, ParseError
from dataset.io.csv.fields import RowError
from dataset.io.csv.layout import Array, CsvLayout
from dataset.io.csv.row_parser import NEVER_CLOSED, scan_row
from dataset.io.csv.rows import CsvRows, read_rows
from dataset.io.files.compression import DamagedStreamError, InputStream, guess_compression
from dataset.io.files.stream_file import StreamFile
from dataset.redaction import redacted

__all__ = ["CsvFile"]

BLOCK_BYTES = 1 << 18
ROW_BYTES_MAX = 1 << 26  # so that an unclosed quotation mark does not read a whole file into memory
_PIECE_BYTES = 1 << 15
_NO_ROWS = np.empty(0)


class CsvFile(StreamFile):
    r"""Sequential reader of one CSV file, which returns rows as columns.

    The first read opens the file. A row that can't be read raises ``ParseError`` in its place, and the next read
    continues after it. A byte order mark at the beginning of the file is skipped.

    Args:
        path: the file.
        layout: the layout of the file.
        compression_type: ``None`` or ``""``, ``"GZIP"``, ``"ZLIB"`` or ``"ZSTD"``.
        buffer_size: bytes to read at once, by default 256 KiB. Memory use is a few times this or the longest row.
        header: whether the first row is a header, which is not returned.

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
    ) -> None:
        super().__init__(path, compression_type)
        self.layout = layout
        self.header = header
        self._block_bytes = max(BLOCK_BYTES if buffer_size is None else buffer_size, 1)
        self._failure: Exception | None  # raised after the rows that were read
        self._at_end: bool  # whether the whole file has been read
        self._ended: bool  # whether the rows that were read are the last
        self._go_to(0, 0)

    def columns(self, n: int) -> list[Array] | None:
        """Return the columns of the next rows.

        Args:
            n: the maximum number of rows.

        Returns:
            One array for each column, of 1 to ``n`` values; ``None`` at the end, and on every later call.

        Raises:
            ParseError: the next row can't be read. Raised once; the next call continues after it.
            DataLossError: the compressed stream is truncated or corrupt here. Raised once; the end follows.
            OSError: the file is missing, or can't be read.
            ClosedError: the file was closed.
        """
        self._check_open()
        while True:
            if self._problems and self._problems[0].row == self._row:
                self._row += 1
                raise self._error_of(self._problems.pop(0))
            if self._given < len(self._rows.columns[0]):
                return self._give(n)
            if self._failure is not None:
                failure, self._failure = self._failure, None
                raise failure
            if self._ended:
                return None
            self._read(self._read_rows)

    def tell(self) -> tuple[int, int]:
        """Return where the next row begins: its offset in the uncompressed stream and the number of lines before it."""
        start = int(self._rows.starts[self._row])
        is_added = self._is_completed and start == len(self._block)
        return self._base + start - is_added, self._line_at(start)

    def seek(self, offset: int, line: int) -> None:
        """Continue at a position that ``tell`` returned. A compressed file is read and discarded up to there."""
        if offset < 0 or line < 0:
            raise ValueError(f"CsvFile.seek(): a position can't be negative, got {(offset, line)}")
        self._check_open()
        self._release()
        self._go_to(offset, line)

    def header_names(self) -> list[bytes]:
        """Return the fields of the first row. The file must be at its beginning and have a header.

        Raises:
            ParseError: the header can't be read.
            DataLossError: the file is damaged in the header.
            OSError: the file is missing, or can't be read.
        """
        self._check_open()
        self._read(self._begin)
        if self._failure is not None:
            raise self._failure
        return self._names

    def close(self) -> None:
        """Release the file and the memory, and keep the position. Closing twice is allowed."""
        self._release()
        self._go_to(*self.tell())
        self._closed = True

    def _go_to(self, offset: int, line: int) -> None:
        """Set the position and discard all other state. The stream must be closed."""
        self._block = b""  # bytes of the file
        self._base = offset  # where in the file the block begins
        self._is_completed = False  # whether the block ends in a line end that the file lacks
        self._counted, self._line = 0, line  # a position in the block, and the number of lines before it
        self._failure = None
        self._at_end = self._ended = False
        self._damage = ""  # the error of the stream at its end
        self._names: list[bytes] = []  # the fields of the header, if it was read
        self._move(0)

    def _move(self, position: int) -> None:
        """Continue at a position in the block."""
        self._take(CsvRows([position], [_NO_ROWS], []))

    def _take(self, rows: CsvRows) -> None:
        """Return these rows next, and continue after them."""
        self._rows = rows
        self._problems = rows.problems  # except those already raised
        self._row = 0  # the next row, including bad rows
        self._given = 0  # the number of good rows that were returned

    def _give(self, n: int) -> list[Array]:
        """Return up to ``n`` rows, stopping before the next bad row."""
        stop = min(self._given + n, len(self._rows.columns[0]))
        if self._problems:
            stop = min(stop, self._given + self._problems[0].row - self._row)
        columns = [values[self._given : stop] for values in self._rows.columns]
        self._row += stop - self._given
        self._given = stop
        return columns

    # Reading

    def _read(self, step: Callable[[], None]) -> None:
        """Run ``step``. If it fails, drop the stream, whose position is unknown; the next step reopens the file."""
        try:
            step()
        except BaseException:
            self._release()
            self._go_to(*self.tell())
            raise

    def _read_rows(self) -> None:
        """Read until at least one row is complete, and convert complete rows to columns."""
        if self.tell()[0] == 0:
            self._begin()
            if self._failure is not None or self._ended:
                return
        is_read = 1 < len(self._rows.starts) <= self.layout.rows_max  # no other row of the block is complete
        while is_read or len((rows := read_rows(self._block, int(self._rows.starts[-1]), self.layout)).starts) == 1:
            is_read = False
            if not self._read_more():
                self._fail()
                return
        self._take(rows)

    def _begin(self) -> None:
        """Skip the byte order mark and the header. An error in the header is raised in its place."""
        while len(self._block) < len(codecs.BOM_UTF8) and self._read_more():
            pass
        mark = self._mark()
        if not self.header:
            self._move(mark)
            return
        while (row := scan_row(self._block, mark, self.layout)).end < 0:
            if not self._read_more():
                self._fail()
                return
        self._names = row.fields
        if row.words:
            self._failure = self._error(1, f"column {row.field}", f"the header can't be read: {row.words}")
        self._move(row.end)

    def _mark(self) -> int:
        """Return the size of the byte order mark at the beginning of the block."""
        return len(codecs.BOM_UTF8) if self._base == 0 and self._block.startswith(codecs.BOM_UTF8) else 0

    def _read_more(self) -> bool:
        """Append more of the file to the rest of the block. Return False at its end, or if the rest is too long.

        At the end of the file, the last row gets a line end.
        """
        start = int(self._rows.starts[-1])
        rest = self._block[start:]
        if self._at_end or len(rest) > max(ROW_BYTES_MAX, self._block_bytes):
            return False
        line = self._line_at(start)
        try:
            piece = self._opened().read(max(self._block_bytes, len(rest)))
        except DamagedStreamError as damage:
            self._damage, self._at_end = str(damage), True
            return True
        if not piece:
            self._at_end = True
            self._release()
            self._is_completed = rest != b"" and not rest.endswith(b"\n")
            piece = b"\n" if self._is_completed else b""
        self._block, self._base = rest + piece, self._base + start
        self._counted, self._line = 0, line
        self._move(0)
        return True

    def _opened(self) -> InputStream:
        """Return the stream at the end of the block, opening it if necessary."""
        if self._stream is None:
            self._stream = self._open()
            if self._base + len(self._block):  # a pipe can be read as long as it is not asked to seek
                self._stream.seek(self._base + len(self._block))
        return self._stream

    # Errors

    def _fail(self) -> None:
        """Give up the file: the rest of the block has no complete row, and is the rest of the file or too long."""
        start = int(self._rows.starts[-1])
        size = len(self._block) - start
        self._ended = True
        self._release()
        if self._damage:
            self._failure = self._lost(self._damage)
        elif not size and self._base + start == 0 and self.header:
            self._failure = ParseError(
                f"{redacted(self.path)}: the file is empty; header=True requires a first row with column names"
            )
        elif size and self._at_end:
            start = max(start, self._mark())
            row = scan_row(self._block, start, self.layout)
            line = self._line_at(start) + _line_ends(self._block, start, row.place) + 1
            self._failure = self._error(line, self._column_of(None, row.field), NEVER_CLOSED)
        elif size:
            self._failure = self._lost(
                f"no row ends within {size >> 20} MiB; check for an unclosed quotation mark, or pass a larger "
                "buffer_size"
            )
        self._move(len(self._block))

    def _lost(self, words: str) -> DataLossError:
        offset, line = self.tell()
        return DataLossError(f"line {line + 1}: {words}", path=self.path, offset=offset, record=line)

    def _line_at(self, position: int) -> int:
        """Return the number of lines before a position in the block, which is not before that of the last call."""
        self._line += _line_ends(self._block, self._counted, position)
        self._counted = position
        return self._line

    def _error_of(self, problem: RowError) -> ParseError:
        line = self._line_at(int(self._rows.starts[problem.row])) + 1
        guess = guess_compression(self._block) if line == 1 else ""
        hint = f'; the file starts like a {guess} stream: pass compression_type="{guess}"' if guess else ""
        return self._error(line, self._column_of(problem.column, problem.field), problem.words + hint)

    def _column_of(self, column: int | None, field: int | None) -> str:
        if column is None and field in self.layout.indices:
            column = self.layout.indices.index(field)
        if column is not None:
            return self.layout.column_name(column)
        return "" if field is None else f"column {field}"

    def _error(self, line: int, column: str, words: str) -> ParseError:
        place = f", {column}" if column else ""
        return ParseError(f"{redacted(self.path)}, line {line}{place}: {words}")


def _line_ends(text: bytes, start: int, stop: int) -> int:
    """Return the number of lines that end from ``start`` to ``stop``. Large arrays would cost a page fault per page."""
    octets = np.frombuffer(text, np.uint8) if text else _NO_ROWS
    pieces = [octets[at : min(at + _PIECE_BYTES, stop)] for at in range(start, stop, _PIECE_BYTES)]
    count = sum(int(np.count_nonzero(piece == ord("\n"))) for piece in pieces)
    if text.find(b"\r", start, stop) < 0:
        return count
    return count + text.count(b"\r", start, stop) - text.count(b"\r\n", start, stop)
