"""Compressed streams: the supported formats, and reading and writing them in bounded pieces.

This module handles bytes and open files, never paths or records, so all codecs share it. Damage is reported as
``DamagedStreamError``. The codec that reads the stream knows the position and raises the error that the user sees.

Streams are inflated by zlib, or by isal if it is installed (the extra ``gzip``). isal takes less than half the time.
The output and the error messages are the same: see ``_Inflated``. zstd.py reads and writes Zstandard, snappy.py Snappy.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import re
import sys
import zlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Protocol

from dataset.errors import FileChangedError
from dataset.io.files.opening import open_input

if TYPE_CHECKING:
    from dataset.io.files.opening import InputFile

# The wbits values that select the format (see zlib's manual: 15 is zlib, 16 more is gzip).
WINDOW_BITS = {"GZIP": 31, "ZLIB": 15}

AUTO = "AUTO"
"""For reading: the first bytes of each file determine its compression."""

SNAPPY = "SNAPPY"

ZSTD = "ZSTD"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"  # RFC 8878, section 3.1.1
_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")  # section 3.1.2; such frames may begin a file

# Compressed bytes read from the file at once, and the minimum of bytes inflated at once. Smaller reads are served from
# the rest, and input with damage is inflated byte by byte.
INFLATE_BYTES = 1 << 16

# The maximum ratio of deflate: 258 bytes from 2 bits. So the size of a file bounds its inflated size.
DEFLATE_RATIO_MAX = 1032

# A record or line is inflated as a whole. If it is larger than LARGE_BYTES, it must not exceed LARGE_RATIO_MAX times
# the size of the compressed file: real data of this size compress less, and a file of a few megabytes could fill the
# memory.
LARGE_BYTES = 1 << 30
LARGE_RATIO_MAX = 100


class DamagedStreamError(Exception):
    """A stream is truncated, corrupt or was modified while read, or a position is past its end. Codecs catch this."""


class InputStream(Protocol):
    """Forward stream of the decompressed bytes of a file."""

    def read(self, size: int, /) -> bytes:
        """Return 1 to ``size`` bytes; empty at the end."""

    def seek(self, offset: int, /) -> None:
        """Move to a byte offset of the uncompressed stream."""

    def remaining_max(self) -> int:
        """Return an upper bound for the number of remaining bytes."""

    def whole_max(self) -> int:
        """Return the maximum size of a record or line; a larger one would be out of proportion to the file."""

    def close(self) -> None:
        """Close the underlying file."""


class Compressor(Protocol):
    """Incremental compressor: takes bytes, returns bytes for the file."""

    def compress(self, data: bytes | bytearray | memoryview, /) -> bytes | bytearray | memoryview:
        """Compress ``data``; return the bytes that are ready for the file."""

    def flush(self, mode: int = zlib.Z_FINISH, /) -> bytes:
        """Return the buffered bytes; ``zlib.Z_FINISH`` ends the stream."""


def compression_name(compression_type: str | None, *, reading: bool = False) -> str:
    """Check and return the name of a compression type; ``None`` and the empty string both mean uncompressed.

    Args:
        compression_type: the user's value.
        reading: whether ``"AUTO"`` is valid.

    Raises:
        ValueError: the type does not exist.

    >>> compression_name("GZIP"), compression_name(None)
    ('GZIP', '')
    >>> compression_name("gz")
    Traceback (most recent call last):
    ...
    ValueError: compression_type must be None, "", "GZIP", "ZLIB", "ZSTD" or "SNAPPY", got 'gz'
    """
    if compression_type is None or compression_type == "":
        return ""
    names = [*WINDOW_BITS, ZSTD, SNAPPY, *([AUTO] if reading else [])]
    if not isinstance(compression_type, str) or compression_type not in names:
        *most, last = (f'"{name}"' for name in names)
        raise ValueError(
            f'compression_type must be None, "", {", ".join(most)} or {last}, got {compression_type!r:.100}'
        )
    return str(compression_type)


def detect_compression(head: bytes, *, is_whole: bool) -> str:
    """Return the compression of a file that begins with ``head``; the empty string if it is not compressed.

    GZIP and ZSTD begin with bytes that no text begins with. The two bytes of ZLIB may begin a text, such as ``x^2``, so
    the rest must be a stream, too: a complete one if there are no more bytes. SNAPPY has no mark and is not detected.

    Args:
        head: the first bytes.
        is_whole: whether they are the whole file.

    >>> detect_compression(zlib.compress(b"abc"), is_whole=True), detect_compression(b"x^2", is_whole=True)
    ('ZLIB', '')
    """
    found = guess_compression(head)
    if found != "ZLIB":
        return found
    inflater = zlib.decompressobj()
    try:
        inflater.decompress(head)
    except zlib.error:
        return ""
    return found if inflater.eof or not is_whole else ""


def guess_compression(head: bytes) -> str:
    """Return the compression that the first bytes of a file look like, or the empty string.

    >>> guess_compression(zlib.compress(b"abc")), guess_compression(b"abc")
    ('ZLIB', '')
    """
    if head[:2] == b"\x1f\x8b":
        return "GZIP"
    frame = head
    while _SKIPPABLE.match(frame):  # of any length: what follows the first bytes is taken as ZSTD
        frame = frame[8 + int.from_bytes(frame[4:8], "little") :] or ZSTD_MAGIC
    if frame.startswith(ZSTD_MAGIC):
        return ZSTD
    if len(head) > 1 and head[0] & 0x8F == 8 and int.from_bytes(head[:2], "big") % 31 == 0:  # RFC 1950, section 2.2
        return "ZLIB"
    return ""


def open_stream(file: InputFile, compression: str) -> InputStream:
    """Return a stream of the uncompressed bytes of an open file.

    Args:
        file: positioned at its beginning; the stream closes it.
        compression: a name from ``compression_name``.

    >>> import gzip, io
    >>> stream = open_stream(io.BytesIO(gzip.compress(b"abc") + gzip.compress(b"def")), "GZIP")
    >>> stream.read(3), stream.read(10), stream.read(10)
    (b'abc', b'def', b'')
    """
    if compression == ZSTD:
        return _zstd().ZstdStream(file)  # type: ignore[no-any-return]
    if compression == SNAPPY:
        return _snappy().SnappyStream(file)  # type: ignore[no-any-return]
    return _Inflated(file, compression) if compression else _Plain(file)


def open_decompressed(path: str, compression: str) -> InputStream:
    """Open a file and return the stream of its uncompressed bytes. If there can be no stream, the file is closed.

    Args:
        path: as returned by ``path_string``.
        compression: a name from ``compression_name``.

    Raises:
        OSError, ValueError: as ``open_input``.
        ImportError: as ``open_input``; or an extra is missing that the compression needs.
    """
    file = open_input(path)
    try:
        return open_stream(file, compression)
    except BaseException:
        file.close()
        raise


def _zstd() -> Any:
    """Return the module for Zstandard, which needs an extra before Python 3.14."""
    return importlib.import_module("dataset.io.files.zstd")


def _snappy() -> Any:
    """Return the module for Snappy, which needs an extra."""
    return importlib.import_module("dataset.io.files.snappy")


def bomb_words(kind: str, most: int) -> str:
    """Return the error message for a record or line of more than ``most`` bytes."""
    return (
        f"a {kind} has more than {most:,} bytes, {LARGE_RATIO_MAX} times the size of the compressed file; a small file "
        "could fill the memory this way; if the data is valid, decompress the file first"
    )


def new_compressor(compression: str, level: int | None = None) -> Compressor:
    """Return a compressor.

    Args:
        compression: a name from ``compression_name``.
        level: 0 (fastest) to 9 (smallest); ``None`` or -1 leaves it to the library. Snappy has no levels.

    >>> compressor = new_compressor("ZLIB", level=9)
    >>> zlib.decompress(compressor.compress(b"abc") + compressor.flush())
    b'abc'
    """
    if not compression:
        return _Uncompressed()
    if compression == ZSTD:
        return _zstd().FrameCompressor(level)  # type: ignore[no-any-return]
    if compression == SNAPPY:
        return _snappy().SnappyCompressor()  # type: ignore[no-any-return]
    return zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, WINDOW_BITS[compression])


@functools.cache
def quick_library() -> Any:
    """Return isal's replacement of the zlib module, or None if the extra ``gzip`` is not installed."""
    try:
        return importlib.import_module("isal.isal_zlib")
    except ImportError:
        return None


def _has_usual_header(start: bytes, compression: str) -> bool:
    """Return whether isal may read a stream with this start. It doesn't check the reserved flags of gzip (RFC 1952)."""
    return compression != "GZIP" or (len(start) > 3 and not start[3] & 0xE0)


class _Uncompressed:
    def compress(self, data: bytes | bytearray | memoryview) -> bytes | bytearray | memoryview:
        return data

    def flush(self, mode: int = zlib.Z_FINISH) -> bytes:  # noqa: ARG002  # the signature is zlib's
        return b""


def _bytes_left(file: InputFile) -> int:
    """Return how many bytes of the file follow its position now; ``sys.maxsize`` for a pipe."""
    if not file.seekable():
        return sys.maxsize
    here = file.tell()
    size = file.seek(0, os.SEEK_END)
    file.seek(here)
    return max(size - here, 0)


def read_input(file: InputFile, size: int) -> bytes:
    """Return up to ``size`` bytes of the file, none at the end. Fail if the file is now shorter than what was read."""
    try:
        data = file.read(size)
    except FileChangedError as error:
        raise DamagedStreamError(error.message) from error
    if data:
        return data
    if file.seekable() and (here := file.tell()) > (now := file.seek(0, os.SEEK_END)):
        raise DamagedStreamError(
            f"the file was truncated while it was read: {here} bytes were read, but it has only {now} now"
        )
    return b""


def begins_after_end(size: int, offset: int) -> DamagedStreamError:
    """Return the error for a file that is shorter than the offset to read from."""
    return DamagedStreamError(f"the file has only {size} bytes, but reading has to start at byte {offset}")


class _Plain:
    """Stream of an uncompressed file."""

    def __init__(self, file: InputFile) -> None:
        self._file = file

    def read(self, size: int) -> bytes:
        return read_input(self._file, size)

    def seek(self, offset: int) -> None:
        self._file.seek(0)
        size = _bytes_left(self._file)
        if offset > size:
            raise begins_after_end(size, offset)
        self._file.seek(offset)

    def remaining_max(self) -> int:
        return _bytes_left(self._file)

    def whole_max(self) -> int:
        return sys.maxsize

    def close(self) -> None:
        self._file.close()


class DecompressedStream(ABC):
    """Base class of streams that are decompressed in pieces: a forward position and bounds of the sizes.

    Args:
        file: the compressed file, positioned at its beginning.
    """

    ratio_max: int
    """The maximum ratio of uncompressed to compressed bytes."""

    def __init__(self, file: InputFile) -> None:
        self._file = file
        self._begin()

    def _begin(self) -> None:
        """Reset the state to the beginning of the file."""
        self._input = b""  # compressed, not yet consumed by the library
        self._ready = b""  # decompressed; the bytes before _at have been read
        self._at = 0
        self._position = 0
        self._streams_read = 0
        self._failure: DamagedStreamError | None = None

    @abstractmethod
    def _inflate(self, limit: int) -> bytes:
        """Return the next 1 to ``limit`` bytes, or none at the end."""

    def read(self, size: int) -> bytes:
        if self._at == len(self._ready):
            self._at, self._ready = 0, b""
            self._ready = self._inflate(max(size, INFLATE_BYTES))
        piece = self._ready[self._at : self._at + size]
        self._at += len(piece)
        self._position += len(piece)
        return piece

    def seek(self, offset: int) -> None:
        """Read up to the offset, from the beginning if it was passed: compressed streams have no random access."""
        if offset < self._position:
            self._file.seek(0)
            self._begin()
        while self._position < offset:
            if not self.read(min(INFLATE_BYTES, offset - self._position)):
                raise begins_after_end(self._position, offset)

    def _begin_again(self) -> bytes:
        """Reopen the stream and decompress it up to the current position. Return what is ready after that."""
        reached = self._position
        self._file.seek(0)
        self._begin()
        self.seek(reached)
        rest = self._ready[self._at :]
        self._at, self._ready = 0, b""
        return rest

    def remaining_max(self) -> int:
        compressed = len(self._input) + _bytes_left(self._file)
        held = len(self._ready) - self._at + INFLATE_BYTES  # the library itself may hold a window
        return held + compressed * self.ratio_max

    def whole_max(self) -> int:
        left = _bytes_left(self._file)
        return max(LARGE_BYTES, (left if left == sys.maxsize else left + self._file.tell()) * LARGE_RATIO_MAX)

    def close(self) -> None:
        self._file.close()

    def _truncated(self, kind: str) -> DamagedStreamError:
        return DamagedStreamError(
            f"the {kind} stream is truncated: the file ends before the stream does; "
            "copying or writing the file may not have finished"
        )

    def _corrupt(self, kind: str, reason: object, start: bytes) -> DamagedStreamError:
        """Return the error for a corrupt stream; ``start`` is the input that was rejected."""
        words = f"the {kind} stream is corrupt ({reason})"
        if self._streams_read:
            words += f" after {self._streams_read} complete stream(s)"
        elif not self._position and guess_compression(start) != kind:
            other = guess_compression(start) or None
            words += f"; it starts with {start[:4]!r}; if this is not a {kind} file, pass compression_type={other!r}"
        return DamagedStreamError(words)


class _Inflated(DecompressedStream):
    """Stream of a gzip or zlib file, inflated in pieces; consecutive compressed streams are read as one.

    zlib discards the output of the call in which it finds damage. A reader must not lose the intact records before the
    damage. So the state is copied before each call, and a call that failed is repeated one input byte at a time. The
    copy takes about one percent of the time of inflating.

    isal can't copy its state, and it accepts some headers that zlib rejects. So isal handles intact streams only. If
    it finds an error, zlib inflates the file again from the beginning, continues from there and reports the error.
    """

    ratio_max = DEFLATE_RATIO_MAX

    def __init__(self, file: InputFile, compression: str) -> None:
        self._compression = compression
        self._quick: Any = quick_library() if file.seekable() else None
        super().__init__(file)

    def _begin(self) -> None:
        super()._begin()
        self._between = True  # before the first stream, or between two streams
        self._is_quick = False  # whether isal inflates the current stream
        self._inflater: Any = None  # of the current stream

    def _inflate(self, limit: int) -> bytes:
        while self._failure is None:
            if not self._input:
                self._input = read_input(self._file, INFLATE_BYTES)
            if self._between and not self._next_stream():
                return b""
            at_end = not self._input
            piece = self._quick_step(limit) if self._is_quick else self._step(limit)
            if piece:
                return piece
            if piece is None:
                return self._inflate_again(limit)
            if at_end and not self._between:
                self._failure = self._truncated(self._compression)
        raise self._failure

    def _next_stream(self) -> bool:
        """Begin the next stream; return whether there is one. Skips zeros that pad the file to a disk or tape block."""
        while self._streams_read and (stripped := self._input.lstrip(b"\0")) != self._input:
            self._input = stripped or read_input(self._file, INFLATE_BYTES)
        if not self._input:
            return False
        self._is_quick = self._quick is not None and _has_usual_header(self._input, self._compression)
        library: Any = self._quick if self._is_quick else zlib
        self._inflater = library.decompressobj(WINDOW_BITS[self._compression])
        self._between = False
        return True

    def _inflate_again(self, limit: int) -> bytes:
        """Return the bytes that isal could not inflate, by inflating the file with zlib from the beginning."""
        self._quick = None
        return self._begin_again() or self._inflate(limit)

    def _quick_step(self, limit: int) -> bytes | None:
        """Do the same as ``_step`` with isal; return None on an error or without progress."""
        waiting = len(self._input)
        try:
            piece: bytes = self._inflater.decompress(self._input, limit)
        except self._quick.error:
            return None
        self._go_on()
        return piece if piece or self._between or len(self._input) < waiting else None

    def _step(self, limit: int) -> bytes:
        """Pass the waiting input to zlib and return at most ``limit`` bytes of its output."""
        before = self._inflater.copy()
        try:
            piece: bytes = self._inflater.decompress(self._input, limit)
        except zlib.error as error:
            self._failure = self._corrupt(self._compression, error, self._input)
            pieces = []
            with contextlib.suppress(zlib.error):
                for byte in self._input:
                    pieces.append(before.decompress(bytes((byte,))))  # noqa: PERF401  # keeps the pieces before an error
            return b"".join(pieces)
        self._go_on()
        return piece

    def _go_on(self) -> None:
        """Keep the input that was not consumed."""
        self._input = self._inflater.unconsumed_tail
        if self._inflater.eof:
            self._input = self._inflater.unused_data
            self._streams_read += 1
            self._between = True
