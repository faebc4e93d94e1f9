"""Files whose elements are cut out of blocks: the open file, the place in it, and what becomes of damage.

How elements are found in a block is said by those who derive: lines.py and fixed_length_records.py. What a Dataset
is, is not known here.

A file is what it is when its end is reached: one that grows while it is read is read on, one that shrinks ends sooner,
and one whose name vanishes is read to its end if it was open by then. Behind the end nothing comes any more.
"""

from __future__ import annotations

import operator
from abc import abstractmethod
from typing import TYPE_CHECKING

from dataset.errors import DataLossError
from dataset.io.files.compression import DamagedStreamError, InputStream
from dataset.io.files.stream_file import StreamFile

if TYPE_CHECKING:
    import os

__all__ = ["BlockFile"]

BLOCK_BYTES = 1 << 18  # tf.data's default for a read buffer


class BlockFile(StreamFile):
    """Reads the elements of one file, ``bytes`` each, from the first to the last. It is opened by the first read.

    Args:
        path: the file.
        compression_type: ``None`` or ``""``, ``"GZIP"`` or ``"ZLIB"``.
        buffer_size: bytes to read at once; None and 0 mean 256 KiB. Memory stays around twice this, or twice one
            element if that is more.

    Raises:
        ValueError: the compression type is unknown, or the buffer size negative.
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
        self._ready: list[bytes]  # those before _next have been returned
        self._go_to(0, 0)

    # What a format says.

    @abstractmethod
    def _start(self, stream: InputStream) -> None:
        """Move a stream that has just been opened to ``_offset``."""

    @abstractmethod
    def _read_elements(self, stream: InputStream) -> list[bytes]:
        """Read one block; the elements that it completes, if any, with ``_offset`` moved behind them.

        ``_end`` is called where the stream ends, ``DamagedStreamError`` raised where no element can be had.
        """

    @abstractmethod
    def _offset_of(self, index: int) -> int:
        """Where ``_ready[index]`` begins in the uncompressed stream, or what is behind the last of them."""

    @abstractmethod
    def _forget(self) -> None:
        """Drop what was read and belongs to no element yet."""

    def _described(self, damage: str) -> str:
        """The words of an error at the element that is next."""
        return damage

    # What is done with it.

    def columns(self, n: int) -> list[list[bytes]] | None:
        """The next elements, as the one column that they are.

        Args:
            n: how many at most. Fewer come when the block that was read last holds fewer.

        Returns:
            A list of 1 to ``n`` elements, in a list; ``None`` at the end, and ever after.

        Raises:
            DataLossError: here the file is cut short or corrupt. Raised once; the next call returns ``None``.
            OSError: the file is missing or can't be read. The next call tries again at the same place.
            ClosedError: after ``close``.
        """
        if self._next == len(self._ready) and not self._refill():
            return None
        taken = self._ready[self._next : self._next + n]
        self._next += len(taken)
        return [taken]

    def tell(self) -> tuple[int, int]:
        """Where the next element stands: its first byte in the uncompressed stream, and its number from 0."""
        return self._offset_of(self._next), self._first + self._next

    def seek(self, offset: int, number: int) -> None:
        """Continue at a place that ``tell`` gave. A compressed file is read up to it, and what is read is dropped."""
        if offset < 0 or number < 0:
            raise ValueError(f"{type(self).__name__}.seek(): a position can't be negative, got {(offset, number)}")
        self._check_open()
        self._release()
        self._go_to(offset, number)

    def close(self) -> None:
        """Give back the file and the memory, and keep the place. A second time does nothing."""
        self._release()
        self._go_to(*self.tell())
        self._closed = True

    def _go_to(self, offset: int, number: int) -> None:
        """Forget everything but the place. The next read opens the file there."""
        self._ready, self._next = [], 0
        self._first = number  # of _ready[0]
        self._offset = offset  # in the stream, behind the last element of _ready
        self._ended = False
        self._forget()

    def _end(self) -> None:
        self._ended = True
        self._release()

    def _refill(self) -> bool:
        """Read on until there are elements, or raise what stands in their place. False at the end."""
        self._check_open()
        self._first += len(self._ready)
        self._ready, self._next = [], 0
        before = self._offset
        while not self._ended and not self._ready:
            try:
                self._ready = self._read_elements(self._opened())
            except DamagedStreamError as damage:
                self._end()
                words = self._described(str(damage))
                raise DataLossError(words, path=self.path, offset=self._offset, record=self._first) from None
            except BaseException:
                # The handle may be stale, and what was read of it in vain: a later call opens the file again here.
                self._release()
                self._go_to(before, self._first)
                raise
        return bool(self._ready)

    def _opened(self) -> InputStream:
        """The stream, at the place where reading goes on."""
        if self._stream is None:
            stream = self._open()
            try:
                self._start(stream)
            except BaseException:
                stream.close()
                raise
            self._stream = stream
        return self._stream
