"""File locks, which the operating system releases when the process that holds them ends.

A locked file shows that its writer is alive. A process that can lock the file of another one knows that its writer is
dead, and may remove what that writer left. Files of users are not mistaken for such files: the names contain check
digits. Other programs may still create files of these names, so links are not followed and nothing is overwritten.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import stat
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows has no file locks that show which files are abandoned, so none are removed
    fcntl = None  # type: ignore[assignment]

NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_FLAGS = NO_FOLLOW | getattr(os, "O_NONBLOCK", 0)  # opening a pipe must not block
_CONTENT = re.compile(rb"process (\d{1,20})\n")


def check_digits(text: str) -> str:
    """Return eight hexadecimal digits that follow from a text."""
    return hashlib.blake2b(text.encode(errors="surrogateescape"), digest_size=4, person=b"dataset.files").hexdigest()


def hold(descriptor: int, path: str | Path, *, unsupported: bool, shared: bool = False) -> bool:
    """Lock an open file until it is closed; return whether this process holds it, and it is still at ``path``.

    Args:
        descriptor: the open file.
        path: its name.
        unsupported: the result if the system has no locks. True for a file that was created here, because no process
            can remove it then. False for a file to remove, because its writer may be alive.
        shared: whether other processes may hold it that share it, too. A second call changes a lock that is held, and
            loses it if that fails.
    """
    try:
        if fcntl is None:
            return unsupported
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # the file system has no locks
        return unsupported
    return _is_at(descriptor, path)


def _is_at(descriptor: int, path: str | Path) -> bool:
    """Return whether this is a regular file with the only name ``path``. Another process may have removed it."""
    found = os.fstat(descriptor)
    try:
        return stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and os.path.samestat(found, os.lstat(path))
    except FileNotFoundError:
        return False


class LockFile:
    """Lock file that this process holds. Releasing it removes the file.

    Args:
        path: its path.
        create: whether to create the file if it does not exist, and to write the ID of this process into it.

    Raises:
        BlockingIOError: another holder has it.
        OSError: it does not exist, cannot be created, or is a link.
    """

    def __init__(self, path: str | Path, *, create: bool) -> None:
        self._path = path
        self._owner = os.getpid()
        self._descriptor = os.open(path, os.O_RDWR | _FLAGS | (os.O_CREAT if create else 0), 0o600)
        if not hold(self._descriptor, path, unsupported=create):
            os.close(self._descriptor)
            raise BlockingIOError(errno.EWOULDBLOCK, "another process holds the lock file", str(path))
        try:
            if create and not os.fstat(self._descriptor).st_size:
                os.write(self._descriptor, b"process %d\n" % self._owner)
        except BaseException:  # a full disk, for example
            self.release()
            raise

    def release(self, *, keep: bool = False) -> None:
        """Release the lock and remove the file. A second call does nothing; a forked child only closes its copy.

        Args:
            keep: whether to keep the file.
        """
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            with contextlib.suppress(OSError):
                if not keep and os.getpid() == self._owner and _is_at(descriptor, self._path):
                    Path(self._path).unlink()
            os.close(descriptor)


def holder_of(path: str | Path) -> str:
    """Return a description of the holder of a lock file, as far as the file tells."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | _FLAGS)
        try:
            found = _CONTENT.fullmatch(os.read(descriptor, 64))
        finally:
            os.close(descriptor)
        if found is not None:
            number = int(found[1])
            return "another iterator of this process" if number == os.getpid() else f"process {number}"
    return "another process"
