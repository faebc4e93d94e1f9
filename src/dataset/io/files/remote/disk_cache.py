"""Disk cache of remote files: blocks of them in a folder that all processes of a user on this machine share.

A file of the cache has the blocks of a range of a remote file, each at its place, after a page with a header for each.
Its name is a keyed digest of the place of the remote file and the number of the range, so no name contains anything
that comes from data, and no digest tells a secret of a URL. The header of a block has a digest of the version of the
remote file, the length of the block, and a checksum of all that and of the name and place of the block. A block that
does not agree with its header, or has another version, is fetched and written again. Its bytes are written before its
header, so a block that is being written, or that a killed process has left, does not agree either.

The files are spread over a few folders by their names. Each folder has an equal share of the limit, and a ledger: a
file whose size in bytes is the number of pages that the files of the folder occupy, at most. A process appends to it
before it writes blocks, so processes respect the limit together, and no folder is listed for each block. A process that
exceeds the share removes the files that were used least recently, and counts the rest. The ledger is locked meanwhile;
those that write blocks share the lock, so none is written while files are counted.

Nothing is flushed to the disk. What a power failure damages, the checksums show.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import logging
import os
import secrets
import shutil
import stat
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from crc32c import crc32c

from dataset.amounts import PEEK_BYTES
from dataset.io.files.locks import NO_FOLLOW, hold
from dataset.options import FilesOptions

_log = logging.getLogger("dataset")

CACHED_BYTES = 1 << 17
"""Bytes of a block: as many as the first request for a file, or a random access, takes."""

BLOCKS = 16
"""Blocks of a file of the cache. Creating a file takes as long as writing several blocks."""

FOLDER = "DATASET_CACHE"
"""The environment variable that names the folder for pipelines whose options name none, and for other reads."""

LIMIT = "DATASET_CACHE_BYTES"

_SHARDS = 16
_SHARE_FILES_MIN = 4
_HEADER = struct.Struct("<16sII")  # version, length, checksum
_KEY_BYTES = 32
_OPEN = NO_FOLLOW | getattr(os, "O_NONBLOCK", 0)  # opening a pipe must not block
_CREATE = os.O_CREAT | NO_FOLLOW

_caches: dict[tuple[str, int | None], DiskCache | None] = {}


def cache_of(files: FilesOptions | None) -> DiskCache | None:
    """Return the cache that the options of a pipeline, or else the environment, request; None if there is none.

    Raises:
        OSError: the folder belongs to another user, is open to others, or is a link.
        ValueError: the limit is too small.
    """
    folder = os.environ.get(FOLDER, "") if files is None or files.cache is None else files.cache
    if not folder:
        return None
    nbytes = _limit_of_environment() if files is None or not files.cache_bytes else files.cache_bytes
    key = folder, nbytes
    if key not in _caches:
        _caches.setdefault(key, _opened(folder, nbytes))  # no lock, which a fork could leave locked
    return _caches[key]


def _limit_of_environment() -> int | None:
    words = os.environ.get(LIMIT, "")
    if words and not words.isdecimal():
        raise ValueError(f"{LIMIT} must be a number of bytes, got {words!r:.100}")
    return int(words or 0) or None


def _opened(folder: str, nbytes: int | None) -> DiskCache | None:
    try:
        return DiskCache(folder, nbytes)
    except _UnsafeFolderError as error:
        raise OSError(error.errno, error.strerror, error.filename) from None
    except OSError as error:
        _log.warning("files.cache: remote files are read without a cache: %s", error)
        return None


class _UnsafeFolderError(OSError):
    """A folder that another user may have prepared."""


class DiskCache:
    """Folder of the blocks of remote files. Thread-safe.

    Args:
        folder: the folder in which the user's own one is created.
        nbytes: the most bytes of all blocks; None for half of what is free or already used by the cache.

    Attributes:
        stores: whether blocks are still stored. A full disk, for example, ends that.
    """

    def __init__(self, folder: str, nbytes: int | None) -> None:
        least = _SHARDS * _SHARE_FILES_MIN * _pages(BLOCKS * CACHED_BYTES) * PEEK_BYTES
        if nbytes is not None and nbytes < least:
            raise ValueError(f"files.cache_bytes must be at least {least}, or None, got {nbytes}")
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103
        user = f"-{os.geteuid()}" if hasattr(os, "geteuid") else ""
        self.folder = os.path.join(folder, f"dataset-cache{user}")  # noqa: PTH118
        self.stores = True
        self._shards = [self.folder + f"/{number:x}" for number in range(_SHARDS)]
        for own in (self.folder, *self._shards):
            _make_own(own)
        self._key = _key_of(self.folder)
        held = sum(_size(_ledger(shard)) for shard in self._shards) * PEEK_BYTES
        limit = nbytes or (shutil.disk_usage(self.folder).free + held) // 2
        self._share = limit // _SHARDS // PEEK_BYTES  # of a shard, in pages

    def digest(self, *words: object) -> Any:
        """Return the keyed hash of some words, to be extended or used."""
        return hashlib.blake2b(repr(words).encode(errors="surrogateescape"), digest_size=16, key=self._key)

    def holds(self, name: bytes, number: int) -> bool:
        """Return whether a block of a file was stored, of any version."""
        try:
            with open(os.open(self._path(name), os.O_RDONLY | _OPEN), "rb", buffering=0) as file:  # noqa: PTH123
                _, length, _ = _header(file, number)
                return length > 0
        except OSError:
            return False

    def load(self, name: bytes, number: int, version: bytes) -> bytes | None:
        """Return the content of a block, and mark the file as used; None without an intact block of this version."""
        path = self._path(name)
        try:
            with open(os.open(path, os.O_RDONLY | _OPEN), "rb", buffering=0) as file:  # noqa: PTH123
                found, length, checksum = _header(file, number)
                if found != version or length > CACHED_BYTES:
                    return None
                file.seek(_offset(number))
                data = file.read(length)
            if len(data) < length or checksum != _checksum(name, number, version, data):
                return None
            os.utime(path)
        except OSError:  # most often there is no file; what else is in its place is replaced when a block is stored
            return None
        return data

    def store(self, name: bytes, number: int, version: bytes, data: memoryview) -> None:
        """Store blocks of a file from ``number``, unless the limit leaves no room.

        If they cannot be written, nothing is stored from then on.
        """
        if not self.stores:
            return
        try:
            with self._reserved(self._shard(name), _pages(len(data))) as is_allowed:
                if is_allowed:
                    self._write(name, number, version, data)
        except FileNotFoundError:  # the cache was removed meanwhile
            pass
        except OSError as error:
            self.stores = False
            _log.warning("files.cache: no more blocks of remote files are stored: %s", error)

    def _shard(self, name: bytes) -> str:
        return self._shards[name[0] % _SHARDS]

    def _path(self, name: bytes) -> str:
        return f"{self._shard(name)}/{name.hex()}"

    def _write(self, name: bytes, number: int, version: bytes, data: memoryview) -> None:
        headers = b""
        for count, start in enumerate(range(0, len(data), CACHED_BYTES)):
            block = data[start : start + CACHED_BYTES]
            headers += _HEADER.pack(version, len(block), _checksum(name, number + count, version, block))
        with _opened_for_writing(self._path(name)) as file:
            for offset, content in ((_offset(number), data), (number * _HEADER.size, headers)):
                file.seek(offset)
                if file.write(content) != len(content):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._path(name))

    @contextlib.contextmanager
    def _reserved(self, shard: str, pages: int) -> Iterator[bool]:
        """Enter pages into the ledger of a shard, and share it with other writers; yield whether the limit allows it.

        No lock is waited for: blocks that would have to wait are not stored.
        """
        path = _ledger(shard)
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | _CREATE | _OPEN, 0o600)
        try:
            is_held = hold(descriptor, path, unsupported=True, shared=True)
            if is_held:
                os.write(descriptor, bytes(pages))
                if os.fstat(descriptor).st_size > self._share:
                    is_held = hold(descriptor, path, unsupported=True)  # no block is being written then
                    if is_held:
                        os.ftruncate(descriptor, self._make_room(shard))
                        os.write(descriptor, bytes(pages))
                        is_held = hold(descriptor, path, unsupported=True, shared=True)
            yield is_held and os.fstat(descriptor).st_size <= self._share
        finally:
            os.close(descriptor)

    def _make_room(self, shard: str) -> int:
        """Remove the files of a shard that were used least recently; return the pages of the others."""
        found = []
        with os.scandir(shard) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    if entry.path != _ledger(shard):
                        about = entry.stat(follow_symlinks=False)
                        nbytes = about.st_blocks * 512 if hasattr(about, "st_blocks") else about.st_size
                        found.append((about.st_mtime_ns, -(-nbytes // PEEK_BYTES), entry.path))
        found.sort(reverse=True)
        total = sum(pages for _, pages, _ in found)
        while found and total > self._share - self._share // _SHARE_FILES_MIN:
            _, pages, path = found.pop()
            with contextlib.suppress(OSError):  # a directory, for example, which is not ours
                os.unlink(path)  # noqa: PTH108
            total -= pages
        return total


def _pages(nbytes: int) -> int:
    return 1 + -(-nbytes // PEEK_BYTES)


def _offset(number: int) -> int:
    return PEEK_BYTES + number * CACHED_BYTES


def _ledger(shard: str) -> str:
    return f"{shard}/pages"


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def _header(file: Any, number: int) -> tuple[bytes, int, int]:
    """Return version, length and checksum of a block; the length is 0 if it was not stored."""
    file.seek(number * _HEADER.size)
    content = file.read(_HEADER.size)
    version, length, checksum = _HEADER.unpack(content) if len(content) == _HEADER.size else (b"", 0, 0)
    return version, length, checksum


def _checksum(name: bytes, number: int, version: bytes, data: bytes | memoryview) -> int:
    checksum: int = crc32c(data, crc32c(b"%b%b%d %d" % (name, version, number, len(data))))
    return checksum


def _opened_for_writing(path: str) -> Any:
    """Open a file of the cache, which is created if it does not exist. What is not a file is replaced."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(os.lstat(path).st_mode):
            os.unlink(path)  # noqa: PTH108
    return open(os.open(path, os.O_RDWR | _CREATE | _OPEN, 0o600), "r+b", buffering=0)  # noqa: PTH123


def _make_own(folder: str) -> None:
    """Create a folder that only this user can enter, or check that it is one."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)  # noqa: PTH102
    found = os.lstat(folder)
    if stat.S_ISLNK(found.st_mode) or not stat.S_ISDIR(found.st_mode):
        raise _UnsafeFolderError(errno.ENOTDIR, "files.cache: this must be a folder, not a link; remove it", folder)
    if not hasattr(os, "geteuid"):
        return
    if found.st_uid != os.geteuid():
        words = "files.cache: this folder belongs to another user; choose another place for the cache"
        raise _UnsafeFolderError(errno.EACCES, words, folder)
    if found.st_mode & 0o077:
        words = "files.cache: other users may enter this folder; remove it, or make it private with chmod 700"
        raise _UnsafeFolderError(errno.EACCES, words, folder)


def _key_of(folder: str) -> bytes:
    """Return the key of a cache, which the first process creates."""
    path = Path(folder, "key")
    key = _content(path)
    if len(key) != _KEY_BYTES:
        if key:
            path.unlink(missing_ok=True)
        temporary = path.with_name(f"key.{secrets.token_hex(8)}.tmp")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_EXCL | _CREATE, 0o600)
        try:
            os.write(descriptor, secrets.token_bytes(_KEY_BYTES))
            with contextlib.suppress(FileExistsError):  # unlike a rename, a link does not replace another key
                os.link(temporary, path, follow_symlinks=False)
        finally:
            os.close(descriptor)
            temporary.unlink()
        key = _content(path)
        if len(key) != _KEY_BYTES:
            raise OSError(errno.EIO, "files.cache: the key of the cache cannot be read", str(path))
    return key


def _content(path: Path) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | _OPEN)
    except FileNotFoundError:
        return b""
    try:
        return os.read(descriptor, _KEY_BYTES + 1)
    finally:
        os.close(descriptor)
