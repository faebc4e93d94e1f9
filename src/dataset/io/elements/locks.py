"""Lock files that a dead process does not hold.

The operating system locks the file for the process that has it open, and lets go of it when the process ends, however
it ends. What the system's locks do not see, two holders within one process and a forked child, a table here does.
"""

from __future__ import annotations

import contextlib
import os
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


class LockFile:
    """A lock file that is held; ``take`` gives one. The file is removed when it is released."""

    def __init__(self, path: str, key: str, descriptor: int) -> None:
        self.path = path
        self._key = key
        self._descriptor = descriptor
        self._owner = os.getpid()

    @classmethod
    def take(cls, path: str, *, create: bool = True) -> Self | None:
        """Hold the lock at ``path``; None if somebody holds it, or nobody can because there is no such file.

        Args:
            path: of the lock file.
            create: whether to make it if there is none.

        Raises:
            OSError: if the file cannot be made.
        """
        key = os.path.realpath(path)
        with _guard:
            if _held.get(key) == os.getpid():
                return None
            while True:
                try:
                    descriptor = os.open(path, os.O_RDWR | (os.O_CREAT if create else 0), 0o666)
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
            _held[key] = os.getpid()
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"process {os.getpid()}\n".encode())  # for people; nothing reads it
        return cls(path, key, descriptor)

    def release(self) -> None:
        """Let go, and remove the file. A second time, or in a forked child, it does nothing but close its copy."""
        if self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        with _guard:
            if os.getpid() == self._owner:
                with contextlib.suppress(OSError):
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
        return Path(path).read_text().strip() or "a process"
    return "a process"


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
        return os.path.samestat(os.fstat(descriptor), os.stat(path))  # noqa: PTH116  # beside fstat
    except FileNotFoundError:
        return False
