"""TFRecordIndex: where each record of a TFRecord file stands, so that any of them can be read without those before it.

How an index is found, made and kept lives here. Its bytes are index_file.py's, the pass over a file that finds the
frames is scan.py's, and reading records by their numbers records_at.py's.
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
from dataset.io.files.opening import FileStamp, file_stamp, path_string, read_file
from dataset.io.files.remote.paths import is_remote
from dataset.io.tfrecord.damage_log import DamageLog
from dataset.io.tfrecord.frames import FRAME_BYTES
from dataset.io.tfrecord.index_file import MAGIC, NotAnIndexError, pack_index, unpack_index
from dataset.io.tfrecord.records_at import RecordsAt
from dataset.io.tfrecord.scan import scan_lengths
from dataset.redaction import redacted, redacted_text

__all__ = ["SUFFIX", "TFRecordIndex"]

SUFFIX = ".index"

_log = logging.getLogger("dataset")


class TFRecordIndex(Closing, Sequence[bytes]):
    """The records of one uncompressed TFRecord file as a sequence: ``len(index)``, ``index[i]``.

    ``open`` takes the index that is saved beside the file, as ``<name>.index``, or makes it in one pass over the file.
    Making it verifies the checksums of the lengths; those of the data are verified when a record is read.

    Args:
        path: the TFRecord file.
        lengths: of the records' data, in bytes. Users call ``open`` or ``build``.
        stamp: of the file, as it was when the lengths were found.

    Attributes:
        path: the TFRecord file.
        lengths: int64 array of shape (n,): bytes of each record's data.
        offsets: int64 array of shape (n + 1,): where each record's frame begins, and where the last of them ends.
        stamp: size and version of the file that this is the index of.

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
        """The index that is saved beside a file; where there is none, it is made, and saved.

        One that is of another size or time than the file, or damaged, is made anew with a warning. Where it can't be
        saved, because the directory is read-only for example, it is made each time.

        Args:
            path: the TFRecord file.
            on_error: ``"skip"`` to make do, where a file is cut short or has a corrupt length, with the records before
                that, with a warning of the logger ``dataset``. Such an index is not saved.

        Raises:
            FileNotFoundError: if there is no such file.
            DataLossError: if the file is cut short, or a length in it is corrupt; or if it is compressed.
            TypeError: if ``path`` is none.
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
        """The index of a file, made in one pass over it, and not saved.

        Args:
            path: the TFRecord file.
            on_error: as for ``open``.

        Raises:
            FileNotFoundError: if there is no such file.
            DataLossError: if the file is cut short, or a length in it is corrupt; or if it is compressed.
            OSError: if the file is written to meanwhile.
            TypeError: if ``path`` is none.
        """
        name = path_string(path)
        stamp = file_stamp(name)
        lengths, damage = scan_lengths(name)
        if damage is not None:
            if on_error != "skip":
                raise damage
            DamageLog("TFRecordIndex").gave_up(damage)
        if file_stamp(name) != stamp:
            raise OSError(
                f"{redacted(name)}: the file was written to while its index was made; try again when it is complete"
            )
        return cls(name, lengths, stamp)

    @property
    def index_path(self) -> str:
        """Where the index is saved."""
        return self.path + SUFFIX

    def save(self) -> None:
        """Write the index beside the file. It appears whole or not at all, and is at most as readable as the file.

        Raises:
            FileExistsError: if a file of that name is something else.
            ValueError: if the file is damaged, so that the index does not reach its end.
            OSError: if nothing can be written there.
        """
        if self.offsets[-1] < self.stamp.size:
            raise ValueError(f"{redacted(self.path)} is damaged at byte {self.offsets[-1]}; its index is not saved")
        if _is_something_else(self.index_path):
            raise FileExistsError(
                f"{redacted(self.index_path)}: there is a file that is no index; rename it, or do without"
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
        """One record, or those of a slice, verified.

        Raises:
            IndexError: if there is none.
            DataLossError: if it is damaged, or the file is another one by now.
        """
        if isinstance(index, slice):
            return [self.record(i) for i in range(len(self))[index]]
        number = operator.index(index)
        if not -len(self) <= number < len(self):
            raise IndexError(f"{redacted(self.path)} has {len(self)} records, there is no record {number}")
        return self.record(number % len(self))

    def __iter__(self) -> Iterator[bytes]:
        return map(self.record, range(len(self)))

    def record(self, number: int) -> bytes:
        """The record with this number, from 0; the file stays open until ``close``."""
        if self._records is None:
            self._records = self.open_records()
        return self._records.record(number)

    def open_records(self) -> RecordsAt:
        """The file, open to read records by number. The caller closes it."""
        return RecordsAt(self.path, self.offsets, self.stamp)

    def close(self) -> None:
        """Give the file back. It is opened again when a record is asked for."""
        if self._records is not None:
            self._records.close()
            self._records = None

    def __repr__(self) -> str:
        return f"TFRecordIndex({redacted(self.path)!r}, {len(self)} records)"

    def __reduce__(self) -> tuple[Any, ...]:
        """What a copy in another process is made from: it opens the file itself."""
        return type(self), (self.path, self.lengths, self.stamp)


def _saved(path: str, stamp: FileStamp) -> tuple[npt.NDArray[np.int64], FileStamp] | None:
    """The lengths in the saved index, if it is that of the file as it is now."""
    content = _content(path + SUFFIX)
    if content is None:
        return None
    try:
        lengths, of = unpack_index(content)
    except NotAnIndexError as error:
        again = "" if content[: len(MAGIC)] != MAGIC else ", and saved again"
        _warn(f"{path + SUFFIX} is not used: {error}. The index of {path} is made anew{again}.")
        return None
    if of != stamp:
        _warn(f"{path + SUFFIX} is of another size or time than {path}, which was changed since. It is made anew.")
        return None
    return lengths, of


def _content(path: str) -> bytes | None:
    try:
        return read_file(path)
    except OSError:
        return None


def _is_something_else(path: str) -> bool:
    """Whether a file is there that is no index: TensorFlow's checkpoints have files of such names."""
    content = _content(path)
    return content is not None and content[: len(MAGIC)] != MAGIC and content != b""


def _warn(words: str) -> None:
    warnings.warn(redacted_text(words), UserWarning, stacklevel=2)
