"""Atomic writer of remote files: a file appears under its name only when it is complete.

There are two methods, depending on the file system:

- S3 and Google Cloud Storage show an object when its upload is completed. The object is uploaded in parts while it is
  written; ``commit`` completes the upload and ``discard`` aborts it.
- On other file systems the file is written under a temporary name in the same directory and then moved. If the file
  system can rename, that is one step. Otherwise it copies the file, and whether the copy appears atomically depends on
  the file system.

Retries are left to the file systems: the bytes are not kept after they are passed on.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import io
import secrets
from collections.abc import Iterator
from typing import Any

from dataset.amounts import BLOCK_BYTES
from dataset.io.files.remote.failures import explained
from dataset.io.files.remote.paths import FileSystem, filesystem_of, schemes
from dataset.redaction import raise_redacted, redacted

COMMITTING = {"s3", "s3a", "gs", "gcs"}
"""Files of these schemes are opened with ``autocommit=False`` and have ``commit`` and ``discard``. Other file systems
of fsspec accept the option, too, but some of them ignore it and show the file immediately."""

READ_ONLY = {"http", "https", "data", "github", "zip", "tar", "reference"}

PART_BYTES = 1 << 24
"""Part of an upload, held in memory. S3 allows 10,000 parts, so an object may have 160 GB."""


class RemoteTarget:
    """Remote file that is being written: its bytes are written to ``file``.

    Args:
        path: a path with a scheme.

    Raises:
        OSError: nothing can be written there.
        ImportError, ValueError: as for reading.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        if "::" in path or schemes(path)[0] in READ_ONLY:
            words = "paths of this kind are read-only; write to a local file or to another storage"
            raise OSError(errno.EROFS, words, redacted(path))
        self._system, self._name = filesystem_of(path)
        self._temporary: str | None = None
        self._is_published = False
        with _explaining(path):
            self._upload = self._open()
        self.file: io.BufferedWriter = io.BufferedWriter(self._upload, BLOCK_BYTES)

    def _open(self) -> _Upload:
        if schemes(self._path)[0] in COMMITTING:
            file = self._system.open(self._name, "wb", block_size=PART_BYTES, autocommit=False)
        else:
            folder, slash, name = self._name.rpartition("/")
            # As for local files: patterns do not match the name, and it is truncated to stay within limits.
            self._temporary = f"{folder}{slash}.{name[:40]}.{secrets.token_hex(8)}.tmp"
            file = self._system.open(self._temporary, "wb")
        return _Upload(file, self._path)

    folder = None  # no directory has to be flushed

    def prepare(self) -> None:
        """Pass all bytes to fsspec."""
        self.file.flush()
        with _explaining(self._path):
            self._upload.finish()

    def withdraw(self) -> None:
        """Do nothing: the old file stays until the new one replaces it."""

    def end_withdrawal(self, *, restore: bool) -> None:
        """Do nothing: there is nothing to restore."""

    def is_published(self) -> bool:
        """Return whether the file has its final name."""
        return self._is_published

    def publish(self) -> None:
        """Give the file its final name."""
        with _explaining(self._path):
            if self._temporary is None:
                self._upload.sink.commit()
            else:
                _move(self._system, self._temporary, self._name)
            self._is_published = True
            self._system.invalidate_cache()

    def discard(self) -> None:
        """Remove the written file. Nothing is raised: this runs after another failure."""
        self._upload.drop()
        with contextlib.suppress(Exception):
            self.file.close()
        with contextlib.suppress(Exception):
            if self._temporary is None:
                self._upload.sink.discard()
            else:
                self._system.rm_file(self._temporary)

    def abandon(self) -> None:
        """Abandon the file in a forked child: nothing is sent."""
        self._upload.forget()


class _Upload(io.RawIOBase):
    """Raw stream that writes to a file of fsspec and explains failures. After ``forget`` it ignores all bytes."""

    def __init__(self, sink: Any, path: str) -> None:
        super().__init__()
        self.sink = sink
        self._path = path
        self._dropped = False

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        if not self._dropped:
            with _explaining(self._path):
                self.sink.write(bytes(data))  # copied, because the caller reuses the buffer of ``data``
        return len(data)

    def finish(self) -> None:
        """Flush the bytes that fsspec still holds."""
        self.sink.close()

    def forget(self) -> None:
        """Ignore all bytes from now on."""
        self._dropped = True
        if hasattr(self.sink, "forced"):
            self.sink.forced = True  # keeps fsspec from flushing, even when the object is garbage collected

    def drop(self) -> None:
        """Close the file of fsspec without flushing it."""
        self.forget()
        with contextlib.suppress(Exception):
            self.sink.close()


def _move(system: FileSystem, source: str, target: str) -> None:
    """Rename a file. fsspec's generic ``mv`` would interpret brackets in a name as a pattern."""
    if type(system).mv is importlib.import_module("fsspec.spec").AbstractFileSystem.mv:
        system.cp_file(source, target)
        system.rm_file(source)
    else:
        system.mv(source, target)


@contextlib.contextmanager
def _explaining(path: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001  # file systems raise errors of any type
        raise_redacted(explained(error, path), error, path)
