"""Opening files to read, and the names of paths.

Nothing here knows what is in a file, and no codec opens one by itself. Reading starts in ``open_input``, writing in
``AtomicFile`` (atomic.py). Both decide by the path: one with a scheme, such as ``s3://``, is opened by remote/, the
others are local files.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple, Protocol

from dataset.io.files.remote.paths import is_remote, local_form
from dataset.name_guard import check_name

__all__ = [
    "FileStamp",
    "InputFile",
    "file_stamp",
    "local_folder",
    "open_input",
    "path_string",
    "read_file",
    "read_whole",
]

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
    check_name()
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
            from dataset.io.files.remote.stamp import remote_stamp  # noqa: PLC0415  # it takes asyncio along

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
            from dataset.io.files.remote.reading import open_remote  # noqa: PLC0415  # it takes asyncio along

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
