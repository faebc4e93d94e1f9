"""TFRecord files: the framing of records, a sequential reader that verifies every checksum, and a writer.

A file is a row of frames, each the length of the data (8 bytes, little-endian), the masked CRC-32C of those 8 bytes
(4 bytes), the data, and the masked CRC-32C of the data (4 bytes). The format is TensorFlow's ("TFRecord and
tf.train.Example" in its guide). What is inside a record, and what a Dataset is, is not known here.

How the reader is fast. It takes a block of many frames at once, hops over the lengths in one tight loop, cuts the
records out in one list comprehension, and then verifies all checksums of the block in one pass (``_Checksums``).
Every block begins where a frame begins: a frame that hangs over the end of its block is completed with reads of exactly
what it lacks, which is also how big records are read without copying them around.
"""

from __future__ import annotations

import io
import operator
import struct
import zlib
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Self

import numpy as np
from crc32c import crc32c

from dataset.errors import ClosedError, DataLossError
from dataset.io.compression import (
    DamagedStreamError,
    InputStream,
    compression_name,
    guess_compression,
    new_compressor,
    open_stream,
)
from dataset.io.files import AtomicFile, open_input, path_string

if TYPE_CHECKING:
    import os
    from types import TracebackType

__all__ = ["TFRecordFile", "TFRecordOptions", "TFRecordWriter"]

BLOCK_BYTES = 1 << 18  # tf.data's default for a read buffer
PIECE_BYTES_MAX = 1 << 20  # a record is taken in by pieces of this size, so that no declared length is believed

HEADER_BYTES = 12
FOOTER_BYTES = 4
FRAME_BYTES = HEADER_BYTES + FOOTER_BYTES  # around the data

UINT32_MAX = 0xFFFFFFFF
MASK_DELTA = 0xA282EAD8  # of the format: CRCs of data that holds CRCs are weak, so they are rotated and shifted
REGISTER_RESET = 0x9BE09BAB  # CRC-32C of these four bytes is 0; see _Checksums

# Below this many frames in a block, verifying them one by one takes less time than preparing to do it at once.
FEW_FRAMES = 24

_read_length = struct.Struct("<Q").unpack_from
_read_header = struct.Struct("<QI").unpack_from
_read_crc = struct.Struct("<I").unpack_from
_pack_length = struct.Struct("<Q").pack
_pack_crc = struct.Struct("<I").pack


def _masked_crc(data: bytes | bytearray | memoryview) -> int:
    crc: int = crc32c(data)
    return ((crc >> 15 | crc << 17) + MASK_DELTA) & UINT32_MAX


class TFRecordFile:
    """Reads the records of one TFRecord file from its beginning to its end, and verifies them.

    The file is opened by the first read. A damaged place raises ``DataLossError`` after all records before it have come
    out; the rest of the file is given up then, since nothing tells where the next record begins.

    Args:
        path: the file.
        compression_type: ``None`` or ``""``, ``"GZIP"`` or ``"ZLIB"``.
        buffer_size: bytes to read at once, by default 256 KiB. Memory stays around this, or one record if that is more.
        verify: whether to compute the checksums of lengths and data. Without it, only lengths that can't be are found.

    Raises:
        ValueError: the compression type is unknown, or the buffer size negative.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.tfrecord")
    ...     with TFRecordWriter(path) as writer:
    ...         for record in (b"one", b"two", b"three"):
    ...             writer.write(record)
    ...     with TFRecordFile(path) as file:
    ...         file.records(2), file.tell(), file.records(2), file.records(2)
    ([b'one', b'two'], (38, 2), [b'three'], None)
    """

    _stream: InputStream | None = None  # here too, for a __del__ after a constructor that raised

    def __init__(
        self,
        path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
        compression_type: str | None = None,
        buffer_size: int | None = None,
        verify: bool = True,
    ) -> None:
        self.path = path_string(path)
        self.compression_type = compression_name(compression_type)
        size = BLOCK_BYTES if buffer_size is None else operator.index(buffer_size)
        if size < 0:
            raise ValueError(f"TFRecordFile: buffer_size must be at least 0 bytes, got {size}")
        self._block_bytes = max(size, HEADER_BYTES)
        self._verify = verify
        self._closed = False
        self._ready: list[bytes]  # verified records; those before _next have been returned
        self._starts: list[int]  # of their frames, from _base, and the end of the last of them
        self._failure: DataLossError | None  # to be raised when _ready has been returned
        self._go_to(0, 0)

    def records(self, n: int) -> list[bytes] | None:
        """The next records.

        Args:
            n: how many at most. Fewer come when the block that was read last holds fewer.

        Returns:
            1 to ``n`` records; ``None`` at the end, and ever after.

        Raises:
            DataLossError: here the file is cut short or corrupt. Raised once; the next call returns ``None``.
            FileNotFoundError: no such file; raised by every call.
            OSError: the file can't be read. The next call tries again at the same place.
            ClosedError: after ``close``.
        """
        if n < 1:
            raise ValueError(f"TFRecordFile.records(): n must be at least 1, got {n}")
        if self._next == len(self._ready) and not self._refill():
            return None
        taken = self._ready[self._next : self._next + n]
        self._next += len(taken)
        return taken

    def tell(self) -> tuple[int, int]:
        """Where the next record stands: its first byte in the uncompressed stream, and its number from 0.

        After a ``DataLossError`` this is the place of the damage, and going back there raises it again; ``exhausted``
        tells that the file was given up.
        """
        number = self._first + self._next
        if self._next < len(self._ready):
            return self._base + self._starts[self._next], number
        return self._offset, number

    def seek(self, offset: int, record: int) -> None:
        """Continue at a place that ``tell`` gave. A compressed file is read up to it, and what is read is dropped.

        Args:
            offset: bytes from the beginning of the uncompressed stream to a record's frame.
            record: the number of that record, for later positions and error messages.
        """
        if offset < 0 or record < 0:
            raise ValueError(f"TFRecordFile.seek(): a position can't be negative, got {(offset, record)}")
        self._check_open()
        self._go_to(offset, record)

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left: the end was reached, or damage has been reported."""
        return self._ended and self._failure is None and self._next == len(self._ready)

    def close(self) -> None:
        """Give back the file and the memory, and keep the place. A second time does nothing."""
        ended = self.exhausted
        self._go_to(*self.tell())
        self._ended, self._closed = ended, True
        self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self._release()  # an iterator that is abandoned half way is no mistake, so no ResourceWarning

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"TFRecordFile: {self.path} was closed")

    def _go_to(self, offset: int, record: int) -> None:
        """Forget everything but the place. The stream stays open; the next read moves it there."""
        self._ready, self._starts, self._next = [], [], 0
        self._base = self._offset = offset  # in the stream: of the block's first byte; of what was not read yet
        self._first = record  # the number of _ready[0]
        self._failure = None
        self._ended = False
        self._big = False  # whether the last record was so big that reading blocks would only copy it twice
        self._moved = True

    def _release(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def _refill(self) -> bool:
        """Read on until there are records, or raise what stands in their place. False at the end."""
        self._check_open()
        self._first += len(self._ready)
        self._ready, self._starts, self._next = [], [], 0
        while not self._ready:
            if self._failure is not None:
                failure, self._failure = self._failure, None
                raise failure
            if self._ended:
                return False
            self._read_block()
        return True

    def _read_block(self) -> None:
        """Read one block and the rest of its last record. Damage is noted, for when the records before it are out."""
        self._base = self._offset
        try:
            stream = self._opened()
            block = stream.read(HEADER_BYTES if self._big else self._block_bytes)
            if not block:
                self._end()
                return
            starts = [0] if self._big else _frame_starts(block)
            if self._cut_records(block, starts) and starts[-1] < len(block):
                self._complete(stream, block[starts[-1] :])
        except DamagedStreamError as damage:
            self._fail(str(damage))
        except OSError:
            # What the stream has taken in is lost: a later read opens the file again, at the record that failed.
            self._release()
            self._moved = True
            if not self._ready:
                raise

    def _opened(self) -> InputStream:
        """The stream, at the place where reading goes on."""
        if self._stream is None:
            self._stream = open_stream(open_input(self.path), self.compression_type)
            self._checksums = _Checksums(self._block_bytes)
            self._moved = self._offset > 0  # a pipe can be read, if nobody asks it to move
        if self._moved:
            self._stream.seek(self._offset)
            self._moved = False
        return self._stream

    def _cut_records(self, block: bytes, starts: list[int]) -> bool:
        """Take the whole records out of the block. False if one of them is damaged."""
        self._starts = starts
        if len(starts) == 1:
            return True
        damage = self._checksums.first_damage(block, starts) if self._verify else None
        if damage is not None:
            del starts[damage[0] + 1 :]
        self._ready = [block[start + HEADER_BYTES : end - FOOTER_BYTES] for start, end in pairwise(starts)]
        self._offset = self._base + starts[-1]
        if damage is not None:
            self._fail(self._hinted(damage[1], block))
        return damage is None

    def _complete(self, stream: InputStream, head: bytes) -> None:
        """Read the rest of the record whose frame begins with ``head``."""
        head += self._exactly(stream, HEADER_BYTES - len(head))
        if len(head) < HEADER_BYTES:
            words = f"a record's header is cut: {HEADER_BYTES} bytes expected, {len(head)} left in the file"
            return self._fail(self._hinted(words, head))
        length, crc = _read_header(head)
        if self._verify and (computed := _masked_crc(head[:8])) != crc:
            return self._fail(self._hinted(_length_words(crc, computed), head))
        data = head[HEADER_BYTES : HEADER_BYTES + length]
        if length > PIECE_BYTES_MAX:  # or else finding out costs more than trying
            left = len(head) - HEADER_BYTES + stream.remaining_max()
            if length + FOOTER_BYTES > left:
                return self._fail(self._hinted(_cut_words(length, f"at most {left} bytes"), head))
        data = self._exactly(stream, length - len(data), data)
        footer = head[HEADER_BYTES + length :]
        footer += self._exactly(stream, FOOTER_BYTES - len(footer))
        if len(data) < length or len(footer) < FOOTER_BYTES:
            return self._fail(self._hinted(_cut_words(length, f"{len(data) + len(footer)} bytes"), head))
        (crc,) = _read_crc(footer)
        if self._verify and (computed := _masked_crc(data)) != crc:
            return self._fail(_data_words(crc, computed, length))
        self._offset += length + FRAME_BYTES
        self._ready.append(data)
        self._starts.append(self._offset - self._base)
        self._big = length >= self._block_bytes // 8
        return None

    @staticmethod
    def _exactly(stream: InputStream, size: int, start: bytes = b"") -> bytes:
        """``start`` and the next ``size`` bytes, or fewer at the end of the stream."""
        if size <= 0:
            return start
        piece = stream.read(min(size, PIECE_BYTES_MAX))
        if len(piece) == size and not start:
            return piece
        whole = io.BytesIO()  # grows as the bytes come, and hands its buffer over without copying it
        whole.write(start)
        while piece:
            whole.write(piece)
            size -= len(piece)
            piece = stream.read(min(size, PIECE_BYTES_MAX)) if size else b""
        return whole.getvalue()

    def _end(self) -> None:
        self._ended = True
        self._release()

    def _fail(self, words: str) -> None:
        """Note the damage at the place after the records that are ready, and give the file up."""
        number = self._first + len(self._ready)
        self._failure = DataLossError(words, path=self.path, offset=self._offset, record=number)
        self._end()

    def _hinted(self, words: str, head: bytes) -> str:
        """Say what else the file may be, when it is wrong from its first byte on."""
        if self._offset:
            return words
        guess = "" if self.compression_type else guess_compression(head)
        if guess:
            return f'{words}; the file starts like a {guess} stream: pass compression_type="{guess}"'
        return f"{words}; is this a TFRecord file?"


def _length_words(stored: int, computed: int) -> str:
    return f"the checksum of a record's length is wrong: {stored:#010x} stored, {computed:#010x} computed"


def _data_words(stored: int, computed: int, length: int) -> str:
    return f"the checksum of a record's {length} bytes is wrong: {stored:#010x} stored, {computed:#010x} computed"


def _cut_words(length: int, left: str) -> str:
    return (
        f"a record is cut: its header announces {length} bytes and a checksum of {FOOTER_BYTES}, but {left} follow; "
        "the file's copy or its writer may not have finished"
    )


def _frame_starts(block: bytes) -> list[int]:
    """Where the frames begin that are whole in the block, and where the last of them ends. Lengths are just believed.

    Files of equal records are common. So when the first two lengths agree, NumPy looks how long that goes on.
    """
    size = len(block)
    position = 0
    starts: list[int] = []
    if size >= HEADER_BYTES:
        stride = _read_length(block, 0)[0] + FRAME_BYTES
        count = size // stride
        if count > 2 and block[:8] == block[stride : stride + 8]:
            equal = np.ndarray((count,), "<u8", block, 0, (stride,)) == stride - FRAME_BYTES
            position = stride * (count if equal.all() else int(equal.argmin()))
            starts = list(range(0, position, stride))
    add = starts.append
    while position <= size - HEADER_BYTES:
        add(position)
        position += _read_length(block, position)[0] + FRAME_BYTES
    if position <= size:
        add(position)
    return starts


class _Checksums:
    """Verifies the checksums of all frames of a block in one pass.

    A call of crc32c costs 0.1 us, however short its data, and a record has two checksums to compute, unmask and
    compare. On a whole block, crc32c runs at 20 GB/s. So this asks one question about the block instead: *is every
    checksum right?* It relies on how a CRC works. The register after some data depends on nothing but the register
    before it and the data. Feeding it four more bytes, the CRC itself xor REGISTER_RESET, puts it back to its initial
    value whatever the data was, and no other four bytes do. So: copy the block, unmask every stored checksum, xor it
    with REGISTER_RESET, and take the CRC of all that. While the checksums are right the register is back at its
    initial value after each of them, and the result is 0, the CRC of nothing.

    What a wrong one does: from there on the register differs from what it should be, and steps that are one-to-one
    keep it different. So damage in one field (a length or a record's data, with its checksum) is found exactly when
    that field's own checksum finds it. Where several fields of a block are damaged, one may hide the other with the
    odds of 1 to 2^32 that a single CRC-32C always has.
    """

    def __init__(self, block_bytes: int) -> None:
        scratch = np.empty(block_bytes, np.uint8)
        self._view = scratch.data
        # A 32-bit number at every byte. Checksums stand where the records' lengths put them, seldom aligned.
        self._words = np.ndarray((block_bytes - 3,), "<u4", scratch, 0, (1,))

    def first_damage(self, block: bytes, starts: list[int]) -> tuple[int, str] | None:
        """The index of the first frame with a wrong checksum, and words about it; ``None`` if there is none."""
        if len(starts) > FEW_FRAMES and self._all_right(block, starts):
            return None
        for index, (start, end) in enumerate(pairwise(starts)):
            words = _frame_damage(block, start, end)
            if words:
                return index, words
        return None

    def _all_right(self, block: bytes, starts: list[int]) -> bool:
        edges = np.fromiter(starts, np.int64, len(starts))
        places = np.concatenate((edges[:-1] + 8, edges[1:] - FOOTER_BYTES))
        self._view[: len(block)] = block
        crcs = self._words[places]
        crcs -= np.uint32(MASK_DELTA)
        low = crcs >> np.uint32(17)
        crcs <<= np.uint32(15)
        crcs |= low
        crcs ^= np.uint32(REGISTER_RESET)
        self._words[places] = crcs
        return bool(crc32c(self._view[: starts[-1]]) == 0)


def _frame_damage(block: bytes, start: int, end: int) -> str:
    """What is wrong with the checksums of one whole frame; empty if nothing is."""
    length, stored = _read_header(block, start)
    computed = _masked_crc(block[start : start + 8])
    if stored != computed:
        return _length_words(stored, computed)
    (stored,) = _read_crc(block, end - FOOTER_BYTES)
    computed = _masked_crc(memoryview(block)[start + HEADER_BYTES : end - FOOTER_BYTES])
    return "" if stored == computed else _data_words(stored, computed, length)


@dataclass(frozen=True)
class TFRecordOptions:
    """How a TFRecord file is compressed.

    Args:
        compression_type: ``None`` or ``""``, ``"GZIP"`` or ``"ZLIB"``.
        compression_level: 0 (fastest) to 9 (smallest); ``None`` or -1 for zlib's default. Without compression it does
            nothing.

    Raises:
        ValueError: the type or the level is none of these.

    >>> TFRecordOptions("GZIP", compression_level=9)
    TFRecordOptions(compression_type='GZIP', compression_level=9)
    """

    compression_type: str | None = None
    compression_level: int | None = None

    def __post_init__(self) -> None:
        compression_name(self.compression_type)
        if self.compression_level is not None and not -1 <= operator.index(self.compression_level) <= 9:
            raise ValueError(f"compression_level must be None or -1 to 9, got {self.compression_level!r}")


class TFRecordWriter:
    """Writes records to a TFRecord file, which appears under its name when ``close`` has succeeded.

    Until then the bytes lie under a temporary name in the same directory. Leaving a ``with`` block by an exception, a
    write that fails, and dropping the writer without closing it remove them and leave nothing under the name.

    Args:
        path: the file to write. One that exists is replaced at the end.
        options: ``TFRecordOptions``, or just a compression type such as ``"GZIP"``.

    Raises:
        OSError: nothing can be written there; the message says why and what to do.
        TypeError: the options are neither ``TFRecordOptions`` nor a string.
        ValueError: an option is wrong.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with TFRecordWriter(os.path.join(folder, "a.tfrecord"), "GZIP") as writer:
    ...         writer.write(b"a record")
    ...     os.listdir(folder)
    ['a.tfrecord']
    """

    def __init__(
        self,
        path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
        options: TFRecordOptions | str | None = None,
    ) -> None:
        if options is None or isinstance(options, str):
            options = TFRecordOptions(options)
        if not isinstance(options, TFRecordOptions):
            raise TypeError(f"TFRecordWriter: options must be TFRecordOptions or a string, got {options!r:.100}")
        self._compressor = new_compressor(compression_name(options.compression_type), options.compression_level)
        self._target = AtomicFile(path)

    def write(self, record: bytes | bytearray | memoryview) -> None:
        """Append one record.

        Args:
            record: its bytes.

        Raises:
            TypeError: it is not bytes.
            ValueError: the writer was closed.
            OSError: the disk is full, for example; the file is discarded.
        """
        if not isinstance(record, (bytes, bytearray, memoryview)):
            way_out = "call its SerializeToString()" if hasattr(record, "SerializeToString") else "encode it first"
            got = f"{type(record).__name__}: {record!r:.100}"
            raise TypeError(f"TFRecordWriter.write(): a record must be bytes, got {got}; {way_out}")
        data = memoryview(record).cast("B") if isinstance(record, memoryview) else record
        length = _pack_length(len(data))
        self._put(length + _pack_crc(_masked_crc(length)), data, _pack_crc(_masked_crc(data)))

    def flush(self) -> None:
        """Hand what was written to the operating system, still under the temporary name."""
        self._put(flush_mode=zlib.Z_SYNC_FLUSH)
        self._target.file.flush()

    def close(self) -> None:
        """Finish the file and give it its name. A second time, and after a failure, it does nothing."""
        if not self._target.closed:
            self._put(flush_mode=zlib.Z_FINISH)
            self._target.commit()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._target.discard()

    def _put(self, *pieces: bytes | bytearray | memoryview, flush_mode: int = zlib.Z_NO_FLUSH) -> None:
        if self._target.closed:
            raise ValueError(f"TFRecordWriter: the writer of {self._target.path} is closed")
        try:
            for piece in pieces:
                self._target.file.write(self._compressor.compress(piece))
            if flush_mode != zlib.Z_NO_FLUSH:
                self._target.file.write(self._compressor.flush(flush_mode))
        except BaseException:
            # A frame may be written by half. Without this, a later close() would give the broken file its name.
            self._target.discard()
            raise
