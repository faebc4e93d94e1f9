"""A remote file that appears under its name when it is complete, and not before.

There are two ways, by what the file system can do:

- S3 and Google's storage show an object when its upload is completed. It is uploaded part by part while it is written,
  completed by ``commit`` and aborted by ``discard``.
- Elsewhere it is written under a temporary name beside the final one, and moved. Where a file system can rename, that
  is one step; else it makes a copy, and it is up to the file system whether that appears as one piece.

Trying again is left to the file systems here: the bytes are gone once they were handed over.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import io
import secrets
from typing import TYPE_CHECKING, Any

from dataset.io.files.remote.failures import explained
from dataset.io.files.remote.paths import FileSystem, filesystem_of, schemes
from dataset.redaction import raise_redacted, redacted

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["RemoteTarget"]

COMMITTING = {"s3", "s3a", "gs", "gcs"}
"""Files of these are opened with ``autocommit=False`` and have ``commit`` and ``discard``. fsspec has that for others,
too, but some of them take the word and show the file nevertheless."""

READ_ONLY = {"http", "https", "data", "github", "zip", "tar", "reference"}

PART_BYTES = 1 << 24
"""Held in memory and uploaded at once. S3 allows 10,000 parts, so an object of 160 GB."""

OUTPUT_BUFFER_BYTES = 1 << 18


class RemoteTarget:
    """The file while it is written: its bytes go to ``file``.

    Args:
        path: with a scheme.

    Raises:
        OSError: nothing can be written there.
        ImportError, ValueError: as for reading.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        if "::" in path or schemes(path)[0] in READ_ONLY:
            words = "such paths can be read only; write to a local file or to another storage"
            raise OSError(errno.EROFS, words, redacted(path))
        self._system, self._name = filesystem_of(path)
        self._temporary: str | None = None
        self._is_published = False
        with _explaining(path):
            self._upload = self._open()
        self.file: io.BufferedWriter = io.BufferedWriter(self._upload, OUTPUT_BUFFER_BYTES)

    def _open(self) -> _Upload:
        if schemes(self._path)[0] in COMMITTING:
            file = self._system.open(self._name, "wb", block_size=PART_BYTES, autocommit=False)
        else:
            folder, slash, name = self._name.rpartition("/")
            # As for local files: patterns don't find it, and a cut name can't grow too long.
            self._temporary = f"{folder}{slash}.{name[:40]}.{secrets.token_hex(8)}.tmp"
            file = self._system.open(self._temporary, "wb")
        return _Upload(file, self._path)

    folder = None  # no directory has to be written through

    def prepare(self) -> None:
        """Hand over all bytes."""
        self.file.flush()
        with _explaining(self._path):
            self._upload.finish()

    def withdraw(self) -> None:
        """Leave the old file where it is until the new one replaces it."""

    def end_withdrawal(self, *, restore: bool) -> None:
        """There is nothing to put back."""

    def is_published(self) -> bool:
        """Whether the file has its name."""
        return self._is_published

    def publish(self) -> None:
        """Put the file under its name."""
        with _explaining(self._path):
            if self._temporary is None:
                self._upload.sink.commit()
            else:
                _move(self._system, self._temporary, self._name)
            self._is_published = True
            self._system.invalidate_cache()

    def discard(self) -> None:
        """Remove what was written. Nothing is raised: it runs where something else has failed already."""
        self._upload.drop()
        with contextlib.suppress(Exception):
            self.file.close()
        with contextlib.suppress(Exception):
            if self._temporary is None:
                self._upload.sink.discard()
            else:
                self._system.rm_file(self._temporary)

    def abandon(self) -> None:
        """Let go of the file in a forked child: nothing is sent."""
        self._upload.forget()


class _Upload(io.RawIOBase):
    """Takes bytes for a file of fsspec, and explains failures. Dropped, it takes them for nothing."""

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
                self.sink.write(bytes(data))  # the buffer behind ``data`` is going to be used again
        return len(data)

    def finish(self) -> None:
        """Hand over what fsspec still holds."""
        self.sink.close()

    def forget(self) -> None:
        """Take bytes for nothing from now on."""
        self._dropped = True
        if hasattr(self.sink, "forced"):
            self.sink.forced = True  # nothing is left to be flushed, also when it is collected

    def drop(self) -> None:
        """Close what fsspec holds without handing it over."""
        self.forget()
        with contextlib.suppress(Exception):
            self.sink.close()


def _move(system: FileSystem, source: str, target: str) -> None:
    """Rename. The general ``mv`` of fsspec would take brackets in a name for a pattern."""
    if type(system).mv is importlib.import_module("fsspec.spec").AbstractFileSystem.mv:
        system.cp_file(source, target)
        system.rm_file(source)
    else:
        system.mv(source, target)


@contextlib.contextmanager
def _explaining(path: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001  # which ones there are is not ours to know
        raise_redacted(explained(error, path), error, path)
