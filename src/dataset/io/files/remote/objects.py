"""Fetching a range of bytes of one remote file, from any file system of fsspec.

A ``RemoteObject`` sends one request and raises its error; reading.py retries. It remembers the version of the file, if
the file system reports one, and never mixes bytes of two versions.
"""

from __future__ import annotations

import asyncio
import importlib
import io
import os
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import Any, NamedTuple

from dataset.amounts import BLOCK_BYTES
from dataset.errors import ClosedError, FileChangedError
from dataset.io.files.remote import retrying
from dataset.io.files.remote.cancellation import CancellationToken
from dataset.io.files.remote.paths import FileSystem
from dataset.redaction import redacted
from dataset.world import futures


class Version(NamedTuple):
    """Version of a file; unknown fields are None."""

    size: int | None = None
    etag: str | None = None
    modified: str | None = None

    def agrees(self, other: Version) -> bool:
        """Return whether no field that both know differs. If both have an ETag, it alone decides."""
        if self.etag and other.etag:
            return self.etag == other.etag
        return all(mine == theirs for mine, theirs in zip(self, other, strict=True) if None not in {mine, theirs})


class RemoteObject(ABC):
    """Remote object: fetches ranges of one remote file. Not thread-safe.

    Args:
        system: the file system of the file.
        name: the name of the file in the file system.
        path: the path that the user gave.
        interruption: cancels waits.
    """

    def __init__(self, system: FileSystem, name: str, path: str, interruption: CancellationToken) -> None:
        self._system = system
        self._name = name
        self._path = path
        self._interruption = interruption
        self._version: Version | None = None

    @property
    def version(self) -> Version | None:
        """Return the version; None before the first fetch."""
        return self._version

    @property
    def size(self) -> int | None:
        """Return the size in bytes; None before the first fetch, or if the file system does not know it."""
        return None if self._version is None else self._version.size

    @abstractmethod
    def fetch(self, start: int, stop: int, into: bytearray) -> None:
        """Append the bytes from ``start`` to ``stop``; fewer only at the end of the file. A failure keeps partial data.

        Raises:
            FileChangedError: the bytes belong to another version than earlier ones.
            ClosedError: the fetch was interrupted.
            Exception: any other error of the file system.
        """

    def begin(self, start: int, stop: int, into: bytearray) -> futures.Future[None] | None:  # noqa: ARG002
        """Begin to fetch a range in fsspec's thread, beside others; None if that is not possible.

        What does not arrive in this way is fetched again by ``fetch``.
        """
        return None

    def learn_version(self) -> None:
        """Ask for the version with as few bytes as possible. Raises what ``fetch`` raises."""
        self.fetch(0, 0, bytearray())

    def close(self) -> None:  # noqa: B027  # some hold nothing
        """Release resources. Does not block; may be called more than once and from any thread."""

    def _note(self, version: Version) -> None:
        """Remember the version, or check that it has not changed."""
        if self._version is None:
            self._version = version
        elif not self._version.agrees(version):
            raise self._changed(f"before: {_words(self._version)}; now: {_words(version)}")

    def _changed(self, words: str) -> FileChangedError:
        return FileChangedError(f"the file was changed while it was read: {words}; read it again", path=self._path)


def _words(version: Version) -> str:
    words = [f"{version.size} bytes"] if version.size is not None else []
    words += [f"ETag {version.etag}"] if version.etag else []
    words += [f"modified {version.modified}"] if version.modified else []
    return ", ".join(words) or "an unknown version"


class AsyncObject(RemoteObject):
    """Remote object of an asynchronous file system, which fetches ranges in fsspec's own thread, as most clouds do.

    The file system does not report the version of a range. So it is queried before the first range and after each
    failure.
    """

    _doubtful = True  # whether the version has to be queried before the next range

    def fetch(self, start: int, stop: int, into: bytearray) -> None:
        run(self._system, self._fetch(start, stop, into), self._interruption)

    async def _fetch(self, start: int, stop: int, into: bytearray) -> None:
        if self._doubtful:
            async with asyncio.timeout(2 * retrying.STALL_SECONDS):
                self._system.invalidate_cache(self._system._parent(self._name))  # noqa: SLF001  # the cached listing may be outdated
                self._note(version_of(await self._system._info(self._name), self._path))  # noqa: SLF001  # fsspec's interface for async callers
            self._doubtful = False
        stop = stop if self.size is None else min(stop, self.size)
        if start < stop:
            await self._fetch_beside(start, stop, into)

    def begin(self, start: int, stop: int, into: bytearray) -> futures.Future[None] | None:
        return None if self._doubtful else begun(self._system, self._fetch_beside(start, stop, into))

    async def _fetch_beside(self, start: int, stop: int, into: bytearray) -> None:
        try:
            async with asyncio.timeout(2 * retrying.STALL_SECONDS):
                into += await self._system._cat_file(self._name, start=start, end=stop)  # noqa: SLF001
        except Exception:
            self._doubtful = True
            raise
        if len(into) < stop - start:
            self._doubtful = True


class BlockingObject(RemoteObject):
    """Remote object of any other file system, opened with its ``open`` method. Requests can't be interrupted."""

    _file: Any = None
    _at = 0  # the position of the file

    def fetch(self, start: int, stop: int, into: bytearray) -> None:
        try:
            if self._file is None:
                self._open()
            self._go_to(start)
            while self._at < stop and (piece := self._file.read(stop - self._at)):
                into += piece
                self._at += len(piece)
        except BaseException:
            self.close()  # after a failure the position of the file is unknown
            raise

    def _open(self) -> None:
        file = self._system.open(self._name, "rb")
        memory = importlib.import_module("fsspec.implementations.memory")
        if isinstance(file, memory.MemoryFile):  # shared by all readers, with one position: make a private view
            file = io.BytesIO(file.getvalue())
        self._file, self._at = file, 0
        version = version_of(self._system.info(self._name), self._path)
        self._note(version if file.seekable() else version._replace(size=None))

    def _go_to(self, start: int) -> None:
        if start == self._at:
            return
        if self._file.seekable():
            self._at = self._file.seek(start, os.SEEK_SET)
            return
        if start < self._at:
            self.close()
            self._open()
        while self._at < start and (piece := self._file.read(min(BLOCK_BYTES, start - self._at))):
            self._at += len(piece)

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()


def version_of(info: dict[str, Any], path: str) -> Version:
    """Return the version from a file system's info about a file; the keys differ between file systems."""
    if info.get("type") == "directory":
        raise IsADirectoryError(f"{redacted(path)} is a directory")
    words = {key.lower(): value for key, value in info.items() if value is not None}
    times = ("lastmodified", "mtime", "updated", "last_modified", "created")  # the last for immutable files
    modified = next((words[key] for key in times if key in words), None)
    etag = next((words[key] for key in ("etag", "generation", "md5hash") if key in words), None)
    return Version(words.get("size"), None if etag is None else str(etag), None if modified is None else str(modified))


def run(system: FileSystem, coroutine: Coroutine[Any, Any, None], interruption: CancellationToken) -> None:
    """Run a coroutine in fsspec's thread, and wait for its result.

    Raises:
        ClosedError: ``interruption`` was set; the coroutine is cancelled.
    """
    wait_for(begun(system, coroutine), interruption)


def begun(system: FileSystem, coroutine: Coroutine[Any, Any, None]) -> futures.Future[None]:
    """Run a coroutine in fsspec's thread; return its future."""
    try:
        return asyncio.run_coroutine_threadsafe(coroutine, system.loop)
    except BaseException:
        coroutine.close()
        raise


def wait_for(future: futures.Future[None], interruption: CancellationToken) -> None:
    """Wait for what was begun, and raise its exception.

    Raises:
        ClosedError: ``interruption`` was set; the coroutine is cancelled.
    """
    with interruption.cancelling(future.cancel):
        try:
            future.result()
        except futures.CancelledError:
            if interruption.is_set():
                raise ClosedError("a remote read was cancelled: the iterator is closed") from None
            raise ConnectionAbortedError("the request was cancelled") from None
        except BaseException:
            future.cancel()  # Ctrl-C, for example: the result is not needed any more
            raise
