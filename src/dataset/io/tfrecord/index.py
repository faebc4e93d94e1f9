"""TFRecordIndex: the position of each record of a TFRecord file, for random access.

This module finds, builds and saves indexes. index_file.py has the file format, frame_scan.py finds the frames in one
pass over a file, and records_at.py reads records by number.
"""

from __future__ import annotations

import logging
import operator
import os
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Self, overload

import numpy as np
import numpy.typing as npt

from dataset.closing import Closing
from dataset.io.files.atomic import AtomicFile
from dataset.io.files.opening import FileStamp, file_stamp, path_string, read_file, require_regular
from dataset.io.files.remote.paths import is_remote
from dataset.io.tfrecord.damage.damage_log import DamageLog
from dataset.io.tfrecord.frame_scan import scan_lengths
from dataset.io.tfrecord.frames import FRAME_BYTES
from dataset.io.tfrecord.index_file import MAGIC, NotAnIndexError, pack_index, unpack_index
from dataset.io.tfrecord.records_at import RecordsAt
from dataset.redaction import redacted, redacted_text

SUFFIX = ".index"

_log = logging.getLogger("dataset")


class TFRecordIndex(Closing, Sequence[bytes]):
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

    def __init__(self, path: str, lengths: npt.NDArray[np.int64], stamp: FileStamp) -> None:
        self.path = path
        self.lengths = lengths
        self.stamp = stamp
        self.offsets = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths + FRAME_BYTES, out=self.offsets[1:])
        self.lengths.flags.writeable = self.offsets.flags.writeable = False
        self._records: RecordsAt | None = None

    @classmethod
    def open(cls, path: str | bytes | os.PathLike[str] | os.PathLike[bytes], *, on_error: str = "raise") -> Self:
        """Load the index that is saved next to a file; if there is none, build and save it.

        An index that is damaged, or does not match the file's size or modification time, is rebuilt with a warning. If
        it can't be saved, for example because the directory is read-only, it is rebuilt each time.

        Args:
            path: the TFRecord file.
            on_error: with ``"skip"``, if the file is truncated or has a corrupt length, index the records before that,
                and log a warning of the logger ``dataset``. Such an index is not saved.

        Raises:
            FileNotFoundError: the file does not exist.
            DataLossError: the file is truncated or compressed, or a length in it is corrupt.
            TypeError: ``path`` is not a path.
        """
        name = path_string(path)
        found = _saved(name, file_stamp(name))
        if found is not None:
            return cls(name, *found)
        index = cls.build(name, on_error=on_error)
        if index.offsets[-1] < index.stamp.size:
            return index
        try:
            index.save()
        except OSError as error:
            _log.info("the index of %s is not saved: %s", name, str(error))
        return index

    @classmethod
    def build(cls, path: str | bytes | os.PathLike[str] | os.PathLike[bytes], *, on_error: str = "raise") -> Self:
        """Build the index of a file in one pass over it, without saving it.

        Args:
            path: the TFRecord file.
            on_error: as for ``open``.

        Raises:
            FileNotFoundError: the file does not exist.
            DataLossError: the file is truncated or compressed, or a length in it is corrupt.
            OSError: the file is modified at the same time.
            TypeError: ``path`` is not a path.
        """
        name = path_string(path)
        require_regular(name, "an indexed file must be a regular one; write the records to a file first")
        stamp = file_stamp(name)
        lengths, damage = scan_lengths(name)
        if damage is not None:
            if on_error != "skip":
                raise damage
            DamageLog("TFRecordIndex").gave_up(damage)
        if file_stamp(name) != stamp:
            raise OSError(
                f"{redacted(name)}: the file was modified while its index was built; try again when it is complete"
            )
        return cls(name, lengths, stamp)

    @property
    def index_path(self) -> str:
        """Return the path at which the index is saved."""
        return self.path + SUFFIX

    def save(self) -> None:
        """Write the index atomically next to the file. It grants no permissions beyond those of the file.

        Raises:
            FileExistsError: a file of that name exists and is not an index.
            ValueError: the file is damaged, so the index is incomplete.
            OSError: the index can't be written.
        """
        if self.offsets[-1] < self.stamp.size:
            raise ValueError(f"{redacted(self.path)} is damaged at byte {self.offsets[-1]}; its index is not saved")
        if _is_something_else(self.index_path):
            raise FileExistsError(
                f"{redacted(self.index_path)}: this file exists and is not an index; rename it, or don't save the index"
            )
        with AtomicFile(self.index_path, like=None if is_remote(self.path) else self.path) as target:
            target.file.write(pack_index(self.lengths, self.stamp))

    def __len__(self) -> int:
        return len(self.lengths)

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

    def open_records(self) -> RecordsAt:
        """Open the file for reading records by number. The caller closes it."""
        return RecordsAt(self.path, self.offsets, self.stamp)

    def close(self) -> None:
        """Close the file. Reading a record opens it again."""
        if self._records is not None:
            self._records.close()
            self._records = None

    def __repr__(self) -> str:
        return f"TFRecordIndex({redacted(self.path)!r}, {len(self)} records)"

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what pickle needs: a copy in another process opens the file itself."""
        return type(self), (self.path, self.lengths, self.stamp)


def _saved(path: str, stamp: FileStamp) -> tuple[npt.NDArray[np.int64], FileStamp] | None:
    """Return the contents of the saved index if it matches the file's current stamp."""
    content = _content(path + SUFFIX)
    if content is None:
        return None
    try:
        lengths, of = unpack_index(content)
    except NotAnIndexError as error:
        again = "" if content[: len(MAGIC)] != MAGIC else ", and saved again"
        _warn(f"{path + SUFFIX} is not used: {error}. The index of {path} is rebuilt{again}.")
        return None
    if of != stamp:
        _warn(f"{path + SUFFIX} does not match the size or time of {path}, which has changed since. It is rebuilt.")
        return None
    return lengths, of


def _content(path: str) -> bytes | None:
    try:
        require_regular(path, "an index must be a regular file")
        return read_file(path)
    except OSError:
        return None


def _is_something_else(path: str) -> bool:
    """Return whether the file exists and is not an index: TensorFlow's checkpoints use such names."""
    content = _content(path)
    return content is not None and content[: len(MAGIC)] != MAGIC and content != b""


def _warn(words: str) -> None:
    warnings.warn(redacted_text(words), UserWarning, stacklevel=2)
