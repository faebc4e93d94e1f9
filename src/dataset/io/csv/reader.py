"""Sequential reader of one CSV file.

This module owns the open file and the position in it. A row that can't be read raises a ``ParseError`` in its place.
cut.py and row_parser.py split rows, convert.py converts fields, and io/files/compression.py decompresses. This module
does not depend on datasets.

For speed, the reader reads a block of the file at a time and converts all rows that end in it to columns, which it
returns as slices. The rest of the block, an incomplete row, is prepended to the next block.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable

from dataset.errors import DataLossError, ParseError
from dataset.io.csv.convert import Array, convert_rows
from dataset.io.csv.cut import PADDING, CsvProblem, CsvRows, cut_rows
from dataset.io.csv.layout import CsvLayout
from dataset.io.csv.row_parser import NEVER_CLOSED, scan_row
from dataset.io.files.compression import DamagedStreamError, InputStream, guess_compression
from dataset.io.files.stream_file import StreamFile
from dataset.redaction import redacted

__all__ = ["CsvFile", "read_header"]

BLOCK_BYTES = 1 << 18
ROW_BYTES_MAX = 1 << 26  # so that an unclosed quotation mark does not read a whole file into memory

_PAD = len(PADDING)


class CsvFile(StreamFile):
    r"""Sequential reader of one CSV file, which returns rows as columns.

    The first read opens the file. A row that can't be read raises ``ParseError`` in its place, and the next read
    continues after it. A byte order mark at the beginning of the file is skipped.

    Args:
        path: the file.
        layout: the layout of the file.
        compression_type: ``None`` or ``""``, ``"GZIP"`` or ``"ZLIB"``.
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
        self._failure: Exception | None  # raised after the rows of the block
        self._at_end: bool  # whether the whole file has been read
        self._ended: bool  # whether the rows of the block are the last
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
            if self._given < self._count:
                return self._give(n)
            if self._failure is not None:
                failure, self._failure = self._failure, None
                raise failure
            if self._ended:
                return None
            self._read(self._read_block)

    def tell(self) -> tuple[int, int]:
        """Return where the next row begins: its offset in the uncompressed stream and the number of lines before it."""
        if self._rows is None or self._row >= len(self._rows):
            return self._offset, self._line
        start = int(self._rows.starts[self._row])
        return self._base + start - _PAD, self._line_at(start)

    def seek(self, offset: int, line: int) -> None:
        """Continue at a position that ``tell`` returned. A compressed file is read and discarded up to there."""
        if offset < 0 or line < 0:
            raise ValueError(f"CsvFile.seek(): a position can't be negative, got {(offset, line)}")
        self._check_open()
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
        self._go_to(*self.tell())
        self._closed = True
        self._release()

    def _go_to(self, offset: int, line: int) -> None:
        """Set the position and discard all other state. The stream stays open; the next read seeks."""
        self._forget_rows()
        self._offset, self._line = offset, line  # of the first byte after the rows of the block
        self._rest = b""  # bytes read after that offset
        self._held = b""  # a carriage return read after those: a line feed may follow
        self._added = 0  # bytes at the end that are not in the file: the added line end of the last row
        self._failure = None
        self._at_end = self._ended = False
        self._damage = ""  # the error of the stream at its end
        self._moved = True
        self._names: list[bytes] = []  # the fields of the header, if it was read

    def _forget_rows(self) -> None:
        self._rows: CsvRows | None = None  # of the last block
        self._block = b""  # the last block, with its padding
        self._base, self._base_line = 0, 0  # where in the file it begins
        self._columns: list[Array] = []  # of its valid rows
        self._problems: list[CsvProblem] = []  # of its other rows, except those already raised
        self._row = 0  # the next row, including bad rows
        self._given = self._count = 0  # the number of valid rows: already returned, and in total

    def _give(self, n: int) -> list[Array]:
        """Return up to ``n`` rows, stopping before the next bad row."""
        stop = min(self._given + n, self._count)
        if self._problems:
            stop = min(stop, self._given + self._problems[0].row - self._row)
        columns = [values[self._given : stop] for values in self._columns]
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
            self._go_to(self._offset, self._line)
            raise

    def _read_block(self) -> None:
        """Read until at least one row is complete, and convert all complete rows to columns."""
        self._forget_rows()
        if self._offset == 0:
            self._begin()
            if self._failure is not None or self._ended:
                return
            text = self._rest
        else:
            text = self._with_more(self._rest)
        while not len(rows := cut_rows(block := PADDING + text, self.layout)):
            if self._at_end or len(text) > max(ROW_BYTES_MAX, self._block_bytes):
                self._fail(text)
                return
            text = self._with_more(text)
        self._base, self._base_line, self._block, self._rows = self._offset, self._line, block, rows
        self._columns, self._problems = convert_rows(rows, self.layout)
        self._count = len(self._columns[0])
        size = int(rows.starts[-1]) - _PAD
        self._pass_over(text, size, len(rows) if rows.are_lines else None)

    def _begin(self) -> None:
        """Skip the byte order mark and the header. An error in the header is raised in its place."""
        text = self._with_more(self._rest)
        while not self._at_end and len(text) < len(codecs.BOM_UTF8):
            text = self._with_more(text)
        mark = len(codecs.BOM_UTF8) if text.startswith(codecs.BOM_UTF8) else 0
        if not self.header:
            self._pass_over(text, mark)
            return
        row = scan_row(text, mark, self.layout)
        while row.end < 0 and not self._at_end and len(text) <= ROW_BYTES_MAX:
            text = self._with_more(text)
            row = scan_row(text, mark, self.layout)
        self._names = row.fields
        if row.end < 0:
            self._fail(text)
            return
        if row.words:
            self._failure = self._error(1, f"column {row.field}", f"the header can't be read: {row.words}")
        self._pass_over(text, row.end)

    def _pass_over(self, text: bytes, size: int, lines: int | None = None) -> None:
        """Advance by ``size`` bytes of ``text``, which begins at the current position.

        ``lines`` is the number of lines that end in them, if known.
        """
        if lines is None:
            lines = _line_ends(text, size)
        self._rest = text[size:]
        self._offset += size
        if not self._rest:
            self._offset -= self._added
            self._added = 0
        self._line += lines

    def _with_more(self, text: bytes) -> bytes:
        """Return ``text`` with more of the file appended. At the end of the file, the last row gets a line end."""
        if self._at_end:
            return text
        try:
            piece = self._opened().read(max(self._block_bytes, len(text)))
        except DamagedStreamError as damage:
            self._damage, self._at_end = str(damage), True
            return text
        text += self._held + piece
        self._held = b""
        if not piece:
            self._at_end = True
            self._release()
            if not text or text.endswith((b"\n", b"\r")):
                return text
            self._added = 1
            return text + b"\n"
        if text.endswith(b"\r"):
            self._held, text = b"\r", text[:-1]
        return text

    def _opened(self) -> InputStream:
        """Return the stream at the current position, opening it if necessary."""
        if self._stream is None:
            self._stream = self._open()
            self._moved = self._offset > 0  # a pipe can be read as long as it is not asked to seek
        if self._moved:
            self._stream.seek(self._offset)
            self._moved = False
        return self._stream

    # Errors

    def _fail(self, text: bytes) -> None:
        """Give up the file: ``text`` has no complete row, and is the rest of the file or longer than a row may be."""
        self._ended = True
        self._release()
        if self._damage:
            self._failure = self._lost(self._damage)
        elif not text and self._offset == 0 and self.header:
            self._failure = ParseError(
                f"{redacted(self.path)}: the file is empty; header=True requires a first row with column names"
            )
        elif self._at_end and text:
            self._failure = self._unclosed(text)
        elif text:
            self._failure = self._lost(
                f"no row ends within {len(text) >> 20} MiB; check for an unclosed quotation mark, or pass a larger "
                "buffer_size"
            )
        self._pass_over(text, len(text))

    def _unclosed(self, text: bytes) -> ParseError:
        mark = len(codecs.BOM_UTF8) if self._offset == 0 and text.startswith(codecs.BOM_UTF8) else 0
        row = scan_row(text, mark, self.layout)
        line = self._line + _line_ends(text, row.place) + 1
        return self._error(line, self._column_of(None, row.field), NEVER_CLOSED)

    def _lost(self, words: str) -> DataLossError:
        message = f"line {self._line + 1}: {words}"
        return DataLossError(message, path=self.path, offset=self._offset, record=self._line)

    def _hinted(self, words: str, text: bytes) -> str:
        """Append a hint to the message if the file looks compressed."""
        guess = "" if self.compression_type else guess_compression(text)
        return f'{words}; the file starts like a {guess} stream: pass compression_type="{guess}"' if guess else words

    def _line_at(self, position: int) -> int:
        """Return the number of lines before a position in the block."""
        return self._base_line + _line_ends(self._block, position)

    def _error_of(self, problem: CsvProblem) -> ParseError:
        assert self._rows is not None  # the problem belongs to one of these rows
        line = self._line_at(int(self._rows.starts[problem.row])) + 1
        words = self._hinted(problem.words, self._block[_PAD:]) if line == 1 else problem.words
        return self._error(line, self._column_of(problem.column, problem.field), words)

    def _column_of(self, column: int | None, field: int | None) -> str:
        if column is None and field in self.layout.indices:
            column = self.layout.indices.index(field)
        if column is not None:
            return self.layout.column_name(column)
        return "" if field is None else f"column {field}"

    def _error(self, line: int, column: str, words: str) -> ParseError:
        place = f", {column}" if column else ""
        return ParseError(f"{redacted(self.path)}, line {line}{place}: {words}")


def read_header(path: str, layout: CsvLayout, compression_type: str) -> list[bytes]:
    """Return the fields in the first row of a file."""
    file = CsvFile(path, layout, compression_type, header=True)
    try:
        return file.header_names()
    finally:
        file.close()


def _line_ends(text: bytes, stop: int) -> int:
    """Return the number of lines that end before ``stop``. The padding of a block contains no line ends."""
    count = text.count(b"\n", 0, stop)
    returns = text.count(b"\r", 0, stop)
    return count + returns - text.count(b"\r\n", 0, stop) if returns else count
