"""TFRecordIndex: the position of each record of a TFRecord file, for random access.

io/indexed/saved_index.py finds, builds and saves indexes, frame_scan.py finds the frames in one pass over a file, and
records_at.py reads records by number.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Self, overload

import numpy as np
import numpy.typing as npt

from dataset.io.files.opening import FileStamp
from dataset.io.indexed.index_file import RECORDS
from dataset.io.indexed.saved_index import SavedIndex
from dataset.io.tfrecord.damage.damage_log import DamageLog
from dataset.io.tfrecord.frame_scan import scan_lengths
from dataset.io.tfrecord.frames import FRAME_BYTES
from dataset.io.tfrecord.records_at import TFRecordsAt
from dataset.redaction import redacted


class TFRecordIndex(SavedIndex, Sequence[bytes]):
    """Index of one uncompressed TFRecord file; a sequence of its records: ``len(index)``, ``index[i]``.

    ``open`` loads the index that is saved next to the file as ``<name>.index``, or builds it in one pass over the file.
    Building verifies the checksums of the lengths. The checksum of the data is verified when a record is read.

    Args:
        path: the TFRecord file.
        lengths: the sizes of the records' data, in bytes. Users call ``open`` or ``build`` instead.
        stamp: the stamp of the file when the lengths were determined.

    Attributes:
        path: the TFRecord file.
        lengths: int64 array of shape (n,): bytes of each record's data.
        offsets: int64 array of shape (n + 1,): where each record's frame begins, and where the last one ends.
        stamp: size and version of the indexed file.

    >>> import os, tempfile
    >>> from dataset import io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.tfrecord")
    ...     with io.TFRecordWriter(path) as writer:
    ...         for record in (b"one", b"two", b"three"):
    ...             writer.write(record)
    ...     with io.TFRecordIndex.open(path) as index:
    ...         len(index), index[2], index.offsets.tolist(), sorted(os.listdir(folder))
    (3, b'three', [0, 19, 38, 59], ['a.tfrecord', 'a.tfrecord.index'])
    """

    KIND: ClassVar[bytes] = RECORDS
    ENTRY_BYTES: ClassVar[int] = FRAME_BYTES
    offsets: npt.NDArray[np.int64]

    def __init__(self, path: str, lengths: npt.NDArray[np.int64], stamp: FileStamp) -> None:
        self.path = path
        self.lengths = lengths
        self.stamp = stamp
        self.offsets = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths + FRAME_BYTES, out=self.offsets[1:])
        self.lengths.flags.writeable = self.offsets.flags.writeable = False
        self._records: TFRecordsAt | None = None

    @classmethod
    def of_columns(cls, path: str, columns: Sequence[npt.NDArray[np.int64]], stamp: FileStamp) -> Self:
        return cls(path, columns[0], stamp)

    def columns(self) -> Sequence[npt.NDArray[np.int64]]:
        return [self.lengths]

    @classmethod
    def scan(cls, path: str, on_error: str) -> Sequence[npt.NDArray[np.int64]]:
        lengths, damage = scan_lengths(path)
        if damage is not None:
            if on_error != "skip":
                raise damage
            DamageLog("TFRecordIndex").gave_up(damage)
        return [lengths]

    @overload
    def __getitem__(self, index: int) -> bytes: ...

    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...

    def __getitem__(self, index: Any) -> Any:
        """Return one record, or a list of the records of a slice, verified.

        Raises:
            IndexError: the number is out of range.
            DataLossError: the record is damaged, or the file has changed.
        """
        if isinstance(index, slice):
            return [self.record(i) for i in range(len(self))[index]]
        number = operator.index(index)
        if not -len(self) <= number < len(self):
            raise IndexError(f"record {number} is out of range: {redacted(self.path)} has {len(self)} records")
        return self.record(number % len(self))

    def __iter__(self) -> Iterator[bytes]:
        return map(self.record, range(len(self)))

    def record(self, number: int) -> bytes:
        """Return the record with this number, from 0; the file stays open until ``close``."""
        if self._records is None:
            self._records = self.open_records()
        return self._records.record(number)

    def open_records(self) -> TFRecordsAt:
        """Open the file for reading records by number. The caller closes it."""
        return TFRecordsAt(self)

    def close(self) -> None:
        """Close the file. Reading a record opens it again."""
        if self._records is not None:
            self._records.close()
            self._records = None

    def __repr__(self) -> str:
        return f"TFRecordIndex({redacted(self.path)!r}, {len(self)} records)"
