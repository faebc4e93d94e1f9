"""The sequential reader of one CSV file.

Here live the open file, the place in it, and what becomes of rows that can't be read: each raises a ``ParseError`` in
its place. How rows are taken apart is cut.py's and scan.py's, what is in their fields convert.py's, decompression
io/files/compression.py's. What a Dataset is, is not known here.

How the reader is fast. It takes a block of the file at once and makes columns of all rows that end in it; they are then
handed out as slices. The rest of the block, a row that has begun, is put before the next one.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable

from dataset.errors import DataLossError, ParseError
from dataset.io.csv.convert import Array, convert_rows
from dataset.io.csv.cut import PADDING, CsvProblem, CsvRows, cut_rows
from dataset.io.csv.layout import CsvLayout
from dataset.io.csv.scan import NEVER_CLOSED, scan_row
from dataset.io.files.compression import DamagedStreamError, InputStream, guess_compression
from dataset.io.files.stream_file import StreamFile
from dataset.redaction import redacted

__all__ = ["CsvFile", "read_header"]

BLOCK_BYTES = 1 << 18
ROW_BYTES_MAX = 1 << 26  # or a quotation mark that is never closed would take a whole file into memory

_PAD = len(PADDING)


class CsvFile(StreamFile):
    r"""Reads the rows of one CSV file from its beginning to its end, as columns.

    The file is opened by the first read. A row that can't be read raises ``ParseError`` in its place, and the next read
    goes on behind it. A byte order mark at the beginning of the file is passed over.

    Args:
        path: the file.
        layout: which columns there are.
        compression_type: ``None`` or ``""``, ``"GZIP"`` or ``"ZLIB"``.
        buffer_size: bytes to read at once, by default 256 KiB. Memory stays at a few times that, or a row's.
        header: whether the first row is not to be given.

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
        self._failure: Exception | None  # to be raised behind the rows
        self._at_end: bool  # whether all was read
        self._ended: bool  # whether nothing is left to be given but the rows of the block
        self._go_to(0, 0)

    def columns(self, n: int) -> list[Array] | None:
        """The columns of the next rows.

        Args:
            n: how many rows at most.

        Returns:
            One array for each column, of 1 to ``n`` values; ``None`` at the end, and ever after.

        Raises:
            ParseError: the next row can't be read. Raised once; the next call goes on behind it.
            DataLossError: here the compressed stream is cut short or corrupt. Raised once; then comes the end.
            OSError: the file is missing, or can't be read.
            ClosedError: after ``close``.
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
        """Where the next row begins: its first byte in the uncompressed stream, and how many lines stand before it."""
        if self._rows is None or self._row >= len(self._rows):
            return self._offset, self._line
        start = int(self._rows.starts[self._row])
        return self._base + start - _PAD, self._line_at(start)

    def seek(self, offset: int, line: int) -> None:
        """Continue at a place that ``tell`` gave. A compressed file is read up to it, and what is read is dropped."""
        if offset < 0 or line < 0:
            raise ValueError(f"CsvFile.seek(): a position can't be negative, got {(offset, line)}")
        self._check_open()
        self._go_to(offset, line)

    def header_names(self) -> list[bytes]:
        """The fields of the first row; the file is at its beginning, and is to have a header.

        Raises:
            ParseError: it can't be read.
            DataLossError: the file is damaged there.
            OSError: the file is missing, or can't be read.
        """
        self._check_open()
        self._read(self._begin)
        if self._failure is not None:
            raise self._failure
        return self._names

    def close(self) -> None:
        """Give back the file and the memory, and keep the place. A second time does nothing."""
        self._go_to(*self.tell())
        self._closed = True
        self._release()

    def _go_to(self, offset: int, line: int) -> None:
        """Forget everything but the place. The stream stays open; the next read moves it there."""
        self._forget_rows()
        self._offset, self._line = offset, line  # of the first byte that is in no row of the block
        self._rest = b""  # what was read behind that place
        self._held = b""  # a carriage return, read behind that: a line feed may follow
        self._added = 0  # bytes at the end that are not in the file: the line end of the last row
        self._failure = None
        self._at_end = self._ended = False
        self._damage = ""  # what is wrong with the stream there
        self._moved = True
        self._names: list[bytes] = []  # in the header, if it was read

    def _forget_rows(self) -> None:
        self._rows: CsvRows | None = None  # of the block that was read last
        self._block = b""  # itself, with its padding
        self._base, self._base_line = 0, 0  # where in the file it begins
        self._columns: list[Array] = []  # of the rows that are right
        self._problems: list[CsvProblem] = []  # of the others that have not been raised
        self._row = 0  # the next, counted with the bad ones
        self._given = self._count = 0  # how many right ones have been given, and there are

    def _give(self, n: int) -> list[Array]:
        """Rows up to the next that has a problem."""
        stop = min(self._given + n, self._count)
        if self._problems:
            stop = min(stop, self._given + self._problems[0].row - self._row)
        columns = [values[self._given : stop] for values in self._columns]
        self._row += stop - self._given
        self._given = stop
        return columns

    # Reading

    def _read(self, step: Callable[[], None]) -> None:
        """Run ``step``. Where it fails, what the stream has taken in is lost: the next one opens the file again."""
        try:
            step()
        except BaseException:
            self._release()
            self._go_to(self._offset, self._line)
            raise

    def _read_block(self) -> None:
        """Read on until a row is whole, and make columns of all that are."""
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
        """Pass over the byte order mark and the header. What is wrong with the header is raised in its place."""
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
        """Move on by ``size`` bytes of ``text``, which begins at the place where reading goes on.

        ``lines``: how many of them end in there, if that is known.
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
        """``text`` with what follows in the file; at its end, with a line end behind the last row."""
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
        """The stream, at the place where reading goes on."""
        if self._stream is None:
            self._stream = self._open()
            self._moved = self._offset > 0  # a pipe can be read, if nobody asks it to move
        if self._moved:
            self._stream.seek(self._offset)
            self._moved = False
        return self._stream

    # Errors

    def _fail(self, text: bytes) -> None:
        """Give up the file, where ``text`` is all that is left, or as much as may belong to one row."""
        self._ended = True
        self._release()
        if self._damage:
            self._failure = self._lost(self._damage)
        elif not text and self._offset == 0 and self.header:
            self._failure = ParseError(
                f"{redacted(self.path)}: the file is empty; with header=True its first row names columns"
            )
        elif self._at_end and text:
            self._failure = self._unclosed(text)
        elif text:
            self._failure = self._lost(
                f"no row ends within {len(text) >> 20} MiB: is a quotation mark never closed? else pass a larger "
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
        """Say what else the file may be, when it is wrong from its first byte on."""
        guess = "" if self.compression_type else guess_compression(text)
        return f'{words}; the file starts like a {guess} stream: pass compression_type="{guess}"' if guess else words

    def _line_at(self, position: int) -> int:
        """How many lines stand before a position in the block."""
        return self._base_line + _line_ends(self._block, position)

    def _error_of(self, problem: CsvProblem) -> ParseError:
        assert self._rows is not None  # the problem is one of its rows
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
    """The fields in the first row of a file."""
    file = CsvFile(path, layout, compression_type, header=True)
    try:
        return file.header_names()
    finally:
        file.close()


def _line_ends(text: bytes, stop: int) -> int:
    """How many lines end before ``stop``. The padding of a block ends none."""
    count = text.count(b"\n", 0, stop)
    returns = text.count(b"\r", 0, stop)
    return count + returns - text.count(b"\r\n", 0, stop) if returns else count
