"""An open Arrow IPC file, in the file or the stream format: its record batches as tables.

Local files are mapped into memory: opening them reads little, and numbers are views of the file. A remote file of the
file format is read batch by batch; a remote stream is read completely, because it has no index. Every batch is
validated in full before its first value is read.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dataset.errors import DataLossError
from dataset.io.arrow.numbered_rows import holds_null
from dataset.io.arrow.pyarrow_library import library, require_stream_end
from dataset.io.files.opening import open_input, read_file, require_regular
from dataset.io.files.remote.paths import is_remote, local_form
from dataset.io.parquet.parquet_file import WholeReads

_MAGIC = b"ARROW1"  # the file format begins and ends with it, the stream format does not


class IpcContainer:
    """An open file, with the interface of ``ParquetContainer``: its record batches are the row groups.

    Args:
        path: the file.

    Attributes:
        starts: the index of the first row of each batch, then the total number of rows.
        schema: the Arrow schema.

    Raises:
        DataLossError: the file is not an Arrow IPC file, or is damaged.
        OSError: the file is missing or can't be read.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        require_regular(path, "it is read several times; read it once with Dataset.from_arrow")
        self._reads: WholeReads | None = None  # of a remote file
        self._source: Any = None
        self._batches: Sequence[Any] | None = None  # of a stream
        self._last: tuple[int, tuple[str, ...], Any] | None = None  # the batch that was read last
        try:
            self._open()
        except BaseException as error:
            failure = self._explained(error, "not an Arrow IPC file, or it is damaged", 0)
            self.close()
            if failure is error:
                raise
            raise failure from error

    def _open(self) -> None:
        pa, ipc = library(), library("pyarrow.ipc")
        self._source = self._opened()
        is_file = self._source.read(len(_MAGIC)) == _MAGIC
        self._source.seek(0)
        if is_file:
            whole = ipc.open_file(self._source)
            self.schema = whole.schema
            first = self._reader(self.schema.names[:1])  # decompresses and reads as little as possible
            counts = [first.get_batch(group).num_rows for group in range(whole.num_record_batches)]
        else:
            if self._reads is not None:
                self._source = pa.BufferReader(read_file(self.path))
            stream = ipc.open_stream(self._source, options=ipc.IpcReadOptions(use_threads=False))
            self.schema = stream.schema
            self._batches = list(stream)
            require_stream_end(self._source)
            counts = [batch.num_rows for batch in self._batches]
        if min(counts, default=0) < 0:
            raise ValueError(f"a record batch of {min(counts)} rows")
        self.starts: list[int] = list(itertools.accumulate(counts, initial=0))

    def _opened(self) -> Any:
        pa = library()
        local = local_form(self.path) if is_remote(self.path) else self.path
        if local is not None and Path(local).is_file():
            return pa.memory_map(os.fsencode(local))  # a str must be valid UTF-8
        self._reads = WholeReads(open_input(self.path))
        return pa.PythonFile(self._reads) if self._reads.seekable() else pa.BufferReader(self._reads.read_to_end())

    def _reader(self, names: Sequence[str]) -> Any:
        """Return a reader of the columns that contain these."""
        ipc = library("pyarrow.ipc")
        tops = {name if name in self.schema.names else name.split(".")[0] for name in names}
        fields = [place for place, name in enumerate(self.schema.names) if name in tops]
        self._source.seek(0)
        return ipc.open_file(self._source, options=ipc.IpcReadOptions(use_threads=False, included_fields=fields))

    def has_no_null(self, group: int, names: Sequence[str]) -> bool:
        """Return whether these columns have no nulls in a batch."""
        return not names or not any(map(holds_null, self._batch(group, names).columns))

    def read(self, group: int, names: Sequence[str]) -> Any:
        """Return a batch as a table, with at least these columns.

        Raises:
            DataLossError: the batch is damaged.
            OSError: the file can't be read.
        """
        return library().Table.from_batches([self._batch(group, names)])

    def _batch(self, group: int, names: Sequence[str]) -> Any:
        if self._last is not None and self._last[:2] == (group, tuple(names)):
            return self._last[2]
        first, stop = self.starts[group], self.starts[group + 1]
        words = f"record batch {group}, rows {first} to {stop - 1}, can't be read"
        try:
            batch = self._reader(names).get_batch(group) if self._batches is None else self._batches[group]
            batch.validate(full=True)
        except Exception as error:
            failure = self._explained(error, words, first)
            if failure is error:
                raise
            raise failure from error
        if batch.num_rows != stop - first:
            raise DataLossError(f"{words}: it has {batch.num_rows} rows", path=self.path, offset=0, record=first)
        self._last = group, tuple(names), batch
        return batch

    def _explained(self, error: BaseException, words: str, row: int) -> BaseException:
        """Return the exception to raise instead of one that pyarrow raised."""
        failure = None if self._reads is None else self._reads.take_failure()
        if failure is not None:  # an error of the file itself, which pyarrow passed on
            return failure
        is_documented = isinstance(error, ImportError) or (isinstance(error, OSError) and error.errno is not None)
        if is_documented or isinstance(error, DataLossError) or not isinstance(error, Exception):
            return error
        return DataLossError(f"{words}: {error}", path=self.path, offset=0, record=row)

    def close(self) -> None:
        """Close the file. Closing twice is allowed. Arrays that were returned keep the mapping alive."""
        self._last = self._batches = None
        if self._reads is not None:
            self._reads.close()
        self._source = None
