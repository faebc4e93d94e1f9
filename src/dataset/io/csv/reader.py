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
from collections.abc import Sequence

import numpy as np

from dataset.errors import DataLossError, ParseError
from dataset.io.csv.fields import RowError
from dataset.io.csv.layout import Array, CsvLayout
from dataset.io.csv.row_parser import NEVER_CLOSED, scan_row
from dataset.io.csv.rows import CsvRows, read_rows
from dataset.io.files.compression import DamagedStreamError, guess_compression
from dataset.io.files.stream_file import StreamFile
from dataset.redaction import redacted

BLOCK_BYTES = 1 << 18
ROW_BYTES_MAX = 1 << 26  # so that an unclosed quotation mark does not read a whole file into memory
_PIECE_BYTES = 1 << 15  # comparing larger arrays would cost a page fault per page


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
        super().__init__(path, compression_type)
        self.layout = layout
        self.header = header
        self.order = range(len(layout.columns)) if order is None else order
        self._block_bytes = max(BLOCK_BYTES if buffer_size is None else buffer_size, 1)
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
        while self._row == len(self._rows.starts) - 1:
            if self._ended:
                return None
            self._read_rows()
        bad = self._problems[0].row if self._problems else len(self._rows.starts) - 1
        if bad == self._row and self._problems:
            self._row += 1
            raise self._error_of(self._problems.pop(0))
        first, count = self._given, min(n, bad - self._row)
        self._given += count
        self._row += count
        return [self._rows.columns[index][first : first + count] for index in self.order]

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
        return self._begin()

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
        self._at_end = False  # whether the whole file has been read
        self._ended = False  # whether the rows that were read are the last
        self._move(0)

    def _move(self, position: int) -> None:
        """Continue at a position in the block."""
        self._take(CsvRows([position], [], []))

    def _take(self, rows: CsvRows) -> None:
        """Return these rows next, and continue after them."""
        self._rows = rows
        self._problems = rows.problems  # except those already raised
        self._row = 0  # the next row, including bad rows
        self._given = 0  # the number of good rows that were returned

    # Reading

    def _mark(self) -> int:
        """Return the size of the byte order mark at the beginning of the block."""
        return len(codecs.BOM_UTF8) if self._base == 0 and self._block.startswith(codecs.BOM_UTF8) else 0

    def _read_rows(self) -> None:
        """Read until at least one row is complete, and convert complete rows to columns."""
        if self.tell()[0] == 0:
            self._begin()
        elif 1 < len(self._rows.starts) <= self.layout.rows_max:  # no other row of the block is complete
            self._read_more()
        while not self._ended:
            rows = read_rows(self._block, int(self._rows.starts[-1]), self.layout)
            if len(rows.starts) > 1:
                return self._take(rows)
            self._read_more()
        return None

    def _begin(self) -> list[bytes]:
        """Skip the byte order mark and the header, and return the names in it."""
        while len(self._block) < len(codecs.BOM_UTF8) and not self._at_end:
            self._read_more()
        mark = self._mark()
        if not self.header:
            self._move(mark)
            return []
        while (row := scan_row(self._block, mark, self.layout)).end < 0:
            self._read_more()
            if self._ended:
                raise ParseError(
                    f"{redacted(self.path)}: the file is empty; header=True requires a first row with column names"
                )
        self._move(row.end)
        if row.words:
            raise self._error(1, f"column {row.field}", f"the header can't be read: {row.words}")
        return row.fields

    def _read_more(self) -> None:
        """Append more of the file to the rest of the block, in which no row is complete.

        At the end of the file, the last row gets a line end. If there is nothing more to read, the file is given up.
        """
        start = int(self._rows.starts[-1])
        rest = self._block[start:]
        if self._at_end or len(rest) > max(ROW_BYTES_MAX, self._block_bytes):
            return self._give_up(self._failure(start) if rest else None)
        line = self._line_at(start)
        try:
            if self._stream is None:
                self._stream = self._open()
                if self._base + len(self._block):  # a pipe can be read as long as it is not asked to seek
                    self._stream.seek(self._base + len(self._block))
            piece = self._stream.read(max(self._block_bytes, len(rest)))
        except DamagedStreamError as damage:
            return self._give_up(self._lost(str(damage)))
        except BaseException:  # the position of the stream is unknown: the next call opens the file again
            self._release()
            self._go_to(*self.tell())
            raise
        if not piece:
            self._at_end = True
            self._release()
            self._is_completed = rest != b"" and not rest.endswith(b"\n")
            piece = b"\n" if self._is_completed else b""
        self._block, self._base = rest + piece, self._base + start
        self._counted, self._line = 0, line
        return self._move(0)

    # Errors

    def _give_up(self, failure: Exception | None) -> None:
        """End reading with an error, or without one if nothing is left."""
        self._ended = True
        self._release()
        self._move(len(self._block))
        if failure is not None:
            raise failure from None

    def _failure(self, start: int) -> Exception:
        """Return the error of a row without an end, which is the rest of the file or too long."""
        if not self._at_end:
            return self._lost(
                f"no row ends within {len(self._block) - start >> 20} MiB; check for an unclosed quotation mark, or "
                "pass a larger buffer_size"
            )
        start = max(start, self._mark())
        row = scan_row(self._block, start, self.layout)
        line = self._line_at(start) + _line_ends(self._block, start, row.place) + 1
        return self._error(line, self._column_of(None, row.field), NEVER_CLOSED)

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
        if line == 1 and not self.header and not guess:
            hint = "; if this line holds the names of the columns, pass header=True"
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
    """Return the number of lines that end from ``start`` to ``stop``."""
    count = 0
    if text.find(b"\r", start, stop) >= 0:
        count = text.count(b"\r", start, stop) - text.count(b"\r\n", start, stop)
    for at in range(start, stop, _PIECE_BYTES):
        piece = np.frombuffer(text, np.uint8, min(_PIECE_BYTES, stop - at), at)
        count += int(np.count_nonzero(piece == ord("\n")))
    return count
