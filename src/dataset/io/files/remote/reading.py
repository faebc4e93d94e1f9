"""A remote file as an open file: the place in it, what is read ahead, and what is tried again.

**Reading ahead.** Codecs read a few hundred kilobytes at a time, one after the other. A request for each would spend
the time on round trips, so a range is asked for that reaches further, and what is left of it serves the next reads. The
range is short after the file was opened or its place was moved, since then nobody knows how much will be read there,
and grows to four times its length each time that reading goes on where the range ended. So one block of at most
``AHEAD_BYTES_MAX`` is held, and not more is asked for in vain than four times what was read in one piece.

None of fsspec's own caches does this: "readahead" and "bytes" ask for five megabytes more after each jump, "block" and
"background" hold up to 32 blocks, and all of them lose what they had when a request fails. Nothing is asked for before
it is needed: to do that in the background is the business of ``prefetch`` and ``num_parallel_reads``.

**Trying again.** The bytes that came before a connection broke are kept, and the next request asks for those behind
them. They are of the same version, or it is an error (objects.py).
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

__all__ = ["RemoteFile", "open_remote"]

AHEAD_BYTES_MIN = 1 << 17
"""Asked for at once where nobody knows how much will be read. It takes about a millisecond on a good line."""

AHEAD_BYTES_MAX = 1 << 23
"""Asked for at once where a file is read through. At 100 MB/s that is 80 milliseconds, where a round trip is 40."""

AHEAD_GROWTH = 4


def open_remote(path: str) -> RemoteFile:
    """Open a file of a file system of fsspec for reading. Its first bytes are fetched at once.

    Args:
        path: with a scheme.

    Raises:
        ImportError: a library for the scheme is missing.
        ValueError: there is no such scheme.
        FileNotFoundError, PermissionError: what their names say.
        BrokenConnectionError: the server could not be reached in several tries.
        OSError: any other failure.
    """
    interruption = current_interruption()
    system, name = filesystem_of(path)
    return RemoteFile(_kind(system, path)(system, name, path, interruption), path, interruption)


def _kind(system: FileSystem, path: str) -> type[RemoteObject]:
    """Who fetches from a file system. Where several are chained, only the way that all of them have is sure to work."""
    if "::" in path or not getattr(type(system), "async_impl", False):
        return BlockingObject
    scheme = schemes(path)[0]
    if scheme in {"http", "https"} and hasattr(system, "set_session"):
        return HTTPObject
    if scheme in {"s3", "s3a"} and hasattr(system, "_call_s3"):
        return S3Object
    return AsyncObject


class RemoteFile(io.RawIOBase):
    """Reads a remote object from any place on.

    ``seek`` moves in it even where ``seekable`` is false, which only means that the size is not known: it may then cost
    reading the file anew up to the place.

    Args:
        remote: the object; closing the file closes it.
        path: for messages.
        interruption: of whoever reads.
    """

    def __init__(self, remote: RemoteObject, path: str, interruption: CancellationToken) -> None:
        super().__init__()
        self.name = redacted(path)
        self._path = path
        self._remote = remote
        self._interruption = interruption
        self._position = 0
        self._block = bytearray()
        self._start = 0  # of the block, in the file
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
                raise io.UnsupportedOperation(f"{self.name}: the server does not tell the size of the file")
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
        """``size`` bytes, and fewer only at the end; all that are left without it."""
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
        """1 to ``size`` bytes from the place on, of one block; none at the end."""
        if size and not self._start <= self._position < self._start + len(self._block):
            self._fetch_block(size)
        begin = self._position - self._start
        piece = bytes(memoryview(self._block)[begin : begin + size])
        self._position += len(piece)
        return piece

    def _fetch_block(self, wanted: int) -> None:
        """Have the block begin at the place, and reach as far as the way of reading suggests."""
        goes_on = self._position == self._start + len(self._block)
        ahead = min(self._ahead * AHEAD_GROWTH, AHEAD_BYTES_MAX) if goes_on else AHEAD_BYTES_MIN
        self._block = bytearray()  # let go of before the next one comes
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
                raise ClosedError(f"reading {self.name} was given up: the iterator is closed")
            try:
                self._remote.fetch(start + had, stop, data)
            except Exception as error:  # noqa: BLE001  # which ones may pass is not ours to know
                failure = error
            else:
                size = self._remote.size
                missing = 0 if size is None else min(stop, size) - start - len(data)
                if missing <= 0:
                    return data
                failure = EOFError(f"the answer ends {missing} bytes too early")
            try:
                tries.failed(failure, len(data) - had)
            finally:
                del failure  # see runtime/contract.py on exceptions that are kept
