"""Base class of block readers: the open file, the position in it, and error handling.

Subclasses define how elements are found in a block: for lines, fixed-length records, CSV and TFRecord. This module
knows nothing about datasets.

The end of a file is where it is when the reader reaches it. A file that grows while it is read is read to its new end,
one that shrinks ends earlier, and one that is deleted is read to its end if it was already open. After the end no more
elements follow.
"""

from __future__ import annotations

import operator
import os
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from dataset.amounts import BLOCK_BYTES
from dataset.errors import DataLossError
from dataset.io.files.compression import DamagedStreamError, InputStream
from dataset.io.files.stream_file import StreamFile


class BlockFile(StreamFile):
    """Sequential reader of the elements of one file. The first read opens the file.

    Args:
        path: the file.
        compression_type: ``None`` or ``""``, ``"GZIP"``, ``"ZLIB"`` or ``"ZSTD"``.
        buffer_size: bytes to read at once; None and 0 mean 256 KiB. Memory use is about twice this, or twice one
            element if that is larger.

    Raises:
        ValueError: the compression type is unknown, or the buffer size is negative.
    """

    def __init__(
        self,
        path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
        compression_type: str | None = None,
        buffer_size: int | None = None,
    ) -> None:
        super().__init__(path, compression_type)
        size = 0 if buffer_size is None else operator.index(buffer_size)
        if size < 0:
            raise ValueError(f"{type(self).__name__}: buffer_size must be at least 0 bytes, got {size}")
        self._block_bytes = size or BLOCK_BYTES
        self._ready: Any  # a sequence; the elements before _next have been returned
        self._go_to(0, 0)

    # Hooks of a format.

    def _start(self, stream: InputStream) -> None:
        """Move a newly opened stream to ``_offset``."""
        if self._offset:  # a pipe can be read as long as it is not moved
            stream.seek(self._offset)

    @abstractmethod
    def _read_elements(self, stream: InputStream) -> Sequence[Any]:
        """Read one block; return the elements that it completes, if any, and move ``_offset`` past them.

        Calls ``_end`` at the end of the stream, and raises ``DamagedStreamError`` if the next element can't be read.
        """

    @abstractmethod
    def _offset_of(self, index: int) -> int:
        """Return the offset of ``_ready[index]`` in the uncompressed stream, or the offset after the last of them."""

    def _number_of(self, index: int) -> int:
        """Return the number of ``_ready[index]``, or the number after the last of them."""
        return self._first + index

    @abstractmethod
    def _forget(self) -> None:
        """Drop the bytes that were read and do not belong to an element yet."""

    def _described(self, damage: str) -> str:
        """Return the message of an error at the next element."""
        return damage

    # Public interface.

    def columns(self, n: int) -> list[Any] | None:
        """Return the next elements as a single column.

        Args:
            n: the maximum number of elements. Fewer are returned if the current block holds fewer.

        Returns:
            A list that contains a list of 1 to ``n`` elements; ``None`` at the end and on every later call.

        Raises:
            DataLossError: the file is truncated or corrupt here. Raised once; the next call returns ``None``.
            OSError: the file is missing or can't be read. The next call tries again at the same position.
            ClosedError: after ``close``.
        """
        if self._next == len(self._ready) and not self._refill():
            return None
        taken = self._ready[self._next : self._next + n]
        self._next += len(taken)
        return [taken]

    @property
    def held(self) -> int:
        """How many elements of the current block have not been returned yet."""
        return len(self._ready) - self._next

    def tell(self, before: int = 0) -> tuple[int, int]:
        """Return the byte offset of the next element in the uncompressed stream, and its number from 0.

        Args:
            before: how many elements of the current block before the next one.
        """
        index = self._next - before
        return self._offset_of(index), self._number_of(index)

    def _go_to(self, offset: int, number: int) -> None:
        self._ready, self._next = [], 0
        self._first = number  # the number of _ready[0]
        self._offset = offset  # in the stream, after the last element of _ready
        self._ended = False
        self._forget()

    def _end(self) -> None:
        self._ended = True
        self._release()

    def _refill(self) -> bool:
        """Read until there are elements, or raise the error in their place. Return False at the end."""
        self._check_open()
        self._first = self._number_of(len(self._ready))
        self._ready, self._next = [], 0
        before = self._offset, self._first
        while not self._ended and not self._ready:
            try:
                self._ready = self._read_elements(self._opened())
            except DamagedStreamError as damage:
                self._end()
                words = self._described(str(damage))
                raise DataLossError(words, path=self.path, offset=self._offset, record=self._first) from None
            except BaseException:
                # The handle may be stale and the bytes read from it lost: the next call opens the file again here.
                self._reopen_at(*before)
                raise
        return bool(self._ready)

    def _opened(self) -> InputStream:
        """Return the stream, at the position where reading continues."""
        if self._stream is None:
            stream = self._open()
            try:
                self._start(stream)
            except BaseException:
                stream.close()
                raise
            self._stream = stream
        return self._stream
