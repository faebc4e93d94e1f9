"""Compressed streams: which kinds there are, and how their bytes are read and written in bounded pieces.

It sees bytes and an open file, never a path or a record, so that every codec of this room shares it. Damage is reported
as ``DamagedStreamError``; the codec that reads the stream knows where that is and raises what the user sees.

Streams are inflated by zlib, or by isal where that is installed (the extra ``gzip``), which takes less than half the
time. What comes out, and what is said of damage, is the same: see ``_Inflated``.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
import zlib
from typing import TYPE_CHECKING, Any, Protocol

from dataset.errors import FileChangedError

if TYPE_CHECKING:
    from dataset.io.files.opening import InputFile

__all__ = ["Compressor", "DamagedStreamError", "InputStream", "bomb_words", "compression_name", "guess_compression"]
__all__ += ["new_compressor", "open_stream"]

# The window sizes that make zlib read and write each format (see its manual: 15 is zlib's own, 16 more is gzip's).
WINDOW_BITS = {"GZIP": 31, "ZLIB": 15}

# Compressed bytes asked from the file at once.
INPUT_BYTES = 1 << 16

# The least that is inflated at once; smaller reads are served from it.
PIECE_BYTES = 1 << 16

# Deflate can't do better: 258 bytes from 2 bits. So a file's size bounds what it inflates to.
DEFLATE_RATIO_MAX = 1032

# A record or line is inflated whole. Beyond this size it must not be larger than this many times the compressed file:
# data of this size compress less, and a file of a few megabytes could fill the memory.
LARGE_BYTES = 1 << 30
LARGE_RATIO_MAX = 100


class DamagedStreamError(Exception):
    """A stream is cut short, corrupt or changed meanwhile, or a position lies beyond its end. Codecs catch it."""


class InputStream(Protocol):
    """The bytes of a file after decompression, read forward."""

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` bytes, and at least one of them except at the end."""

    def seek(self, offset: int, /) -> None:
        """Go to a byte of the uncompressed stream."""

    def remaining_max(self) -> int:
        """At most this many bytes are still to come."""

    def whole_max(self) -> int:
        """The largest record or line to accept here; more would be out of proportion to the file."""

    def close(self) -> None:
        """Close the file below."""


class Compressor(Protocol):
    """What writes a stream: bytes in, bytes for the file out."""

    def compress(self, data: bytes | bytearray | memoryview, /) -> bytes | bytearray | memoryview:
        """Take ``data`` in; return what is ready for the file."""

    def flush(self, mode: int = zlib.Z_FINISH, /) -> bytes:
        """Return what was held back; ``zlib.Z_FINISH`` ends the stream."""


def compression_name(compression_type: str | None) -> str:
    """Check the name of a compression type; ``None`` and the empty string both mean uncompressed.

    Raises:
        ValueError: there is no such type.

    >>> compression_name("GZIP"), compression_name(None)
    ('GZIP', '')
    >>> compression_name("gz")
    Traceback (most recent call last):
    ...
    ValueError: compression_type must be None, "", "GZIP" or "ZLIB", got 'gz'
    """
    if compression_type is None or compression_type == "":
        return ""
    if not isinstance(compression_type, str) or compression_type not in WINDOW_BITS:
        raise ValueError(f'compression_type must be None, "", "GZIP" or "ZLIB", got {compression_type!r:.100}')
    return str(compression_type)


def guess_compression(head: bytes) -> str:
    """The compression that a file's first bytes look like, or the empty string.

    >>> guess_compression(zlib.compress(b"abc")), guess_compression(b"abc")
    ('ZLIB', '')
    """
    if head[:2] == b"\x1f\x8b":
        return "GZIP"
    if len(head) > 1 and head[0] & 0x8F == 8 and int.from_bytes(head[:2], "big") % 31 == 0:  # RFC 1950, section 2.2
        return "ZLIB"
    return ""


def open_stream(file: InputFile, compression: str) -> InputStream:
    """The uncompressed bytes of an open file.

    Args:
        file: at its beginning; the stream closes it.
        compression: a name from ``compression_name``.

    >>> import gzip, io
    >>> stream = open_stream(io.BytesIO(gzip.compress(b"abc") + gzip.compress(b"def")), "GZIP")
    >>> stream.read(3), stream.read(10), stream.read(10)
    (b'abc', b'def', b'')
    """
    return _Inflated(file, compression) if compression else _Plain(file)


def bomb_words(kind: str, most: int) -> str:
    """What is wrong with a record or line of more than ``most`` bytes, and what to do."""
    return (
        f"a {kind} of more than {most:,} bytes, {LARGE_RATIO_MAX} times the compressed file, would fill the memory "
        "from a small file; if it is real, decompress the file first"
    )


def new_compressor(compression: str, level: int | None = None) -> Compressor:
    """What turns bytes into a stream of this compression.

    Args:
        compression: a name from ``compression_name``.
        level: 0 (fastest) to 9 (smallest); ``None`` or -1 leaves it to zlib.

    >>> compressor = new_compressor("ZLIB", level=9)
    >>> zlib.decompress(compressor.compress(b"abc") + compressor.flush())
    b'abc'
    """
    if not compression:
        return _Uncompressed()
    return zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, WINDOW_BITS[compression])


@functools.cache
def quick_library() -> Any:
    """What isal has in the place of the zlib module; None where the extra ``gzip`` is not installed."""
    try:
        return importlib.import_module("isal.isal_zlib")
    except ImportError:
        return None


def _has_usual_header(start: bytes, compression: str) -> bool:
    """Whether isal may have a stream that starts so. It doesn't look at the reserved flags of gzip (RFC 1952)."""
    return compression != "GZIP" or (len(start) > 3 and not start[3] & 0xE0)


class _Uncompressed:
    def compress(self, data: bytes | bytearray | memoryview) -> bytes | bytearray | memoryview:
        return data

    def flush(self, mode: int = zlib.Z_FINISH) -> bytes:  # noqa: ARG002  # the signature is zlib's
        return b""


def _bytes_left(file: InputFile) -> int:
    """How much of the file follows its position, as it stands now. A pipe doesn't know."""
    if not file.seekable():
        return sys.maxsize
    here = file.tell()
    size = file.seek(0, os.SEEK_END)
    file.seek(here)
    return max(size - here, 0)


def _read(file: InputFile, size: int) -> bytes:
    """Up to ``size`` bytes of the file; none at the end, where it has not become shorter than what was read."""
    try:
        data = file.read(size)
    except FileChangedError as error:
        raise DamagedStreamError(error.message) from error
    if data:
        return data
    if file.seekable() and (here := file.tell()) > (now := file.seek(0, os.SEEK_END)):
        raise DamagedStreamError(f"the file was cut while it was read: {here} bytes were read, but it has {now} now")
    return b""


class _Plain:
    """A file as it is."""

    def __init__(self, file: InputFile) -> None:
        self._file = file

    def read(self, size: int) -> bytes:
        return _read(self._file, size)

    def seek(self, offset: int) -> None:
        self._file.seek(0)
        size = _bytes_left(self._file)
        if offset > size:
            raise DamagedStreamError(f"the file has {size} bytes only, and was to be read from byte {offset} on")
        self._file.seek(offset)

    def remaining_max(self) -> int:
        return _bytes_left(self._file)

    def whole_max(self) -> int:
        return sys.maxsize

    def close(self) -> None:
        self._file.close()


class _Inflated:
    """A gzip or zlib file, inflated piece by piece; several streams one after the other read as one.

    zlib drops the output of the very call in which it finds damage. A reader must not lose the sound records before it,
    so a copy of the state is kept from before each call, and a call that failed is repeated one input byte at a time.
    The copy costs about one percent of the work it insures.

    isal can't copy its state, and takes some headers that zlib refuses. So it has the sound streams only: wherever it
    finds anything wrong, zlib goes over the file again from its beginning, up to there and on, and says what it says.
    """

    def __init__(self, file: InputFile, compression: str) -> None:
        self._file = file
        self._compression = compression
        self._quick: Any = quick_library() if file.seekable() else None
        self._begin()

    def _begin(self) -> None:
        self._input = b""  # compressed, not yet taken by zlib
        self._ready = b""  # inflated; what lies before _at has been read
        self._at = 0
        self._position = 0
        self._streams_read = 0
        self._between = True  # before the first stream, or after the end of one
        self._failure: DamagedStreamError | None = None
        self._is_quick = False  # whether it is isal that inflates
        self._inflater: Any = None  # of the stream that was begun

    def read(self, size: int) -> bytes:
        if self._at == len(self._ready):
            self._at, self._ready = 0, b""
            self._ready = self._inflate(max(size, PIECE_BYTES))
        piece = self._ready[self._at : self._at + size]
        self._at += len(piece)
        self._position += len(piece)
        return piece

    def seek(self, offset: int) -> None:
        """Deflate has no way to start in the middle: read up to the place, from the beginning if it lies behind."""
        if offset < self._position:
            self._file.seek(0)
            self._begin()
        while self._position < offset:
            if not self.read(min(PIECE_BYTES, offset - self._position)):
                reached = self._position
                raise DamagedStreamError(f"the file has {reached} bytes only, and was to be read from byte {offset} on")

    def remaining_max(self) -> int:
        compressed = len(self._input) + _bytes_left(self._file)
        held = len(self._ready) - self._at + PIECE_BYTES  # and zlib itself may hold up to a window of 32 KiB
        return held + compressed * DEFLATE_RATIO_MAX

    def whole_max(self) -> int:
        left = _bytes_left(self._file)
        return max(LARGE_BYTES, (left if left == sys.maxsize else left + self._file.tell()) * LARGE_RATIO_MAX)

    def close(self) -> None:
        self._file.close()

    def _inflate(self, limit: int) -> bytes:
        """The next 1 to ``limit`` bytes, or none at the end."""
        while self._failure is None:
            if not self._input:
                self._input = _read(self._file, INPUT_BYTES)
            if self._between and not self._next_stream():
                return b""
            at_end = not self._input
            piece = self._quick_step(limit) if self._is_quick else self._step(limit)
            if piece:
                return piece
            if piece is None:
                return self._inflate_again(limit)
            if at_end and not self._between:
                self._failure = DamagedStreamError(
                    f"the {self._compression} stream is cut short: the file ends before the stream does; "
                    "its copy or its writer may not have finished"
                )
        raise self._failure

    def _next_stream(self) -> bool:
        """Whether another stream begins here. Zeros that pad a gzip file to a block of a tape or a disk don't count."""
        while self._streams_read and (stripped := self._input.lstrip(b"\0")) != self._input:
            self._input = stripped or _read(self._file, INPUT_BYTES)
        if not self._input:
            return False
        self._is_quick = self._quick is not None and _has_usual_header(self._input, self._compression)
        library: Any = self._quick if self._is_quick else zlib
        self._inflater = library.decompressobj(WINDOW_BITS[self._compression])
        self._between = False
        return True

    def _inflate_again(self, limit: int) -> bytes:
        """What isal could not give, by zlib: from the beginning of the file, since only that can be gone to."""
        reached = self._position
        self._quick = None
        self._file.seek(0)
        self._begin()
        self.seek(reached)
        rest = self._ready[self._at :]
        self._at, self._ready = 0, b""
        return rest or self._inflate(limit)

    def _quick_step(self, limit: int) -> bytes | None:
        """The same as ``_step`` by isal; None where anything is wrong, or nothing happens."""
        waiting = len(self._input)
        try:
            piece: bytes = self._inflater.decompress(self._input, limit)
        except self._quick.error:
            return None
        self._go_on()
        return piece if piece or self._between or len(self._input) < waiting else None

    def _step(self, limit: int) -> bytes:
        """Give zlib the waiting input and take at most ``limit`` bytes from it."""
        before = self._inflater.copy()
        try:
            piece: bytes = self._inflater.decompress(self._input, limit)
        except zlib.error as error:
            self._failure = self._describe(error)
            pieces = []
            with contextlib.suppress(zlib.error):
                for byte in self._input:
                    pieces.append(before.decompress(bytes((byte,))))  # noqa: PERF401  # what came before must stay
            return b"".join(pieces)
        self._go_on()
        return piece

    def _go_on(self) -> None:
        """Keep the input that was not taken."""
        self._input = self._inflater.unconsumed_tail
        if self._inflater.eof:
            self._input = self._inflater.unused_data
            self._streams_read += 1
            self._between = True

    def _describe(self, error: zlib.error) -> DamagedStreamError:
        kind = self._compression
        words = f"the {kind} stream is corrupt ({error})"
        if self._streams_read:
            words += f" after {self._streams_read} whole stream(s) of it"
        elif not self._position and guess_compression(self._input) != kind:
            other = guess_compression(self._input) or None
            words += (
                f"; it starts with {self._input[:4]!r}: is this a {kind} file? else pass compression_type={other!r}"
            )
        return DamagedStreamError(words)
