"""An open Parquet file: its footer, and its row groups as Arrow tables.

pyarrow receives an opened file, uses no threads of its own, and verifies the checksums of pages that have one. All
errors of pyarrow become a DataLossError with the path and the rows; errors of the operating system are not changed.
"""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Sequence
from typing import Any

from dataset.amounts import PIECE_BYTES
from dataset.errors import DataLossError
from dataset.io.arrow.pyarrow_library import library
from dataset.io.files.content_hint import content_hint
from dataset.io.files.opening import InputFile, open_input, read_whole, require_regular
from dataset.io.parquet.footer import Footer
from dataset.redaction import redacted

_TEXT = frozenset({"STRING", "NONE", "JSON", "BSON", "ENUM"})
_TEXT_BYTES_MIN = 4  # of each value that is not in a dictionary: its length prefix
_TAIL_BYTES = 1 << 16  # read first: enough for the footers of most files
_TRAILER_BYTES = 8  # after the footer: its length and the magic bytes


class ParquetContainer:
    """An open Parquet file, whose footer has been read.

    Args:
        path: the file.

    Attributes:
        starts: the index of the first row of each row group, then the total number of rows.
        schema: the Arrow schema of the columns.

    Raises:
        DataLossError: the file is not a Parquet file, or is damaged.
        OSError: the file is missing or can't be read.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        require_regular(path, "a Parquet file must be seekable because its footer is at its end")
        self._source = WholeReads(open_input(path))
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        if not self._source.seekable():
            raise OSError(
                errno.ESPIPE, "a Parquet file must be seekable because its footer is at its end", redacted(self.path)
            )
        parquet, head = library("pyarrow.parquet"), b""
        try:
            tail = self._tail()
            head = tail if len(tail) < _TAIL_BYTES else b""  # the beginning only of a small file, such as a pointer
            self._metadata = parquet.read_metadata(library().BufferReader(tail))
            self._footer = Footer(tail[-_length_of_footer(tail) - _TRAILER_BYTES : -_TRAILER_BYTES])
            counts = [self._metadata.row_group(group).num_rows for group in range(self._metadata.num_row_groups)]
            if min(counts, default=0) < 0:
                raise ValueError(f"a row group of {min(counts)} rows")  # noqa: TRY301  # handled below like all errors
            self.starts: list[int] = list(itertools.accumulate(counts, initial=0))
            self._reader = parquet.ParquetFile(
                self._source,
                metadata=self._metadata,
                read_dictionary=self._repetitive_texts(),
                page_checksum_verification=True,
                coerce_int96_timestamp_unit="us",  # nanoseconds silently wrap outside of the years 1678 to 2261
                pre_buffer=False,  # it would use threads
            )
            self.schema = self._reader.schema_arrow
        except Exception as error:
            words = f"not a Parquet file, or its footer is damaged{content_hint(head)}"
            raise self._explained(error, words, 0, 0) from error

    def _tail(self) -> bytes:
        """Return the end of the file, including the whole footer if the file has one."""
        size = self._source.seek(0, os.SEEK_END)
        tail = self._last_bytes(min(size, _TAIL_BYTES))
        length = min(_length_of_footer(tail) + _TRAILER_BYTES, size)
        return tail if length <= len(tail) else self._last_bytes(length)

    def _last_bytes(self, count: int) -> bytes:
        self._source.seek(-count, os.SEEK_END)
        return self._source.read(count)

    def _repetitive_texts(self) -> list[str]:
        """Return the text columns that mostly use dictionaries; reading them as such creates each value once."""
        schema = self._metadata.schema
        texts = [index for index in range(self._metadata.num_columns) if _is_text(schema.column(index))]
        chunks = self._footer.chunks(0) if texts and len(self.starts) > 1 else []
        if len(chunks) != self._metadata.num_columns:
            return []
        return [
            schema.column(index).path
            for index in texts
            if chunks[index].nbytes < _TEXT_BYTES_MIN * chunks[index].values
        ]

    def has_no_null(self, group: int, names: Sequence[str]) -> bool:
        """Return whether the footer guarantees that these columns have no nulls in a row group."""
        schema = self._metadata.schema
        chunks = self._footer.chunks(group)
        return len(chunks) == self._metadata.num_columns and all(
            schema.column(index).max_definition_level == 0 or chunk.nulls == 0
            for index, chunk in enumerate(chunks)
            if any(f"{schema.column(index).path}.".startswith(f"{name}.") for name in names)
        )

    def read(self, group: int, names: Sequence[str]) -> Any:
        """Return these columns of a row group, including all fields of structs, as a table.

        Raises:
            DataLossError: the row group is damaged.
            OSError: the file can't be read.
            NotImplementedError: pyarrow does not support the encoding.
        """
        first, stop = self.starts[group], self.starts[group + 1]
        try:
            table = self._reader.read_row_group(group, columns=list(names), use_threads=False)
        except Exception as error:
            words = f"row group {group}, rows {first} to {stop - 1}, can't be read"
            raise self._explained(error, words, self._offset(group), first) from error
        if table.num_rows != stop - first:
            words = f"row group {group} has {table.num_rows} rows, but {stop - first} according to the footer"
            raise DataLossError(words, path=self.path, offset=self._offset(group), record=first)
        return table

    def _offset(self, group: int) -> int:
        return min((chunk.offset for chunk in self._footer.chunks(group)), default=0)

    def _explained(self, error: Exception, words: str, offset: int, row: int) -> Exception:
        """Return the exception to raise instead of one that pyarrow raised."""
        failure = self._source.take_failure()
        if failure is not None:  # an error of the file itself, which pyarrow passed on
            return failure
        if isinstance(error, OSError) and error.errno is not None:
            return error
        if isinstance(error, NotImplementedError | ImportError):
            error.add_note(f"in {redacted(self.path)}: {words}")
            return error
        return DataLossError(f"{words}: {error}", path=self.path, offset=offset, record=row)

    def close(self) -> None:
        """Close the file. Closing twice is allowed."""
        self._reader = None
        self._source.close()


def _is_text(column: Any) -> bool:
    return column.physical_type == "BYTE_ARRAY" and column.logical_type.type in _TEXT


def _length_of_footer(tail: bytes) -> int:
    return int.from_bytes(tail[-_TRAILER_BYTES : -_TRAILER_BYTES // 2], "little")


class WholeReads:
    """File adapter for pyarrow: a read returns all requested bytes, except at the end of the file."""

    def __init__(self, file: InputFile) -> None:
        self._file = file
        self._failure: Exception | None = None
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        try:
            return self._read(size)
        except Exception as error:
            self._failure = error
            raise

    def _read(self, size: int) -> bytes:
        if size < 0:
            here = self._file.tell()
            size = self._file.seek(0, 2) - here
            self._file.seek(here)
        return read_whole(self._file.read, size)

    def read_to_end(self) -> bytes:
        """Return the rest of a file that need not be seekable."""
        pieces = []
        while piece := self._file.read(PIECE_BYTES):
            pieces.append(piece)
        return b"".join(pieces)

    def take_failure(self) -> Exception | None:
        """Return the exception that the file raised, if any, and clear it."""
        failure, self._failure = self._failure, None
        return failure

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def seekable(self) -> bool:
        return self._file.seekable()

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def flush(self) -> None:
        """Do nothing: the file is read-only."""

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._file.close()
