"""Base class of file readers: opens the file on the first read, releases it, and closes it permanently.

Subclasses define the format and the position in the file: tfrecord/reader.py, tar/reader.py and block_file.py.
"""

from __future__ import annotations

import os
from abc import abstractmethod

from dataset.amounts import PEEK_BYTES
from dataset.closing import Closing
from dataset.errors import ClosedError
from dataset.io.files.compression import (
    AUTO,
    InputStream,
    compression_name,
    detect_compression,
    open_decompressed,
    open_stream,
)
from dataset.io.files.opening import InputFile, open_input, path_string, read_whole, require_regular
from dataset.redaction import redacted


class StreamFile(Closing):
    """Reader of one file; holds the stream of its uncompressed bytes while the file is open.

    Args:
        path: the file.
        compression_type: ``None`` or ``""``, ``"GZIP"``, ``"ZLIB"``, ``"ZSTD"`` or ``"SNAPPY"``; or ``"AUTO"``, which
            the first read replaces by what the file is.

    Raises:
        ValueError: the compression type is unknown.
    """

    _stream: InputStream | None = None  # a class attribute, so that __del__ works if the constructor raised

    def __init__(
        self, path: str | bytes | os.PathLike[str] | os.PathLike[bytes], compression_type: str | None = None
    ) -> None:
        self.path = path_string(path)
        self.compression_type = compression_name(compression_type, reading=True)
        self._closed = False

    @abstractmethod
    def tell(self) -> tuple[int, int]:
        """Return the byte offset of the next element in the uncompressed stream, and its number from 0."""

    @abstractmethod
    def _go_to(self, offset: int, number: int) -> None:
        """Reset the state to a position. The next read opens the file there."""

    def seek(self, offset: int, number: int) -> None:
        """Continue at a position that ``tell`` returned. A compressed file is decompressed up to it."""
        if offset < 0 or number < 0:
            raise ValueError(f"{type(self).__name__}.seek(): a position can't be negative, got {(offset, number)}")
        self._check_open()
        self._reopen_at(offset, number)

    def close(self) -> None:
        """Release the file and the memory; the position is kept. May be called more than once."""
        self._reopen_at(*self.tell())
        self._closed = True

    def _reopen_at(self, offset: int, number: int) -> None:
        self._release()
        self._go_to(offset, number)

    def __del__(self) -> None:
        self._release()  # no ResourceWarning: abandoning an iterator half way is not a mistake

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"{type(self).__name__}: {redacted(self.path)} was closed")

    def _open(self) -> InputStream:
        """Return a stream positioned at the beginning of the file."""
        if self.compression_type != AUTO:
            return open_decompressed(self.path, self.compression_type)
        require_regular(self.path, "its beginning is read twice; pass the compression of the file")
        file = open_input(self.path)
        try:
            self.compression_type = self._detected(file)
            return open_stream(file, self.compression_type)
        except BaseException:
            file.close()
            raise

    def _detected(self, file: InputFile) -> str:
        """Return the compression of an open file, which is then at its beginning again."""
        head = read_whole(file.read, PEEK_BYTES)
        file.seek(0)
        return "" if self._is_plain(head) else detect_compression(head, is_whole=len(head) < PEEK_BYTES)

    def _is_plain(self, head: bytes) -> bool:  # noqa: ARG002  # used by overrides
        """Return whether the first bytes prove that the file is not compressed."""
        return False

    def _release(self) -> None:
        if self._stream is not None:
            self._stream.close()  # if it is interrupted, __del__ closes the stream
            self._stream = None
