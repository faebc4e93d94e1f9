"""A remote file as an open file: position, read-ahead and retries.

**Read-ahead.** Codecs read a few hundred kilobytes at a time, sequentially. One request per read would spend the time
on round trips. So a longer range is requested, and its rest serves the next reads. The range is short after the file is
opened or its position is moved, because it is then unknown how much will be read. It grows by a factor of four each
time that reading continues where the range ended. Then the ranges that follow are requested, too, several at a time
(ranges_ahead.py). The requested bytes are at most about four times the bytes that were read sequentially.

None of fsspec's own caches does this: "readahead" and "bytes" request five more megabytes after each jump, "block" and
"background" hold up to 32 blocks, and all of them lose their contents when a request fails.

**Retries.** The bytes that were received before a connection broke are kept, and the next request continues after them.
If the file has another version by then, that is an error (objects.py).
"""

from __future__ import annotations

import io
import itertools
import os
from collections.abc import Sequence
from typing import Any

from dataset.errors import ClosedError
from dataset.io.files.remote import retrying
from dataset.io.files.remote.backoff import Backoff
from dataset.io.files.remote.cached_object import CachedObject
from dataset.io.files.remote.cancellation import CancellationToken, current_interruption
from dataset.io.files.remote.disk_cache import cache_of
from dataset.io.files.remote.http import HTTPObject
from dataset.io.files.remote.objects import AsyncObject, BlockingObject, RemoteObject, wait_for
from dataset.io.files.remote.paths import FileSystem, filesystem_of, schemes
from dataset.io.files.remote.ranges_ahead import RangesAhead, RequestedRange, pace_of
from dataset.io.files.remote.retrying import Tries, back_off
from dataset.io.files.remote.s3 import S3Object
from dataset.redaction import redacted
from dataset.world import time

AHEAD_BYTES_MIN = 1 << 17
"""Bytes per request while it is unknown how much will be read. They take about a millisecond on a fast connection."""

AHEAD_BYTES_MAX = 1 << 23
"""Bytes per request when a file is read sequentially from a file system that fetches one range at a time."""

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
        OSError: any other failure; also if the folder of the cache is not private.
    """
    interruption = current_interruption()
    system, name = filesystem_of(path)
    cache = cache_of(interruption.files)
    remote: RemoteObject = _kind(system, path)(system, name, path, interruption)
    if cache is not None:
        place = path, sorted(system.storage_options.items())  # such as the address of an S3 server
        remote = CachedObject(remote, cache, place, interruption)
    return RemoteFile(remote, path, interruption, Backoff(path, cache))


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
        host: the backoff of the host.
    """

    def __init__(self, remote: RemoteObject, path: str, interruption: CancellationToken, host: Backoff) -> None:
        super().__init__()
        self.name = redacted(path)
        self._path = path
        self._remote = remote
        self._interruption = interruption
        self._host = host
        self._position = 0
        self._block = bytearray()
        self._start = 0  # offset of the block in the file
        self._length = AHEAD_BYTES_MIN // AHEAD_GROWTH  # of the block, if its file did not end
        self._ahead = RangesAhead(remote, pace_of(path.rpartition("/")[0]), host)
        self._in_a_row = 0  # bytes that were read sequentially before the block
        try:
            self._fetch_block(0)
        except BaseException:
            self.close()
            raise
        self._in_a_row = self._ahead.pace.in_a_row  # if reading continues, it probably does so to the end

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

    def expect(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Announce which ranges will be read next, in this order, each from its first to before its last offset."""
        if any(stop != start for (_, stop), (start, _) in itertools.pairwise(ranges)):  # others are read sequentially
            self._ahead.expect(ranges)

    def close(self) -> None:
        if not self.closed:
            self._ahead.close()
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
        position, size = self._position, self._remote.size
        goes_on = position == self._start + len(self._block)
        self._in_a_row = self._in_a_row + len(self._block) if goes_on else 0
        self._length = min(self._length * AHEAD_GROWTH, AHEAD_BYTES_MAX) if goes_on else AHEAD_BYTES_MIN
        self._block = bytearray()  # freed before the next block is fetched
        self._start = position
        if size is not None and position >= size:
            if goes_on:
                self._ahead.pace.in_a_row = self._in_a_row
            return
        first = self._ahead.take(position)
        if first is None:
            stop = position + max(self._length, min(wanted, AHEAD_BYTES_MAX))
            self._extend(stop)
            self._block = self._fetched(position, stop, bytearray())
            return
        try:
            self._start = first.start
            self._extend(first.stop)
            self._block = self._fetched(first.start, first.stop, self._arrived(first))
        finally:
            first.close()

    def _extend(self, start: int) -> None:
        """Request what follows the offset ``start``, if the size is known and enough was read sequentially."""
        size = self._remote.size
        if size is not None:
            self._ahead.extend(start, self._start + AHEAD_GROWTH * self._in_a_row, size)

    def _arrived(self, first: RequestedRange) -> bytearray:
        """Wait for a range that was requested before, and return what has arrived of it."""
        assert first.future is not None  # only such ranges are kept
        began = time.perf_counter()
        try:
            wait_for(first.future, self._interruption)
        except ClosedError:
            raise
        except Exception as error:  # noqa: BLE001  # the next request for the same bytes tells whether it passes
            self._ahead.failed()
            back_off(self._host, error, retrying.FIRST_WAIT_SECONDS)
            return bytearray(first.data)
        self._ahead.arrived(len(first.data), time.perf_counter() - began)
        return first.data

    def _fetched(self, start: int, stop: int, data: bytearray) -> bytearray:
        """Return the bytes from ``start`` to ``stop``; ``data`` holds the first of them."""
        tries = Tries(self._path, self._interruption, self._host)
        while (size := self._remote.size) is None or len(data) < min(stop, size) - start:
            had = len(data)
            tries.wait_for_host()
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
        return data
