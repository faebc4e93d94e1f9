"""Snappy streams in TensorFlow's format: blocks of raw Snappy, each after its size in four bytes, big-endian.

``tf.data`` reads and writes the same streams with ``compression="SNAPPY"``. This is not the framing format of Snappy's
own tools: blocks have no checksums, because the records in them have, and files have no magic bytes.
"""

from __future__ import annotations

import zlib
from typing import Any

from dataset.extras import load_extra
from dataset.io.files.compression import INFLATE_BYTES, SNAPPY, DecompressedStream, read_input

_SIZE_BYTES = 4
_BLOCK_BYTES = 1 << 18  # uncompressed, as TensorFlow writes them
_RATIO_MAX = 22  # 64 bytes from a copy of 3 bytes


def _library() -> Any:
    return load_extra("cramjam", "snappy", 'compression "SNAPPY" needs')


class SnappyStream(DecompressedStream):
    """Stream of a Snappy file, decompressed block by block."""

    ratio_max = _RATIO_MAX

    def _begin(self) -> None:
        super()._begin()
        self._library = _library()

    def _inflate(self, limit: int) -> bytes:  # noqa: ARG002  # a block is decompressed as a whole
        while self._failure is None:
            head = self._take(_SIZE_BYTES)
            if not head:
                return b""
            size = int.from_bytes(head, "big")
            block = self._take(size)
            if len(head) < _SIZE_BYTES or len(block) < size:
                self._failure = self._truncated(SNAPPY)
                break
            try:
                # The library allocates the declared size, so it is checked before.
                if self._library.snappy.decompress_raw_len(block) > size * _RATIO_MAX:
                    self._failure = self._corrupt(SNAPPY, "a block declares too many bytes", head + block[:4])
                    break
                piece = bytes(self._library.snappy.decompress_raw(block))
            except self._library.DecompressionError as error:
                self._failure = self._corrupt(SNAPPY, error, head + block[:4])
                break
            self._streams_read += 1
            if piece:
                return piece
        raise self._failure

    def _take(self, size: int) -> bytes:
        """Return the next ``size`` bytes of the file; fewer at its end."""
        pieces = [self._input]
        missing = size - len(self._input)
        while missing > 0 and (piece := read_input(self._file, INFLATE_BYTES)):
            pieces.append(piece)
            missing -= len(piece)
        content = b"".join(pieces)
        self._input = content[size:]
        return content[:size]


class SnappyCompressor:
    """Compressor of a Snappy stream, with the interface of a zlib compressor."""

    def __init__(self) -> None:
        self._compress = _library().snappy.compress_raw
        self._waiting = bytearray()

    def compress(self, data: bytes | bytearray | memoryview) -> bytes:
        self._waiting += data
        return b"".join(self._next_block() for _ in range(len(self._waiting) // _BLOCK_BYTES))

    def flush(self, mode: int = zlib.Z_FINISH) -> bytes:  # noqa: ARG002  # the stream has no end mark
        return self._next_block() if self._waiting else b""

    def _next_block(self) -> bytes:
        block = bytes(self._compress(self._waiting[:_BLOCK_BYTES]))
        del self._waiting[:_BLOCK_BYTES]
        return len(block).to_bytes(_SIZE_BYTES, "big") + block
