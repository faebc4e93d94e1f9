"""Files: the names of paths, the one place that opens files to read, and files that appear whole or not at all.

Nothing here knows what is in a file, and no codec opens one by itself. Reading starts in ``open_input``, writing in
``AtomicFile``. Both decide by the path: one with a scheme, such as ``s3://``, is remote/'s business, the others are
local files.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple, Protocol, Self

from dataset.io.remote.paths import is_remote, local_form

if TYPE_CHECKING:
    from types import TracebackType

try:
    import fcntl
except ImportError:  # Windows: nobody can tell there what is abandoned, so nothing is removed
    fcntl = None  # type: ignore[assignment]

__all__ = ["AtomicFile", "FileStamp", "InputFile", "file_stamp", "local_folder", "open_input"]
__all__ += ["path_string", "read_file", "read_whole", "remove_abandoned"]

# One write to the system per this many bytes: enough that its cost is lost beside that of framing the records.
OUTPUT_BUFFER_BYTES = 1 << 18

_WHOLE_BYTES = 1 << 20  # read at once, where all is read


class InputFile(Protocol):
    """What a codec may ask of a file that is read: an unbuffered binary file's methods."""

    def read(self, size: int, /) -> bytes | None:
        """Up to ``size`` bytes, and at least one of them except at the end."""

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Move, and return the new position in bytes."""

    def tell(self) -> int:
        """The position in bytes."""

    def seekable(self) -> bool:
        """False for a pipe, where the size is unknown too. It may be so on a web server, where ``seek`` works."""

    def close(self) -> None:
        """Give the descriptor back; a second time does nothing."""


def path_string(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> str:
    """A path as a plain string, whichever way it was given.

    Args:
        path: a string, UTF-8 bytes, or an object with ``__fspath__``.

    Returns:
        The path, not made absolute and not looked up.

    Raises:
        TypeError: it is none of these.
        ValueError: it is empty or has a null character, which no file's name can have.

    >>> import pathlib
    >>> path_string(pathlib.PurePosixPath("data") / "a.tfrecord"), path_string(b"a.txt")
    ('data/a.tfrecord', 'a.txt')
    """
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"a path must be str, bytes or os.PathLike, got {type(path).__name__}: {path!r:.100}")
    name = str(os.fsdecode(path))
    if not name or "\0" in name:
        raise ValueError(f"a path must not be empty or contain a null character, got {name!r:.100}")
    return name


class FileStamp(NamedTuple):
    """Tells a file from what it was before somebody wrote to it, or replaced it.

    Attributes:
        size: in bytes.
        version: when a local file was changed last, in nanoseconds since 1970; of a remote one, a number that is made
            of its ETag or its time.
    """

    size: int
    version: int


def file_stamp(path: str) -> FileStamp:
    """The stamp of a file as it is now.

    Raises:
        OSError: if there is no such file, for example.
        ImportError, ValueError: as ``open_input``.
    """
    if is_remote(path):
        local = local_form(path)
        if local is None:
            from dataset.io.remote.stamp import remote_stamp  # noqa: PLC0415  # it takes asyncio along

            return FileStamp(*remote_stamp(path))
        path = local
    found = os.stat(path)  # noqa: PTH116  # a Path would be built for nothing
    return FileStamp(found.st_size, found.st_mtime_ns)


def local_folder(op: str, path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> str:
    """The path of a directory that must be on this machine, as a string.

    Args:
        op: who asks, for the message.
        path: in any form that ``path_string`` takes.

    Raises:
        ValueError: it has a scheme; or as ``path_string``.
        TypeError: as ``path_string``.

    >>> local_folder("save", "s3://bucket/saved")
    Traceback (most recent call last):
    ...
    ValueError: save(): the path must be a local directory, without a scheme, got 's3://bucket/saved'; give a local
    one, and copy it there or back with the storage's own tools, or with fsspec's put() and get()
    """
    name = path_string(path)
    if is_remote(name):
        raise ValueError(
            f"{op}(): the path must be a local directory, without a scheme, got {name!r:.200}; give a local one, and "
            "copy it there or back with the storage's own tools, or with fsspec's put() and get()"
        )
    return name


def open_input(path: str) -> InputFile:
    """Open a file to be read as bytes, without a buffer: codecs read big blocks and keep their own.

    A path with a scheme goes through fsspec, and is read ahead as remote/reading.py says; ``file://`` is a local file.

    Args:
        path: as ``path_string`` gives it.

    Raises:
        OSError: as the builtin ``open`` does, with the path in it; ``BrokenConnectionError`` where a server can't be
            reached.
        ImportError: what fsspec needs for the scheme is not installed.
        ValueError: there is no such scheme.

    >>> open_input("/nowhere/a.tfrecord")
    Traceback (most recent call last):
    ...
    FileNotFoundError: [Errno 2] No such file or directory: '/nowhere/a.tfrecord'
    """
    if is_remote(path):
        local = local_form(path)
        if local is None:
            from dataset.io.remote.reading import open_remote  # noqa: PLC0415  # it takes asyncio along

            return open_remote(path)
        path = local
    return open(path, "rb", buffering=0)  # noqa: PTH123  # a Path would be built for nothing


def read_whole(read: Callable[[int], bytes | None], size: int) -> bytes:
    """``size`` bytes, out of as many reads as that takes; fewer at the end.

    Args:
        read: gives the next bytes, up to as many as it is asked for, and none at the end.
        size: how many are wanted.
    """
    block = read(size) or b""
    while len(block) < size and (more := read(size - len(block))):
        block += more
    return block


def read_file(path: str) -> bytes:
    """All that is in a file, taken in as it comes, whatever size the file is said to have.

    Args:
        path: as ``path_string`` gives it.

    Raises:
        OSError, ImportError, ValueError: as ``open_input``.
    """
    file = open_input(path)
    try:
        pieces = []
        while piece := file.read(_WHOLE_BYTES):
            pieces.append(piece)
    finally:
        file.close()
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class AtomicFile:
    """A new file that appears under its name when it is complete, and not before.

    The bytes go to ``file``, which lies under a temporary name in the same directory. ``commit`` writes them through to
    the disk and renames; ``discard`` removes them. As a context manager it commits at the end of the block and discards
    when an exception leaves it. An abandoned one is discarded when it is collected, or when the interpreter exits. What
    was under the name before stays readable until the commit replaces it. For paths with a scheme remote/writing.py
    sees to the same.

    Args:
        path: the final name. A symbolic link is followed.

    Raises:
        OSError: nothing can be written there; the message says why and what to do. ``FileNotFoundError``,
            ``PermissionError``, ``IsADirectoryError`` and ``NotADirectoryError`` keep their types.
        ImportError, ValueError: as ``open_input``.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with AtomicFile(os.path.join(folder, "a.bin")) as target:
    ...         _ = target.file.write(b"abc")
    ...         before = "a.bin" in os.listdir(folder)
    ...     before, os.listdir(folder)
    (False, ['a.bin'])
    """

    def __init__(self, path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> None:
        self.path = path_string(path)
        local = local_form(self.path) if is_remote(self.path) else self.path
        self._target = _remote_target(self.path) if local is None else _LocalTarget(local, self.path)
        self.file: IO[bytes] = self._target.file
        self._finalizer = weakref.finalize(self, _discard, self._target, os.getpid())

    @property
    def closed(self) -> bool:
        """Whether the file was committed or discarded."""
        return not self._finalizer.alive

    def commit(self) -> None:
        """Put the file under its name. When that fails the file is discarded. A second time does nothing."""
        if self.closed:
            return
        try:
            self._target.commit()
        except BaseException:
            self.discard()
            raise
        self._finalizer.detach()

    def discard(self) -> None:
        """Remove what was written. After a commit, or a second time, it does nothing."""
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.commit()
        else:
            self.discard()


class _Target(Protocol):
    @property
    def file(self) -> IO[bytes]: ...
    def commit(self) -> None: ...
    def discard(self) -> None: ...


def _remote_target(path: str) -> _Target:
    from dataset.io.remote.writing import RemoteTarget  # noqa: PLC0415  # it takes more along than local files need

    return RemoteTarget(path)


def _discard(target: _Target, owner: int) -> None:
    """In a forked child nothing is removed: the name is its parent's."""
    if os.getpid() == owner:
        target.discard()


class _LocalTarget:
    """A local file while it is written.

    Args:
        path: the final name.
        called: what the user called it, for messages.
    """

    def __init__(self, path: str, called: str) -> None:
        self._final = Path(os.path.realpath(path))
        _check_replaceable(called, self._final)
        try:
            self.file = self._open()
            while not _hold(self.file):
                self.file.close()
                self.file = self._open()
        except OSError as error:
            raise _explained(error, called, str(self._final.parent)) from error

    def _open(self) -> IO[bytes]:
        # The dot and the ending keep patterns such as "train-*" from finding it; a cut name can't grow too long.
        self._temporary = self._final.with_name(f"{_temporary_prefix(self._final)}{secrets.token_hex(8)}.tmp")
        return self._temporary.open("xb", buffering=OUTPUT_BUFFER_BYTES)

    def commit(self) -> None:
        self.file.flush()
        os.fsync(self.file.fileno())  # or a power cut could leave the new name with the old, empty content
        if fcntl is None:
            self.file.close()  # Windows renames no open file
        self._temporary.replace(self._final)  # while it is held, or it could be taken for abandoned
        self.file.close()
        _sync_directory(self._final.parent)

    def discard(self) -> None:
        with contextlib.suppress(OSError):  # closing flushes, and a full disk is no reason to keep the file
            self.file.close()
        with contextlib.suppress(OSError):
            self._temporary.unlink()


def _temporary_prefix(final: Path) -> str:
    return f".{final.name[:40]}."


def _sync_directory(folder: Path) -> None:
    """Have the system write the new name through, too. Where that is not possible it does so sooner or later."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# A process that is killed leaves its temporary file behind. Who writes one holds a lock of the system's on it, which
# ends with the process; so whoever gets that lock knows that nobody writes there any more. The name is removed while
# the lock is held, and who has just made a file and not locked it yet sees by its missing name that it has to make
# another one.


def remove_abandoned(path: str) -> None:
    """Remove what processes that were killed have left of writing to a local file with ``AtomicFile``.

    Args:
        path: the final name.
    """
    local = local_form(path) if is_remote(path) else path
    if local is None or fcntl is None:
        return
    final = Path(os.path.realpath(local))
    pattern = re.compile(rf"{re.escape(_temporary_prefix(final))}[0-9a-f]{{16}}\.tmp")
    with contextlib.suppress(OSError), os.scandir(final.parent) as found:
        for entry in [entry for entry in found if pattern.fullmatch(entry.name)]:
            with contextlib.suppress(OSError):  # it is held, or somebody else removes it
                _remove_if_abandoned(entry.path)


def _remove_if_abandoned(path: str) -> None:
    descriptor = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_nlink and os.path.samestat(os.fstat(descriptor), os.lstat(path)):
            Path(path).unlink()
    finally:
        os.close(descriptor)


def _hold(file: IO[bytes]) -> bool:
    """Lock a temporary file; False if it was taken for abandoned just before."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks: there nobody gets one
        return True
    return os.fstat(file.fileno()).st_nlink > 0


def _check_replaceable(path: str, final: Path) -> None:
    try:
        mode = final.stat().st_mode
    except OSError:
        return  # nothing is there, or creating the file will say better what is wrong
    if stat.S_ISDIR(mode):
        raise OSError(errno.EISDIR, "cannot write: this is a directory; give the name of a file", path)
    if not stat.S_ISREG(mode):
        # Renaming over /dev/null would take it away from everybody.
        raise OSError(errno.EINVAL, "cannot write: this is a device or a pipe; give the name of a regular file", path)


def _explained(error: OSError, path: str, folder: str) -> OSError:
    """The same error with words that a user can act on. OSError picks the same subclass from the number."""
    if isinstance(error, FileNotFoundError):
        reason = f"the directory {folder!r} does not exist; create it first, for example with os.makedirs"
    elif isinstance(error, NotADirectoryError):
        reason = f"{folder!r} is not a directory"
    elif isinstance(error, PermissionError):
        reason = f"no permission to create files in {folder!r}; choose another directory or change its permissions"
    else:
        reason = f"{error.strerror}, in the directory {folder!r}"
    return OSError(error.errno, f"cannot write: {reason}", path)
