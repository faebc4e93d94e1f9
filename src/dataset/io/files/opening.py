"""Opening files for reading, and path strings.

This module knows no file formats, and codecs do not open files themselves. Reading starts in ``open_input``, writing
in ``AtomicFile`` (atomic.py). Both decide by the path: a path with a scheme, such as ``s3://``, is opened by remote/;
all others are local files.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import NamedTuple, Protocol

from dataset.amounts import PIECE_BYTES
from dataset.io.files import remote
from dataset.io.files.remote.paths import is_remote, local_form
from dataset.name_guard import check_name
from dataset.redaction import redacted


class InputFile(Protocol):
    """Interface of an open input file: the methods of an unbuffered binary file that codecs use."""

    def read(self, size: int, /) -> bytes | None:
        """Return 1 to ``size`` bytes; empty at the end."""

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Move to a position and return it in bytes."""

    def tell(self) -> int:
        """Return the position in bytes."""

    def seekable(self) -> bool:
        """Return False if the size is unknown: for a pipe, and for some web servers, where ``seek`` works anyway."""

    def close(self) -> None:
        """Close the descriptor. May be called more than once."""


def path_string(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> str:
    """Return a path as a plain string.

    Args:
        path: a string, UTF-8 bytes, or an object with ``__fspath__``.

    Returns:
        The path. It is not made absolute, and the file need not exist.

    Raises:
        TypeError: the path has another type.
        ValueError: the path is empty or contains a null character.

    >>> import pathlib
    >>> path_string(pathlib.PurePosixPath("data") / "a.tfrecord"), path_string(b"a.txt")
    ('data/a.tfrecord', 'a.txt')
    """
    check_name()
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"a path must be str, bytes or os.PathLike, got {type(path).__name__}: {path!r:.100}")
    name = str(os.fsdecode(path))
    if not name or "\0" in name:
        raise ValueError(f"a path must not be empty or contain a null character, got {name!r:.100}")
    return name


class FileStamp(NamedTuple):
    """Version stamp of a file; it changes when the file is modified or replaced.

    Attributes:
        size: in bytes.
        version: the modification time of a local file in nanoseconds since 1970. For a remote file, a number derived
            from its ETag or its modification time.
    """

    size: int
    version: int


def file_stamp(path: str) -> FileStamp:
    """Return the current stamp of a file.

    Raises:
        OSError: the file does not exist, for example.
        ImportError, ValueError: as ``open_input``.
    """
    if is_remote(path):
        local = local_form(path)
        if local is None:
            return FileStamp(*remote.remote_stamp(path))
        path = local
    found = os.stat(path)  # noqa: PTH116  # avoids building a Path
    return FileStamp(found.st_size, found.st_mtime_ns)


def require_regular(path: str, why: str) -> None:
    """Raise OSError if a path is that of a pipe, a socket or a device.

    Such a file can be read only once, and opening it may wait for a writer for ever. A missing file is no error here.

    Args:
        path: as returned by ``path_string``.
        why: why the file must be a regular one, and what to do, for the message.

    >>> require_regular("/dev/null", "its beginning is read twice")
    Traceback (most recent call last):
    ...
    OSError: [Errno 29] this is a pipe or a device, but its beginning is read twice: '/dev/null'
    """
    local = local_form(path) if is_remote(path) else path
    if local is not None and os.path.exists(local) and not (os.path.isfile(local) or os.path.isdir(local)):  # noqa: PTH110, PTH112, PTH113  # as above
        raise OSError(errno.ESPIPE, f"this is a pipe or a device, but {why}", redacted(path))


def local_folder(op: str, path: str | bytes | os.PathLike[str] | os.PathLike[bytes], kind: str = "directory") -> str:
    """Return the path of a directory, or of another kind of file, that must be local, as a string.

    Args:
        op: the name of the caller, for the message.
        path: in any form that ``path_string`` accepts.
        kind: what is at the path, for the message.

    Raises:
        ValueError: the path has a scheme; or as ``path_string``.
        TypeError: as ``path_string``.

    >>> local_folder("save", "s3://bucket/saved")
    Traceback (most recent call last):
    ...
    ValueError: save(): the path must be a local directory, without a scheme, got 's3://bucket/saved'; use a local
    directory, and copy it to or from the storage with its own tools or with fsspec's put() and get()
    """
    name = path_string(path)
    if is_remote(name):
        raise ValueError(
            f"{op}(): the path must be a local {kind}, without a scheme, got {name!r:.200}; use a local {kind}, "
            "and copy it to or from the storage with its own tools or with fsspec's put() and get()"
        )
    return name


def open_input(path: str) -> InputFile:
    """Open a file for reading bytes, without a buffer: codecs read large blocks and keep their own buffer.

    A path with a scheme is opened by fsspec, with read-ahead (see remote/reading.py). ``file://`` is a local file.

    Args:
        path: as returned by ``path_string``.

    Raises:
        OSError: as raised by the builtin ``open``, with the path in it; ``BrokenConnectionError`` if a server can't be
            reached.
        ImportError: a package that fsspec needs for the scheme is not installed.
        ValueError: the scheme is unknown.

    >>> open_input("/nowhere/a.tfrecord")
    Traceback (most recent call last):
    ...
    FileNotFoundError: [Errno 2] No such file or directory: '/nowhere/a.tfrecord'
    """
    if is_remote(path):
        local = local_form(path)
        if local is None:
            return remote.open_remote(path)
        path = local
    return open(path, "rb", buffering=0)  # noqa: PTH123  # avoids building a Path


def read_whole(read: Callable[[int], bytes | None], size: int) -> bytes:
    """Return ``size`` bytes, with as many reads as necessary; fewer at the end.

    Args:
        read: returns the next bytes, at most the requested number, and none at the end.
        size: the number of bytes.
    """
    pieces, missing = [], size
    while missing > 0 and (piece := read(missing)):
        pieces.append(piece)
        missing -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def read_file(filename: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> bytes:
    """Return the contents of a file, as ``tf.io.read_file`` does. It is read to its end, whatever size it reports.

    Args:
        filename: a path, also one with a scheme, such as ``s3://``; see the guide to remote files.

    Raises:
        OSError: the file does not exist, for example; ``BrokenConnectionError`` if a server can't be reached.
        ImportError: a package that is needed for the scheme is not installed.
        ValueError: the scheme is unknown, or the path is empty.
        TypeError: the argument is not a path.

    >>> read_file("/nowhere/a.txt")
    Traceback (most recent call last):
    ...
    FileNotFoundError: [Errno 2] No such file or directory: '/nowhere/a.txt'
    """
    file = open_input(path_string(filename))
    try:
        pieces = []
        while piece := file.read(PIECE_BYTES):
            pieces.append(piece)
    finally:
        file.close()
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
