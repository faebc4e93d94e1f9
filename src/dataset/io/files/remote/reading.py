"""A remote file as an open file: position, read-ahead and retries.

**Read-ahead.** Codecs read a few hundred kilobytes at a time, sequentially. One request per read would spend the time
on round trips. So a longer range is requested, and its rest serves the next reads. The range is short after the file is
opened or its position is moved, because it is then unknown how much will be read. It grows by a factor of four each
time that reading continues where the range ended. So one block of at most ``AHEAD_BYTES_MAX`` is held, and the unused
bytes are at most four times the bytes read sequentially.

None of fsspec's own caches does this: "readahead" and "bytes" request five more megabytes after each jump, "block" and
"background" hold up to 32 blocks, and all of them lose their contents when a request fails. Nothing is requested before
it is needed: background reading is the task of ``prefetch`` and ``num_parallel_reads``.

**Retries.** The bytes that were received before a connection broke are kept, and the next request continues after them.
If the file has another version by then, that is an error (objects.py).
"""

from __future__ import annotations

import io
import os
from typing import Any

from dataset.errors import ClosedError
from dataset.io.files.remote.cancellation import CancellationToken, current_interruption
from dataset.io.files.remote.http import HTTPObject
from dataset.io.files.remote.objects import AsyncObject, BlockingObject, RemoteObject
from dataset.io.files.remote.paths import FileSystem, filesystem_of, schemes
from dataset.io.files.remote.retrying import Tries
from dataset.io.files.remote.s3 import S3Object
from dataset.redaction import redacted

AHEAD_BYTES_MIN = 1 << 17
"""Bytes per request while it is unknown how much will be read. They take about a millisecond on a fast connection."""

AHEAD_BYTES_MAX = 1 << 23
"""Bytes per request when a file is read sequentially. At 100 MB/s this takes 80 ms; a round trip takes 40 ms."""

AHEAD_GROWTH = 4


def open_remote(path: str) -> RemoteFile:
    """Open a file of one of fsspec's file systems for reading. Its first bytes are fetched at once.

    Args:
        path: a path with a scheme.

    Raises:
        ImportError: a package for the scheme is missing.
        ValueError: the scheme is unknown.
        FileNotFoundError: the file does not exist.
        PermissionError: access is denied.
        BrokenConnectionError: the server could not be reached in several tries.
        OSError: any other failure.
    """
    interruption = current_interruption()
    system, name = filesystem_of(path)
    return RemoteFile(_kind(system, path)(system, name, path, interruption), path, interruption)


def _kind(system: FileSystem, path: str) -> type[RemoteObject]:
    """Return the class that fetches from a file system. For chained ones only the generic class is sure to work."""
    if "::" in path or not getattr(type(system), "async_impl", False):
        return BlockingObject
    scheme = schemes(path)[0]
    if scheme in {"http", "https"} and hasattr(system, "set_session"):
        return HTTPObject
    if scheme in {"s3", "s3a"} and hasattr(system, "_call_s3"):
        return S3Object
    return AsyncObject


class RemoteFile(io.RawIOBase):
    """File object that reads a remote object.

    ``seek`` works even if ``seekable`` is false, which only means that the size is unknown. It may then have to read
    the file again up to the position.

    Args:
        remote: the object; closing the file closes it.
        path: for messages.
        interruption: the reader's cancellation token.
    """

    def __init__(self, remote: RemoteObject, path: str, interruption: CancellationToken) -> None:
        super().__init__()
        self.name = redacted(path)
        self._path = path
        self._remote = remote
        self._interruption = interruption
        self._position = 0
        self._block = bytearray()
        self._start = 0  # offset of the block in the file
        self._ahead = AHEAD_BYTES_MIN // AHEAD_GROWTH
        try:
            self._fetch_block(0)
        except BaseException:
            self.close()
            raise

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._remote.size is not None

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_END:
            size = self._remote.size
            if size is None:
                raise io.UnsupportedOperation(f"{self.name}: the server does not report the size of the file")
            offset += size
        elif whence == os.SEEK_CUR:
            offset += self._position
        if offset < 0:
            raise ValueError(f"{self.name}: a position can't be negative, got {offset}")
        self._position = offset
        return offset

    def readall(self) -> bytes:
        pieces = []
        while piece := self.read(AHEAD_BYTES_MAX):
            pieces.append(piece)
        return b"".join(pieces)

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def read(self, size: int | None = -1, /) -> bytes:
        """Return ``size`` bytes, fewer only at the end; without ``size``, all remaining bytes."""
        if self.closed:
            raise ValueError(f"{self.name}: the file is closed")
        if size is None or size < 0:
            return self.readall()
        data = self._some(size)
        if len(data) == size or not data:
            return data
        pieces, missing = [data], size - len(data)
        while missing and (data := self._some(missing)):
            pieces.append(data)
            missing -= len(data)
        return b"".join(pieces)

    def close(self) -> None:
        if not self.closed:
            self._remote.close()
            self._block = bytearray()
        super().close()

    def _some(self, size: int) -> bytes:
        """Return 1 to ``size`` bytes of one block from the position; none at the end."""
        if size and not self._start <= self._position < self._start + len(self._block):
            self._fetch_block(size)
        begin = self._position - self._start
        piece = bytes(memoryview(self._block)[begin : begin + size])
        self._position += len(piece)
        return piece

    def _fetch_block(self, wanted: int) -> None:
        """Fetch a block at the position; its length depends on the access pattern."""
        goes_on = self._position == self._start + len(self._block)
        ahead = min(self._ahead * AHEAD_GROWTH, AHEAD_BYTES_MAX) if goes_on else AHEAD_BYTES_MIN
        self._block = bytearray()  # freed before the next block is fetched
        self._start, self._ahead = self._position, ahead
        size = self._remote.size
        stop = self._position + max(ahead, min(wanted, AHEAD_BYTES_MAX))
        if size is None or self._position < size:
            self._block = self._fetched(self._position, stop if size is None else min(stop, size))

    def _fetched(self, start: int, stop: int) -> bytearray:
        data = bytearray()
        tries = Tries(self._path, self._interruption)
        while True:
            had = len(data)
            if self._interruption.is_set():
                raise ClosedError(f"reading {self.name} was cancelled: the iterator is closed")
            try:
                self._remote.fetch(start + had, stop, data)
            except Exception as error:  # noqa: BLE001  # file systems raise errors of any type
                failure = error
            else:
                size = self._remote.size
                missing = 0 if size is None else min(stop, size) - start - len(data)
                if missing <= 0:
                    return data
                failure = EOFError(f"the response ended {missing} bytes early")
            try:
                tries.failed(failure, len(data) - had)
            finally:
                del failure  # see runtime/contract.py about kept exceptions
