"""Lock files that are released when their process dies.

The operating system locks the file for the process that has opened it, and releases the lock when the process ends for
any reason. System locks do not distinguish two holders within one process or a forked child; a table in this module
does.

Other programs can predict the names of lock files. So symbolic links are not followed, files are never truncated, and a
file with unexpected content is an error and is not changed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import threading
from pathlib import Path
from typing import Self

try:
    import fcntl
except ImportError:  # Windows: only holders within one process exclude each other
    fcntl = None  # type: ignore[assignment]

__all__ = ["LockFile", "holder_of"]

_guard = threading.RLock()  # guards _held; reentrant, because a finalizer may release a lock while it is held
_held: dict[str, int] = {}  # the lock files of this process, and its ID, which differs in a forked child


_FLAGS = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_CONTENT = re.compile(rb"process \d+ *\n?")
_CONTENT_BYTES_MAX = 64


class LockFile:
    """Held lock file, created by ``take``. Releasing it removes the file.

    Attributes:
        path: the path of the file.
        was_marked: whether an earlier holder had written its process ID into the file.
    """

    def __init__(self, path: str, key: str, descriptor: int, was_marked: bool) -> None:
        self.path = path
        self.was_marked = was_marked
        self._key = key
        self._descriptor = descriptor
        self._owner = os.getpid()

    @classmethod
    def take(cls, path: str, *, create: bool = True) -> Self | None:
        """Acquire the lock at ``path``; return None if it is already held, or if the file does not exist.

        Args:
            path: the path of the lock file.
            create: whether to create the file if it does not exist, and to write the ID of this process into it.

        Raises:
            OSError: the file cannot be created, or it is a symbolic link or has unexpected content.
        """
        key = os.path.realpath(path)
        with _guard:
            if _held.get(key) == os.getpid():
                return None
            while True:
                try:
                    descriptor = _opened(path, os.O_CREAT if create else 0)
                except FileNotFoundError:
                    if create:
                        raise
                    return None
                if not _lock(descriptor):
                    os.close(descriptor)
                    return None
                if _is_at(descriptor, path):  # false if its holder has removed it since it was opened here
                    break
                os.close(descriptor)
            try:
                content = _content_of(descriptor, path)
                if create:
                    _mark(descriptor, path, is_new=not content)
            except BaseException:
                os.close(descriptor)
                raise
            _held[key] = os.getpid()
        return cls(path, key, descriptor, bool(content))

    def release(self, *, keep: bool = False) -> None:
        """Release the lock and remove the file. A second call does nothing; a forked child only closes its copy.

        Args:
            keep: whether to keep the file.
        """
        if self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        with _guard:
            if os.getpid() == self._owner:
                with contextlib.suppress(OSError):
                    if not keep and _is_at(descriptor, self.path):
                        Path(self.path).unlink()
                _held.pop(self._key, None)
            os.close(descriptor)


def holder_of(path: str) -> str:
    """Return a description of the holder of a lock, as far as the file tells."""
    with _guard:
        if (
            _held.get(os.path.realpath(path)) == os.getpid()
        ):  # reading and closing the file would release the system lock
            return "another iterator of this process"
    with contextlib.suppress(OSError):
        descriptor = os.open(path, _FLAGS)
        try:
            return _content_of(descriptor, path).decode().strip() or "a process"
        finally:
            os.close(descriptor)
    return "a process"


def _opened(path: str, flag: int) -> int:
    try:
        return os.open(path, _FLAGS | flag, 0o600)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        words = "a symbolic link was found instead of a lock file and was not followed; remove the link"
        raise OSError(errno.ELOOP, words, path) from None


def _content_of(descriptor: int, path: str) -> bytes:
    """Return the contents of a lock file.

    Raises:
        FileExistsError: the file is not a lock file.
    """
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_nlink <= 1:
        content = os.read(descriptor, _CONTENT_BYTES_MAX)
        if not content or _CONTENT.fullmatch(content):
            return content
    words = "another file was found instead of a lock file and was not changed; rename it, or use another directory"
    raise FileExistsError(errno.EEXIST, words, path)


def _mark(descriptor: int, path: str, *, is_new: bool) -> None:
    """Write the holder into the file, for users and to identify it as a lock file. Overwrites any earlier holder."""
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, f"process {os.getpid():<20}\n".encode())
    except BaseException:  # a full disk, for example
        if is_new:
            Path(path).unlink()
        raise


def _lock(descriptor: int) -> bool:
    if fcntl is None:
        return True
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is_at(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False
