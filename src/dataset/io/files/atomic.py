"""Atomic file writer: a file appears under its name only when it is complete."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import weakref
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Protocol, Self

from dataset.amounts import BLOCK_BYTES
from dataset.io.files import remote
from dataset.io.files.locks import NO_FOLLOW, check_digits, hold
from dataset.io.files.opening import path_string
from dataset.io.files.remote.paths import is_remote, local_form

# Bytes per system call: large enough that its cost is negligible compared with that of framing the records.


class AtomicFile:
    """Output file that appears under its name only when it is complete.

    The bytes are written to ``file``, which has a hidden temporary name in the same directory. ``commit`` flushes them
    to the disk and renames the file; ``discard`` removes it. As a context manager it commits at the end of the block,
    and discards if an exception leaves the block. An abandoned file is discarded when the object is garbage collected
    or when the interpreter exits. An existing file of that name stays readable until the commit replaces it. Temporary
    files that dead processes left in the directory are removed. For paths with a scheme remote/writing.py does the
    same, but does not remove files of dead processes.

    A file that replaces another keeps its permission bits and, if the system allows it, its owner and group. If the
    group cannot be kept, the new group gets the permissions of other users. Access control lists and other attributes
    are not kept. The permissions of a new file follow the umask. A forked child neither commits nor changes the file
    of its parent.

    Args:
        path: the final name. A symbolic link is followed.
        like: a local file that the new file is derived from. The new file grants no permissions beyond those of this
            file.
        remove_abandoned: whether to look for temporary files of dead processes. A caller that writes many files to one
            directory does this once.

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

    def __init__(
        self,
        path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
        *,
        like: str | None = None,
        remove_abandoned: bool = True,
    ) -> None:
        self.path = path_string(path)
        local = local_form(self.path) if is_remote(self.path) else self.path
        if local is None:
            self._target: _Target = remote.RemoteTarget(self.path)
        else:
            self._target = _LocalTarget(local, self.path, like)
            if remove_abandoned:
                _remove_abandoned(self._target.folder)
        self.file: IO[bytes] = self._target.file
        self._owner = os.getpid()
        self._finalizer = weakref.finalize(self, _discard, self._target, self._owner)

    @property
    def closed(self) -> bool:
        """Whether the file was committed or discarded."""
        return not self._finalizer.alive

    def commit(self) -> None:
        """Give the file its final name; discard it if that fails. May be called more than once.

        Raises:
            OSError: the disk is full, for example.
            RuntimeError: in a forked child.
        """
        commit_together([self])

    def discard(self) -> None:
        """Remove the written file. Does nothing after a commit or a previous call."""
        self._finalizer()

    def _prepare(self) -> None:
        if os.getpid() != self._owner:
            raise RuntimeError(f"{self.path}: only the process that opened this file can commit it, not a forked child")
        self._target.prepare()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.commit()
        else:
            self.discard()


def write_file(filename: str | bytes | os.PathLike[str] | os.PathLike[bytes], contents: bytes | str) -> None:
    """Write a file, as ``tf.io.write_file`` does, but atomically: no reader sees a part of it.

    Directories that do not exist are created. An existing file is replaced; if writing fails, it is unchanged.

    Args:
        filename: a path, also one with a scheme, such as ``s3://``; see the guide to remote files.
        contents: the bytes of the file; text is written in UTF-8.

    Raises:
        OSError: nothing can be written there; the message says why.
        ImportError: a package that is needed for the scheme is not installed.
        ValueError: the scheme is unknown, or the path is empty.
        TypeError: the contents are neither bytes nor text.

    >>> import os, tempfile
    >>> from dataset.io import read_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "new", "a.txt")
    ...     write_file(path, "abc")
    ...     read_file(path)
    b'abc'
    """
    if not isinstance(contents, bytes | bytearray | memoryview | str):
        raise TypeError(f"write_file(): contents must be bytes or text, got {type(contents).__name__}")
    path = path_string(filename)
    local = local_form(path) if is_remote(path) else path
    if local is not None:
        make_directory(Path(local).parent)
    with AtomicFile(path) as target:
        target.file.write(contents.encode() if isinstance(contents, str) else contents)


def commit_together(files: Sequence[AtomicFile]) -> None:
    """Commit files that form a set.

    First all files are flushed to the disk. If that fails, or the process is killed, the old files are unchanged. Then
    the files are renamed one after the other, and the directories are flushed. No system renames several files
    atomically. So the old first file is moved away before the others are replaced, and the new one is renamed last: if
    the process is killed between two renames, the first file of the set is missing. A set that looks complete never
    mixes old and new files.

    Args:
        files: the files; closed ones are ignored.

    Raises:
        OSError: the disk is full, for example. The files that were not renamed are discarded. If no file was renamed,
            all old files are still there; otherwise a note on the error says which files were renamed.
        RuntimeError: in a forked child.
    """
    waiting = [file for file in files if not file.closed]
    try:
        for file in waiting:
            file._prepare()  # noqa: SLF001  # same class, here and below
        if waiting:
            _publish(waiting)
    except BaseException:
        for file in waiting:
            file.discard()
        raise
    for file in waiting:
        file._finalizer.detach()  # noqa: SLF001
    for folder in dict.fromkeys(file._target.folder for file in waiting):  # noqa: SLF001
        sync_directory(folder)


def _publish(files: Sequence[AtomicFile]) -> None:
    first, *others = files
    targets = [file._target for file in [*others, first]]  # noqa: SLF001
    try:
        if others:
            targets[-1].withdraw()
        for target in targets:
            target.publish()
    except BaseException as error:
        named = [file.path for file in files if file._target.is_published()]  # noqa: SLF001
        targets[-1].end_withdrawal(restore=not named)
        if named:
            error.add_note(
                f"{len(named)} of {len(files)} files are complete under their names, up to {named[-1]}; the others "
                f"were removed, and {first.path} is missing, so that the set does not look complete"
            )
        raise
    targets[-1].end_withdrawal(restore=False)


class _Target(Protocol):
    @property
    def file(self) -> IO[bytes]: ...

    @property
    def folder(self) -> str | None: ...  # the directory to flush after a rename

    def prepare(self) -> None: ...  # write everything; after this only the rename is missing
    def withdraw(self) -> None: ...  # move the old file away
    def end_withdrawal(self, *, restore: bool) -> None: ...  # move the old file back, or remove it
    def publish(self) -> None: ...  # give the new file its name
    def is_published(self) -> bool: ...
    def discard(self) -> None: ...
    def abandon(self) -> None: ...  # in a forked child: close the file without writing to it


def _discard(target: _Target, owner: int) -> None:
    """Discard a target. In a forked child nothing is removed or written: the file belongs to the parent."""
    if os.getpid() == owner:
        target.discard()
    else:
        target.abandon()


class _LocalTarget:
    """Local file that is being written.

    Args:
        path: the final name.
        called: the name that the user gave, for messages.
        like: see AtomicFile.
    """

    def __init__(self, path: str, called: str, like: str | None = None) -> None:
        self._final = Path(os.path.realpath(path))
        self.folder = str(self._final.parent)
        self._withdrawn: Path | None = None
        _check_replaceable(called, self._final)
        self._like = None if like is None else _status(Path(like))
        try:
            self.file = self._open()
            while not hold(self.file.fileno(), self._temporary, unsupported=True):  # removed as abandoned
                self.file.close()
                self.file = self._open()
        except OSError as error:
            raise _explained(error, called, self.folder) from error

    def _open(self) -> IO[bytes]:
        # The dot and the suffix keep patterns such as "train-*" from matching it.
        self._temporary = self._final.with_name(_temporary_name(self._final.name))
        mode = 0o666 if self._like is None else self._like.st_mode & 0o666
        if self._final.exists():
            mode &= 0o600  # private until it gets the permissions of the file that it replaces
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW
        return open(os.open(self._temporary, flags, mode), "wb", buffering=BLOCK_BYTES)  # noqa: PTH123

    def _take_over(self, descriptor: int) -> None:
        """Copy owner and permissions from the file that this one replaces or is derived from."""
        mine, replaced = os.fstat(descriptor), _status(self._final)
        model = replaced or self._like
        if model is None:
            return
        mode = mine.st_mode if replaced is None else replaced.st_mode
        if self._like is not None:
            mode &= self._like.st_mode
        if mine.st_gid != model.st_gid and not _chown(descriptor, -1, model.st_gid):
            mode &= ~0o070 | (mode & 0o007) << 3
        if mine.st_uid != model.st_uid:
            _chown(descriptor, model.st_uid, -1)
        os.fchmod(descriptor, mode & 0o777)

    def prepare(self) -> None:
        self.file.flush()
        if hasattr(os, "fchown"):
            self._take_over(self.file.fileno())
        os.fsync(self.file.fileno())  # otherwise a power failure could leave the new name with empty content
        if os.name == "nt":
            self.file.close()  # Windows does not rename open files

    def withdraw(self) -> None:
        self._withdrawn = self._final.with_name(_temporary_name(self._final.name))
        with contextlib.suppress(FileNotFoundError):
            self._final.replace(self._withdrawn)

    def end_withdrawal(self, *, restore: bool) -> None:
        withdrawn, self._withdrawn = self._withdrawn, None
        if withdrawn is not None:
            with contextlib.suppress(OSError):
                withdrawn.replace(self._final) if restore else withdrawn.unlink()

    def publish(self) -> None:
        self._temporary.replace(self._final)  # while the lock is held; otherwise the file could look abandoned
        self.file.close()

    def is_published(self) -> bool:
        return not os.path.lexists(self._temporary)  # correct even after an interrupt right after the rename

    def discard(self) -> None:
        with contextlib.suppress(OSError):  # closing flushes; a full disk must not prevent removing the file
            self.file.close()
        with contextlib.suppress(OSError):
            self._temporary.unlink()

    def abandon(self) -> None:
        # Closing or garbage collecting the buffer would write its bytes a second time: the parent writes them, too.
        getattr(self.file, "raw", self.file).close()


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _chown(descriptor: int, owner: int, group: int) -> bool:
    try:
        os.fchown(descriptor, owner, group)
    except OSError:  # only the superuser may give files away
        return False
    return True


def sync_directory(folder: str | None) -> None:
    """Flush a directory to the disk, so that new names persist. If that is not possible, the system does so later."""
    if folder is None:
        return
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def make_directory(path: Path, *, parents: bool = True) -> None:
    """Create a directory unless it exists, and its ``parents``, so that it is still there after a power failure."""
    new = [folder for folder in (path, *path.parents) if not os.path.exists(folder)]  # noqa: PTH110  # raises nothing
    path.mkdir(parents=parents, exist_ok=True)
    for folder in new:
        sync_directory(str(folder.parent))


# A killed process leaves its temporary file on the disk. A writer holds a system lock on its file until its process
# ends, so a process that gets the lock knows that the writer is dead. It removes the name while it holds the lock. A
# writer that has created a file but not locked it yet notices that the name is gone and creates another file. Files of
# users are not removed by mistake: a part of the temporary name is a digest of the rest.

_TEMPORARY = re.compile(r"\.(.{1,40}\.[0-9a-f]{16})([0-9a-f]{8})\.tmp", re.DOTALL)


def _temporary_name(name: str) -> str:
    """Return a name for a temporary file in the directory of ``name``. The name is truncated to stay within limits."""
    start = f"{name[:40]}.{secrets.token_hex(8)}"
    return f".{start}{check_digits(start)}.tmp"


def _is_temporary(name: str) -> bool:
    """Return whether a name is a temporary name of this library."""
    found = _TEMPORARY.fullmatch(name)
    return found is not None and check_digits(found[1]) == found[2]


_looked_through: dict[str, int] = {}
"""The directory that was scanned last, and how many files may be written to it before the next scan. The number is a
fraction of its entries. Otherwise writing n files to one directory would visit n * n names."""


def _remove_abandoned(folder: str) -> None:
    """Remove the temporary files of dead processes from a directory."""
    left = _looked_through.get(folder, 0)
    if left:
        _looked_through[folder] = left - 1
        return
    with contextlib.suppress(OSError), os.scandir(folder) as found:
        entries = list(found)
        _looked_through.clear()
        _looked_through[folder] = len(entries) // 16
        for entry in entries:
            if _is_temporary(entry.name) and entry.is_file(follow_symlinks=False):
                with contextlib.suppress(OSError):  # the writer is alive, or another process removes the file
                    _remove_if_abandoned(entry.path)


def _remove_if_abandoned(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | NO_FOLLOW)
    try:
        if hold(descriptor, path, unsupported=False):
            Path(path).unlink()
    finally:
        os.close(descriptor)


def _check_replaceable(path: str, final: Path) -> None:
    try:
        mode = final.stat().st_mode
    except OSError:
        return  # the file does not exist, or creating it will give a better error
    if stat.S_ISDIR(mode):
        raise OSError(errno.EISDIR, "cannot write: this is a directory; give the name of a file", path)
    if not stat.S_ISREG(mode):
        # Renaming over /dev/null would remove it for all processes.
        raise OSError(errno.EINVAL, "cannot write: this is a device or a pipe; give the name of a regular file", path)


def _explained(error: OSError, path: str, folder: str) -> OSError:
    """Return the error with an actionable message. OSError selects the same subclass by the error number."""
    if isinstance(error, FileNotFoundError):
        reason = f"the directory {folder!r} does not exist; create it first, for example with os.makedirs"
    elif isinstance(error, NotADirectoryError):
        reason = f"{folder!r} is not a directory"
    elif isinstance(error, PermissionError):
        reason = f"no permission to create files in {folder!r}; choose another directory or change its permissions"
    else:
        reason = f"{error.strerror}, in the directory {folder!r}"
    return OSError(error.errno, f"cannot write: {reason}", path)
