"""Remote object whose blocks are kept on the disk, and fetched once by all processes of the machine.

The current version of the file always comes from the server. If the first block is cached, in whatever version, one
small request asks for it; otherwise the first range states it, as without a cache. A file without a known size and
version is not cached.

**Claims.** While a process fetches blocks, it listens on a socket that is named after the first block of the range that
its reader has requested. Another process that misses blocks of a range with the same beginning connects to this socket,
and waits until the connection ends: when the blocks are stored, the fetch has failed, or the process has died. Then it
looks again, and fetches what is missing. Nothing is accepted or sent, so no thread serves the socket.

Claims only save requests, so nothing depends on them: a reader waits for a few of them, none longer than a server may
stall, and then fetches without one. The reader that holds a claim waits neither for other claims nor for its consumer:
blocks that are fetched ahead are stored when they arrive, in fsspec's thread. Only Linux has sockets with names that
end with their process; elsewhere, all readers that miss a block fetch it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import struct
import sys
from collections.abc import Callable

from dataset.io.files.remote import retrying
from dataset.io.files.remote.cancellation import CancellationToken
from dataset.io.files.remote.disk_cache import BLOCKS, CACHED_BYTES, DiskCache
from dataset.io.files.remote.objects import RemoteObject
from dataset.world import socket
from dataset.world.futures import CancelledError, Future

_WAITERS_MAX = 1024
_CREDENTIALS = struct.Struct("3i")  # process, user, group


class CachedObject(RemoteObject):
    """Remote object with a disk cache.

    Args:
        remote: the object whose ranges are cached; closing this one closes it.
        cache: the cache.
        place: identifies the file in the cache.
        interruption: cancels waits.
    """

    def __init__(
        self, remote: RemoteObject, cache: DiskCache, place: tuple[object, ...], interruption: CancellationToken
    ) -> None:
        self._remote = remote
        self._cache = cache
        self._interruption = interruption
        self._names = cache.digest(CACHED_BYTES, *place)
        self._digest: bytes | None = None  # of the version, once it is known; empty if the file is not cached
        self._rest: tuple[int, bytearray] = 0, bytearray()  # the start of a block that has not arrived whole

    @property
    def size(self) -> int | None:
        return self._remote.size

    def close(self) -> None:
        self._remote.close()

    def fetch(self, start: int, stop: int, into: bytearray) -> None:
        self._learn_version(start)
        if self._version_digest() == b"":
            self._remote.fetch(start, stop, into)
            return
        address, at = self._address(start), start
        while at < self._end(stop):
            had = len(into)
            if not self._load(at, stop, into):
                self._fetch_blocks(at, stop, into, address)
            if len(into) == had:
                return  # the end of a file of unknown size
            at += len(into) - had

    def begin(self, start: int, stop: int, into: bytearray) -> Future[None] | None:
        if not self._version_digest():
            return self._remote.begin(start, stop, into)
        stop = self._end(stop)
        address = self._address(start)
        start = self._load_all(start, stop, into)
        claim = self._claim(address) if start < stop else None
        if claim is not None:
            start = self._load_all(start, stop, into)  # the last claim may have ended just now
        if start >= stop:
            if claim is not None:
                claim.close()
            done: Future[None] = Future()
            done.set_result(None)
            return done
        if claim is None:
            return _Elsewhere(address, self._interruption)
        first = start - start % CACHED_BYTES
        buffer = bytearray() if into else into  # copied only if something comes before it

        def arrived() -> None:
            self._keep(first, buffer)
            if buffer is into:
                del into[stop - first :]
                del into[: start - first]
            else:
                into.extend(memoryview(buffer)[start - first : stop - first])

        fetching: Future[None] | None = None
        try:
            fetching = self._remote.begin(first, self._end_of_missing(start, stop), buffer)
        finally:
            if fetching is None:
                claim.close()
        return None if fetching is None else _Arriving(fetching, arrived, claim)

    def _end(self, stop: int) -> int:
        size = self.size
        return stop if size is None else min(stop, size)

    def _place(self, start: int) -> tuple[bytes, int]:
        """Return the file of the cache, and the number of the block in it, that hold an offset."""
        file, number = divmod(start // CACHED_BYTES, BLOCKS)
        names = self._names.copy()
        names.update(struct.pack("<Q", file))
        return names.digest(), number

    def _learn_version(self, start: int) -> None:
        """Ask for the version, if it is unknown and the block that holds an offset is cached, in whatever version."""
        if self._remote.version is None and self._cache.holds(*self._place(start)):
            self._remote.learn_version()

    def _version_digest(self) -> bytes | None:
        if self._digest is None:
            version = self._remote.version
            if version is not None:
                is_known = version.size is not None and (version.etag or version.modified)
                self._digest = self._cache.digest(*version).digest() if is_known else b""
        return self._digest

    def _load(self, start: int, stop: int, into: bytearray) -> int:
        """Append the bytes of one block from ``start``, if it is cached; return their number."""
        version = self._version_digest()
        found = self._cache.load(*self._place(start), version) if version else None
        first = start - start % CACHED_BYTES
        if found is None or len(found) != self._end(first + CACHED_BYTES) - first:
            return 0
        piece = memoryview(found)[start - first : stop - first]
        into += piece
        return len(piece)

    def _load_all(self, start: int, stop: int, into: bytearray) -> int:
        """Append the bytes from ``start`` up to the first missing block; return its offset, or ``stop``."""
        while start < stop and (count := self._load(start, stop, into)):
            start += count
        return start

    def _end_of_missing(self, start: int, stop: int) -> int:
        """Return the end of the missing blocks from ``start`` on, up to the one that holds the byte before ``stop``."""
        end = start - start % CACHED_BYTES + CACHED_BYTES
        while end < stop and not self._cache.holds(*self._place(end)):
            end += CACHED_BYTES
        return self._end(end)

    def _fetch_blocks(self, start: int, stop: int, into: bytearray, address: bytes) -> None:
        """Fetch missing blocks from ``start`` on and append their bytes, if possible with the claim on them."""
        claim = self._claim(address)
        for _ in range(retrying.TRIES):
            if claim is not None:
                break
            _wait_for(address, self._interruption)
            if self._interruption.is_set():
                return
            claim = self._claim(address)
        with claim or contextlib.nullcontext():
            self._learn_version(start)
            if not self._load(start, stop, into):  # the last claim may have ended just now
                self._fetch_missing(start, stop, into)

    def _fetch_missing(self, start: int, stop: int, into: bytearray) -> None:
        """Fetch missing blocks from ``start`` on and append their bytes. A failure keeps partial data."""
        first, buffer = start - start % CACHED_BYTES, bytearray()
        if self._rest[0] == first and start <= first + len(self._rest[1]):
            buffer = self._rest[1]
        try:
            self._remote.fetch(first + len(buffer), self._end_of_missing(start, stop), buffer)
        finally:
            kept = self._keep(first, buffer)
            self._rest = first + kept, buffer[kept:]
            into += memoryview(buffer)[start - first : stop - first]

    def _address(self, start: int) -> bytes:
        """Return the name of the socket of the claim on a range that begins in the block of ``start``."""
        name, number = self._place(start)
        return f"\0dataset-cache-{name.hex()}-{number}".encode()

    def _claim(self, address: bytes) -> contextlib.ExitStack | None:
        """Return a claim on a range, to be closed; None if another reader holds it."""
        claim = contextlib.ExitStack()
        if sys.platform == "linux" and self._cache.stores:  # otherwise others would wait in vain
            try:
                listener = claim.enter_context(socket.socket(socket.AF_UNIX))
                listener.bind(address)
                listener.listen(_WAITERS_MAX)
            except OSError as error:
                claim.close()
                if error.errno == errno.EADDRINUSE:
                    return None
        return claim

    def _keep(self, first: int, data: bytearray) -> int:
        """Store the whole blocks of what has arrived from ``first``; return the number of their bytes."""
        version, size = self._version_digest(), self.size
        if not version:
            return 0
        whole = len(data) if first + len(data) == size else len(data) - len(data) % CACHED_BYTES
        with memoryview(data) as view:
            at = 0
            while at < whole:
                name, number = self._place(first + at)
                end = min(at + (BLOCKS - number) * CACHED_BYTES, whole)
                with view[at:end] as blocks:
                    self._cache.store(name, number, version, blocks)
                at = end
        return whole


class _Arriving(Future[None]):
    """Range that is being fetched. What has arrived is kept before the result is set.

    Args:
        fetching: the request.
        arrived: keeps what has arrived.
        claim: closed afterwards.
    """

    def __init__(self, fetching: Future[None], arrived: Callable[[], None], claim: contextlib.ExitStack) -> None:
        super().__init__()
        self._fetching = fetching
        self._arrived = arrived
        self._claim = claim
        fetching.add_done_callback(self._finish)

    def cancel(self) -> bool:
        return self._fetching.cancel()

    def _finish(self, fetching: Future[None]) -> None:
        failure: BaseException | None = None
        try:
            with self._claim:
                if fetching.cancelled():  # the request may still end, in another thread
                    failure = CancelledError()
                else:
                    failure = fetching.exception()
                    self._arrived()
        except BaseException as error:  # noqa: BLE001  # raised by the result
            failure = error
        if failure is None:
            self.set_result(None)
        else:
            self.set_exception(failure)


class _Elsewhere(Future[None]):
    """Range that another reader fetches. The result waits for it, and has no bytes: then the range is looked up again.

    Args:
        address: that of the claim on its first missing block.
        interruption: ends the wait.
    """

    def __init__(self, address: bytes, interruption: CancellationToken) -> None:
        super().__init__()
        self._address = address
        self._interruption = interruption

    def result(self, timeout: float | None = None) -> None:  # noqa: ARG002  # the wait is bounded by itself
        _wait_for(self._address, self._interruption)


def _wait_for(address: bytes, interruption: CancellationToken) -> None:
    """Wait until the present claim on a block ends, if there is one."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as waiting:
        waiting.settimeout(2 * retrying.STALL_SECONDS)
        waiting.connect(address)
        _, user, _ = _CREDENTIALS.unpack(waiting.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
        if user != os.geteuid():  # any user can take any name
            return

        def end() -> None:
            with contextlib.suppress(OSError):
                waiting.shutdown(socket.SHUT_RDWR)

        with interruption.cancelling(end):
            waiting.recv(1)  # the end of the connection
