"""Sequential reader of TFRecord files, which verifies every checksum.

This module holds the open file and the position in it, and handles damage: which records are still returned, and the
error message. With a damage log, reading continues after damage. frames.py and frame_finder.py know the bytes of
frames, io/files/compression.py does the decompression. This module knows nothing about the contents of a record or
about datasets.

How the reader is fast: it reads a block of many frames at once, and finds, verifies and slices all of them in two calls
(frame_finder.py). Every block begins at a frame. A frame that extends past the end of its block is completed by reading
exactly the missing bytes. Large records are read in the same way, without copying them again.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from dataset.errors import DataLossError
from dataset.io.files.block_file import BlockFile
from dataset.io.files.compression import DamagedStreamError, InputStream
from dataset.io.tfrecord.damage.damage_log import DamageLog
from dataset.io.tfrecord.frame_finder import cut_frames, find_frames, frame_edges
from dataset.io.tfrecord.frames import (
    FOOTER_BYTES,
    FRAME_BYTES,
    HEADER_BYTES,
    VERIFY_ALL,
    VERIFY_NOTHING,
    DamagedFrameError,
    finish_frame,
    hinted,
    length_damage,
    read_exactly,
)
from dataset.plan.packed import BytesColumn
from dataset.redaction import redacted


class TFRecordFile(BlockFile):
    """Sequential reader of one TFRecord file; verifies the records.

    The first read opens the file. Damage raises ``DataLossError`` after all records before it were returned. The rest
    of the file is not read, because nothing shows where the next record begins.

    Args:
        path: the file.
        compression_type: ``None`` or ``""``, ``"GZIP"``, ``"ZLIB"`` or ``"ZSTD"``.
        buffer_size: bytes to read at once, by default 256 KiB. Memory use is about this, or one record if it is larger.
        verify: whether to verify the checksums of lengths and data. Without it, only impossible lengths are detected.
        log: gets the damage, which then raises no error. A record whose data has a wrong checksum is skipped, but keeps
            its number. After other damage the rest of the file is skipped: nothing shows where the next record begins.

    Raises:
        ValueError: the compression type is unknown, or the buffer size is negative.

    >>> import os, tempfile
    >>> from dataset.io import TFRecordWriter
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.tfrecord")
    ...     with TFRecordWriter(path) as writer:
    ...         for record in (b"one", b"two", b"three"):
    ...             writer.write(record)
    ...     with TFRecordFile(path) as file:
    ...         file.records(2), file.tell(), file.records(2), file.records(2)
    ([b'one', b'two'], (38, 2), [b'three'], None)
    """

    def __init__(
        self,
        path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
        compression_type: str | None = None,
        buffer_size: int | None = None,
        verify: bool = True,
        log: DamageLog | None = None,
    ) -> None:
        self._verify = verify
        self._log = log
        self.packed = False
        """Whether ``columns`` may return a BytesColumn, which it does if the native kernels are in use."""
        super().__init__(path, compression_type, buffer_size)
        self._block_bytes = max(self._block_bytes, HEADER_BYTES) if buffer_size != 0 else HEADER_BYTES  # 0: no buffer

    def records(self, n: int) -> list[bytes] | None:
        """Return the next records.

        Args:
            n: the maximum number of records. Fewer are returned if the current block holds fewer.

        Returns:
            1 to ``n`` records; ``None`` at the end and on every later call.

        Raises:
            DataLossError: the file is truncated or corrupt here. Raised once; the next call returns ``None``.
            FileNotFoundError: the file does not exist; raised by every call.
            OSError: the file can't be read. The next call tries again at the same position.
            ClosedError: after ``close``.
        """
        if n < 1:
            raise ValueError(f"TFRecordFile.records(): n must be at least 1, got {n}")
        column = self.columns(n)
        return None if column is None else list(column[0])

    def columns(self, n: int) -> list[Any] | None:
        """Return the next records as a single column."""
        if not self.packed and type(self._ready) is BytesColumn:
            self._ready = self._ready.tolist()
        return super().columns(n)

    def _offset_of(self, index: int) -> int:
        """Return the offset of a record; after a ``DataLossError``, that of the damage, where reading raises again."""
        return self._base + int(self._begins[index]) - HEADER_BYTES if index < len(self._ready) else self._offset

    def seek(self, offset: int, record: int) -> None:
        """Continue at a position that ``tell`` returned. A compressed file is decompressed up to it.

        Args:
            offset: the offset of a record's frame in the uncompressed stream.
            record: the number of that record, for later positions and error messages.
        """
        if offset < 0 or record < 0:
            raise ValueError(f"TFRecordFile.seek(): a position can't be negative, got {(offset, record)}")
        self._check_open()
        self._go_to(offset, record)

    @property
    def exhausted(self) -> bool:
        """Return whether nothing is left: the end was reached, or damage has been reported."""
        return self._ended and self._failure is None and self._next == len(self._ready)

    def close(self) -> None:
        """Release the file and the memory; the position is kept. May be called more than once."""
        ended = self.exhausted
        self._go_to(*self.tell())
        self._ended, self._closed = ended, True
        self._release()
        if self._log is not None:
            self._log.sum_up(redacted(self.path))

    def _forget(self) -> None:
        """Reset the state to ``_offset``. The stream stays open; the next read moves it there."""
        self._begins: list[int] | npt.NDArray[np.int64] = []  # of the data of _ready, relative to _base
        self._base = self._offset  # the offset of the block in the stream; _offset is that of the first frame not read
        self._failure: DataLossError | None = None  # reported after _ready has been returned
        self._damaged_bytes = 0  # the size of the damaged frame, if the next one can be found
        self._block: tuple[bytes, int] | None = None  # the block and the next frame, if it follows a damaged one
        self._big = False  # whether the last record was so large that reading blocks would copy it twice
        self._moved = True

    def _refill(self) -> bool:
        """Read until there are records, or raise the error in their place. Return False at the end."""
        self._check_open()
        self._first += len(self._ready)
        self._ready, self._begins, self._next = [], [], 0
        while not self._ready:
            if self._failure is not None:
                failure, self._failure = self._failure, None
                self._report(failure)
            elif self._ended:
                return False
            else:
                self._read_on()
        return True

    def _report(self, failure: DataLossError) -> None:
        """Log or raise the error after all records before it were returned."""
        if self._log is None:
            self._end()
            raise failure
        if self._ended:
            self._log.gave_up(failure)
        else:
            self._first += 1
            self._offset += self._damaged_bytes
            self._log.passed_over(failure)

    def _read_on(self) -> None:
        """Read the records of a block. Damage is recorded and reported after the records before it."""
        try:
            self._read_elements(self._opened())
        except DamagedStreamError as damage:
            self._fail(str(damage))
        except BaseException as error:
            # The bytes consumed by the stream are lost: the next read reopens the file at the record that failed.
            self._release()
            self._moved = True
            if not (self._ready and isinstance(error, OSError)):
                raise

    def _opened(self) -> InputStream:
        """Return the stream, at the position where reading continues."""
        if self._stream is None:
            self._stream = self._open()
            self._moved = self._offset > 0  # a pipe can be read as long as it is not moved
        if self._moved:
            self._stream.seek(self._offset)
            self._moved = False
        return self._stream

    def _read_elements(self, stream: InputStream) -> Any:
        """Slice the records of a block, up to the next damage, and complete its last record; they are in ``_ready``."""
        if self._block is None:
            self._base = self._offset
            block, position = stream.read(HEADER_BYTES if self._big else self._block_bytes), 0
        else:
            (block, position), self._block = self._block, None
        if not block:
            self._end()
            return self._ready
        verify = VERIFY_ALL if self._verify else VERIFY_NOTHING
        edges = frame_edges(block, position, verify) if self.packed else None
        if edges is None:
            self._begins, ends = find_frames(block, position, verify)
            self._ready = cut_frames(block, self._begins, ends)
        else:
            (self._begins, ends), self._ready = edges.T.copy(), BytesColumn.of_block(block, edges)
        position = int(ends[-1]) + FOOTER_BYTES if len(ends) else position
        self._offset = self._base + position
        if position == len(block):
            return self._ready
        head = block[position:]
        head += read_exactly(stream, HEADER_BYTES - len(head))
        try:
            data = finish_frame(stream, head, self._verify)
        except DamagedFrameError as damage:
            # No hint if the rest of the frame was read: the checksum of its length is correct.
            words = str(damage) if damage.size > len(head) else self._hinted(str(damage), head)
            if 0 < damage.size <= len(head):
                self._block = block, position + damage.size
            self._fail(words, damage.size)
            return self._ready
        self._big = len(data) >= self._block_bytes // 8
        begin = self._offset - self._base + HEADER_BYTES
        if isinstance(self._ready, BytesColumn):
            last = BytesColumn.of([data])
            self._ready = BytesColumn.joined([self._ready, last]) if self._ready else last
            self._begins = np.append(self._begins, begin)
        else:
            self._ready.append(data)
            self._begins.append(begin)  # type: ignore[union-attr]  # a list, as _ready
        self._offset += len(data) + FRAME_BYTES
        return self._ready

    def _is_plain(self, head: bytes) -> bool:
        return len(head) >= HEADER_BYTES and not length_damage(head, 0)

    def _end(self) -> None:
        super()._end()
        self._block = None

    def _fail(self, words: str, damaged_bytes: int = 0) -> None:
        """Record damage that follows the records in ``_ready``.

        Args:
            words: the message.
            damaged_bytes: the size of the damaged frame; 0 if unknown, so that reading can't continue after it.
        """
        number = self._first + len(self._ready)
        self._failure = DataLossError(words, path=self.path, offset=self._offset, record=number)
        self._damaged_bytes = damaged_bytes
        if not damaged_bytes:
            self._end()

    def _hinted(self, words: str, head: bytes) -> str:
        """Return the message; add what else the file may be if it is wrong from its first byte."""
        compressed = "" if self.compression_type else ': pass compression_type="{}"'
        return words if self._offset else hinted(words, head, compressed)
