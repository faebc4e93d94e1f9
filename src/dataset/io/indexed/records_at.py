"""Base classes of indexes, which know the positions of the records of a file, and of readers of records by number.

A run of adjacent records is read with one system call. Nothing is cached, and only announced runs of remote files are
read ahead.
"""

from __future__ import annotations

import bisect
import io
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from dataset.closing import Closing
from dataset.errors import ClosedError, DataLossError, SpecError
from dataset.io.files.opening import FileStamp, InputFile, file_stamp, open_input, read_whole
from dataset.redaction import redacted
from dataset.world import threading

T = TypeVar("T")

_MODIFIED = "the file was modified after its index was built; create the dataset or the index again"


class RecordIndex(Closing):
    """Index of the records of one uncompressed file.

    Attributes:
        path: the file.
        stamp: the stamp of the file when the positions were determined.
        offsets: int64 array or range of n + 1 numbers: where each record begins, and where the last one ends. In an
            index of groups of records, those of the groups.
    """

    path: str
    stamp: FileStamp
    offsets: npt.NDArray[np.int64] | range

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.offsets) - 1

    def span(self, first: int, stop: int) -> tuple[int, int]:
        """Return the range of bytes that is read for the records from ``first`` to before ``stop``."""
        return int(self.offsets[first]), int(self.offsets[stop])

    def run_end(self, first: int, stop: int, run_bytes: int) -> int:
        """Return the end of the longest run of records from ``first`` that is read with ``run_bytes``, or of one."""
        fitting = bisect.bisect_right(self.offsets, self.offsets[first] + run_bytes) - 1
        return min(stop, max(fitting, first + 1))

    def line_numbers(self, records: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the numbers by which a sequential reader counts these records."""
        return records

    @abstractmethod
    def open_records(self) -> RecordsAt[Any]:
        """Open the file for reading records by number. The caller closes it."""

    def close(self) -> None:
        """Release open resources. A second call does nothing."""


class RecordsAt(ABC, Generic[T]):
    """Random-access reader of one open file. Thread-safe.

    Args:
        index: the index of the file.

    Raises:
        FileNotFoundError: the file does not exist.
        DataLossError: the file has changed since it was indexed.
    """

    _file: InputFile | None = None  # a class attribute, so that __del__ works if the constructor raised

    def __init__(self, index: RecordIndex) -> None:
        self.path = index.path
        self._index = index
        self._lock = threading.Lock()  # guards the position of a file without pread
        self._file = open_input(self.path)
        self._descriptor = self._file.fileno() if isinstance(self._file, io.FileIO) else None
        if file_stamp(self.path) != index.stamp:
            self.close()
            raise DataLossError(_MODIFIED, path=self.path, offset=0, record=0)

    def record(self, number: int) -> T:
        """Return the record with this number, from 0.

        Raises:
            DataLossError: the record is damaged or truncated.
            ClosedError: after ``close``.
        """
        found, failure = self.records(number, number + 1)
        if failure is not None:
            raise failure
        return found[0]

    @abstractmethod
    def records(self, first: int, stop: int) -> tuple[list[T], DataLossError | SpecError | None]:
        """Read records ``first`` to ``stop``, whose total size is bounded.

        Returns:
            The records before the first damaged one, and its error; all records and None if none is damaged.
        """

    def expect(self, runs: Sequence[tuple[int, int]]) -> None:
        """Announce which runs of records will be read next, in this order: each from its first to before its last."""
        expect = getattr(self._file, "expect", None)  # of remote files
        if expect is not None:
            with self._lock:
                expect([self._index.span(first, stop) for first, stop in runs])

    def close(self) -> None:
        """Close the file. May be called more than once."""
        if self._file is not None:
            self._file.close()  # if it is interrupted, __del__ closes the file
            self._file = None

    def __del__(self) -> None:
        self.close()  # no ResourceWarning: abandoning a dataset half way is not a mistake

    def _read(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes from ``offset``, or fewer at the end of the file."""
        if self._file is None:
            raise ClosedError(f"the records of {redacted(self.path)} were closed")
        if self._descriptor is None:
            with self._lock:
                self._file.seek(offset)
                return read_whole(self._file.read, size)
        block = os.pread(self._descriptor, size, offset)
        while len(block) < size and (more := os.pread(self._descriptor, size - len(block), offset + len(block))):
            block += more
        return block

    def _read_unchanged(self, begin: int, end: int, record: int) -> bytes:
        """Return bytes of a format without checksums, in which other lines or records would go unnoticed.

        Raises:
            DataLossError: the file was modified. It names the record.
        """
        block = self._read(begin, end - begin)
        if self._descriptor is not None:
            found = os.fstat(self._descriptor)
            if (found.st_size, found.st_mtime_ns) != self._index.stamp:
                raise self._modified(record)
        if len(block) != end - begin:
            raise self._modified(record)
        return block

    def _modified(self, record: int) -> DataLossError:
        return damage_at(self._index, record, _MODIFIED)


def damage_at(index: RecordIndex, number: int, words: str) -> DataLossError:
    """Return the error of a record, or of the group of records in which it is."""
    return DataLossError(words, path=index.path, offset=index.span(number, number + 1)[0], record=number)
