"""Lock files that a dead process does not hold.

The operating system locks the file for the process that has it open, and lets go of it when the process ends, however
it ends. What the system's locks do not see, two holders within one process and a forked child, a table here does.

Other programs can foresee the names of lock files. So a symbolic link is not followed, a file is never truncated, and a
file with other content than a lock file has is an error and stays as it is.
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
except ImportError:  # Windows: only holders within one process see each other
    fcntl = None  # type: ignore[assignment]

__all__ = ["LockFile", "holder_of"]

_guard = threading.RLock()  # for _held; reentrant, because a finalizer may release while it is held
_held: dict[str, int] = {}  # the lock files of this process, and its number, which is another one in a forked child


_FLAGS = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_CONTENT = re.compile(rb"process \d+ *\n?")
_CONTENT_BYTES_MAX = 64


class LockFile:
    """A lock file that is held; ``take`` gives one. The file is removed when it is released.

    Attributes:
        path: of the file.
        was_marked: whether a holder had written its number into the file before.
    """

    def __init__(self, path: str, key: str, descriptor: int, was_marked: bool) -> None:
        self.path = path
        self.was_marked = was_marked
        self._key = key
        self._descriptor = descriptor
        self._owner = os.getpid()

    @classmethod
    def take(cls, path: str, *, create: bool = True) -> Self | None:
        """Hold the lock at ``path``; None if it is held already, or if there is no such file to hold.

        Args:
            path: of the lock file.
            create: whether to make it if there is none, and to write the number of this process into it.

        Raises:
            OSError: if the file cannot be made, or if a symbolic link or a file of other content is there.
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
                if _is_at(descriptor, path):  # not so if its holder has removed it since it was opened here
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
        """Let go, and remove the file. A second time, or in a forked child, it does nothing but close its copy.

        Args:
            keep: whether the file stays.
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
    """Who holds a lock, as far as the file says."""
    with _guard:
        if (
            _held.get(os.path.realpath(path)) == os.getpid()
        ):  # reading and closing the file would let go of the system's lock
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
        words = "a symbolic link is in the place of a lock file, and is not followed; remove the link"
        raise OSError(errno.ELOOP, words, path) from None


def _content_of(descriptor: int, path: str) -> bytes:
    """What is in a lock file.

    Raises:
        FileExistsError: if it is another file.
    """
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_nlink <= 1:
        content = os.read(descriptor, _CONTENT_BYTES_MAX)
        if not content or _CONTENT.fullmatch(content):
            return content
    words = "another file is in the place of a lock file, and is left as it is; rename it, or give another directory"
    raise FileExistsError(errno.EEXIST, words, path)


def _mark(descriptor: int, path: str, *, is_new: bool) -> None:
    """Write who holds the lock, for people, and to tell the file from others. It covers all that another one wrote."""
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
