"""Zstandard streams (RFC 8878): reading in bounded pieces, and writing.

Python 3.14 has the library as ``compression.zstd``. Before, the package ``backports.zstd`` (the extra ``zstd``) has the
same interface. Its ``decompress(data, max_length)`` bounds the output of a call, which that of ``zstandard`` does not:
a block of 4 bytes may declare 128 KiB. It also tells a truncated stream from a complete one.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import zlib
from typing import TYPE_CHECKING, Any

from dataset.extras import load_extra
from dataset.io.files.compression import INFLATE_BYTES, ZSTD, DecompressedStream, read_input

if TYPE_CHECKING:
    from dataset.io.files.opening import InputFile

_RATIO_MAX = 1 << 15  # a block of 128 KiB from a header of 3 bytes and one byte that is repeated
_WINDOW_LOG_MAX = 27  # 128 MiB: the library allocates the window that a frame declares
_OTHER_MODES = {zlib.Z_SYNC_FLUSH: "FLUSH_BLOCK", zlib.Z_FINISH: "FLUSH_FRAME"}


@functools.cache
def _library() -> Any:
    with contextlib.suppress(ModuleNotFoundError):
        return importlib.import_module("compression.zstd")
    return load_extra("backports.zstd", "zstd", 'compression_type="ZSTD" needs')


class ZstdStream(DecompressedStream):
    """Stream of a Zstandard file; consecutive frames are read as one.

    The library discards the output of the call in which it finds damage. A reader must not lose the intact records
    before the damage, so the file is then decompressed again, and the input in which the damage was found is passed on
    byte by byte. A pipe cannot be read again: there, the output of that call is lost.
    """

    ratio_max = _RATIO_MAX

    def __init__(self, file: InputFile) -> None:
        self._damage: tuple[int, int] | None = None  # begin and end in the file of the input with the damage
        super().__init__(file)

    def _begin(self) -> None:
        super()._begin()
        self._taken = 0  # the offset in the file after _input
        self._passed = (0, 0)  # begin and end in the file of the last input that the library received
        self._inflater = self._new_inflater()
        self._between = True  # before the first frame, or between two frames

    @staticmethod
    def _new_inflater() -> Any:
        library = _library()
        return library.ZstdDecompressor(options={library.DecompressionParameter.window_log_max: _WINDOW_LOG_MAX})

    def _inflate(self, limit: int) -> bytes:
        while self._failure is None:
            at_end = self._inflater.needs_input and not self._input and not self._read_input()
            if at_end and self._between:
                return b""
            data, self._input = self._input, b""
            if data:
                self._passed = self._taken - len(data), self._taken
            try:
                piece: bytes = self._inflater.decompress(data, limit)
            except _library().ZstdError as error:
                self._inflater = self._new_inflater()  # the old one may hold a window of 128 MiB
                if "not enough memory" in str(error):
                    raise MemoryError(f"the window of a ZSTD stream does not fit into memory ({error})") from error
                if self._damage is None and self._file.seekable():
                    self._damage = self._passed
                    return self._begin_again() or self._inflate(limit)
                self._failure = self._corrupt(ZSTD, error, data)
                break
            self._between = False
            if self._inflater.eof:
                self._input = self._inflater.unused_data
                self._streams_read += 1
                self._inflater = self._new_inflater()
                self._between = True
            if piece:
                return piece
            if at_end:
                self._failure = self._truncated(ZSTD)
        raise self._failure

    def remaining_max(self) -> int:
        # The library keeps the input that it did not decompress.
        held = 0 if self._inflater.needs_input else INFLATE_BYTES
        return super().remaining_max() + held * self.ratio_max

    def _read_input(self) -> bytes:
        """Read input for the decompressor: usually a large piece, but single bytes where damage was found."""
        size = INFLATE_BYTES
        if self._damage is not None and self._taken < self._damage[1]:
            size = min(size, self._damage[0] - self._taken) if self._taken < self._damage[0] else 1
        self._input = read_input(self._file, size)
        self._taken += len(self._input)
        return self._input


class FrameCompressor:
    """Compressor of one Zstandard frame, with the interface of a zlib compressor.

    Args:
        level: as for zlib; ``None`` or -1 for the library's default.
    """

    def __init__(self, level: int | None) -> None:
        library = _library()
        settings = library.CompressionParameter
        options = {settings.checksum_flag: 1}  # as the command zstd does
        if level is not None and level >= 0:
            options[settings.compression_level] = max(level, 1)
        self._compressor = library.ZstdCompressor(options=options)

    def compress(self, data: bytes | bytearray | memoryview) -> bytes:
        compressed: bytes = self._compressor.compress(data)
        return compressed

    def flush(self, mode: int = zlib.Z_FINISH) -> bytes:
        flushed: bytes = self._compressor.flush(getattr(self._compressor, _OTHER_MODES[mode]))
        return flushed
