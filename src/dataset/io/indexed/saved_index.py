"""Base class of indexes that are saved in a file beside the indexed one.

This module finds, builds and saves indexes. index_file.py has the file format; subclasses find the records of a format.
"""

from __future__ import annotations

import logging
import os
import warnings
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from dataset.io.files.atomic import AtomicFile
from dataset.io.files.opening import FileStamp, file_stamp, path_string, read_file, require_regular
from dataset.io.files.remote.paths import is_remote
from dataset.io.indexed.index_file import SUFFIX, NotAnIndexError, is_index, pack_index, unpack_index
from dataset.io.indexed.records_at import RecordIndex
from dataset.redaction import redacted, redacted_text

_log = logging.getLogger("dataset")


def unchanged_stamp(path: str, stamp: FileStamp | None = None) -> FileStamp:
    """Return the stamp of a file to index. After the scan, pass it, to find out whether the file was modified.

    Raises:
        OSError: the file is not a regular one, or was modified.
    """
    require_regular(path, "an indexed file must be a regular one; write the records to a file first")
    found = file_stamp(path)
    if stamp is not None and found != stamp:
        raise OSError(
            f"{redacted(path)}: the file was modified while its index was built; try again when it is complete"
        )
    return found


class SavedIndex(RecordIndex):
    """Index that is saved next to the file as ``<name>.index``."""

    KIND: ClassVar[bytes]
    """What the columns of the saved index mean."""

    COLUMNS: ClassVar[int] = 1
    """How many columns the saved index has. The first are sizes in bytes."""

    ENTRY_BYTES: ClassVar[int] = 0
    """The number of bytes of the file that each entry takes in addition to its size."""

    @classmethod
    @abstractmethod
    def of_columns(cls, path: str, columns: Sequence[npt.NDArray[np.int64]], stamp: FileStamp) -> Self:
        """Return the index of a file from the columns of the saved index."""

    @abstractmethod
    def columns(self) -> Sequence[npt.NDArray[np.int64]]:
        """Return the columns to save."""

    @classmethod
    @abstractmethod
    def scan(cls, path: str, on_error: str) -> Sequence[npt.NDArray[np.int64]]:
        """Return the columns for a file, in one pass over it. Arguments and errors as in ``build``."""

    @classmethod
    def open(cls, path: str | bytes | os.PathLike[str] | os.PathLike[bytes], *, on_error: str = "raise") -> Self:
        """Load the index that is saved next to a file; if there is none, build and save it.

        An index that is damaged, or does not match the file's size or modification time, is rebuilt with a warning. If
        it can't be saved, for example because the directory is read-only, it is rebuilt each time.

        Args:
            path: the file.
            on_error: with ``"skip"``, if the file is truncated or has a corrupt length, index the records before that,
                and log a warning of the logger ``dataset``. Such an index is not saved.

        Raises:
            FileNotFoundError: the file does not exist.
            DataLossError: the file is truncated or compressed, or a length in it is corrupt.
            TypeError: ``path`` is not a path.
        """
        name = path_string(path)
        found = cls._saved(name, file_stamp(name))
        if found is not None:
            return found
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
            path: the file.
            on_error: as for ``open``.

        Raises:
            FileNotFoundError: the file does not exist.
            DataLossError: the file is truncated or compressed, or a length in it is corrupt.
            OSError: the file is modified at the same time.
            TypeError: ``path`` is not a path.
        """
        name = path_string(path)
        stamp = unchanged_stamp(name)
        columns = cls.scan(name, on_error)
        return cls.of_columns(name, columns, unchanged_stamp(name, stamp))

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
        # TensorFlow's checkpoints use such names.
        if (content := _content(self.index_path)) and not is_index(content):
            raise FileExistsError(
                f"{redacted(self.index_path)}: this file exists and is not an index; rename it, or don't save the index"
            )
        with AtomicFile(self.index_path, like=None if is_remote(self.path) else self.path) as target:
            target.file.write(pack_index(self.KIND, self.columns(), self.stamp))

    @classmethod
    def unpack(cls, content: bytes) -> tuple[list[npt.NDArray[np.int64]], FileStamp]:
        """Return the columns of a saved index, and the stamp of the indexed file.

        Raises:
            NotAnIndexError: the bytes are not a valid index of this kind.
        """
        return unpack_index(cls.KIND, cls.COLUMNS, cls.ENTRY_BYTES, content)

    @classmethod
    def _saved(cls, path: str, stamp: FileStamp) -> Self | None:
        """Return the saved index if it matches the file's current stamp."""
        content = _content(path + SUFFIX)
        if content is None:
            return None
        try:
            columns, of = cls.unpack(content)
        except NotAnIndexError as error:
            again = ", and saved again" if is_index(content) else ""
            _warn(f"{path + SUFFIX} is not used: {error}. The index of {path} is rebuilt{again}.")
            return None
        if of != stamp:
            _warn(f"{path + SUFFIX} does not match the size or time of {path}, which has changed since. It is rebuilt.")
            return None
        return cls.of_columns(path, columns, of)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what pickle needs: a copy in another process opens the file itself."""
        return type(self).of_columns, (self.path, self.columns(), self.stamp)


def _content(path: str) -> bytes | None:
    try:
        require_regular(path, "an index must be a regular file")
        return read_file(path)
    except OSError:
        return None


def _warn(words: str) -> None:
    warnings.warn(redacted_text(words), UserWarning, stacklevel=2)
