"""Frames of TFRecord files: their layout, finding them in a block, building them, and describing damage.

A file is a sequence of frames. Each frame is the length of the data (8 bytes, little-endian), the masked CRC-32C of
those 8 bytes (4 bytes), the data, and the masked CRC-32C of the data (4 bytes). The format is TensorFlow's ("TFRecord
and tf.train.Example" in its guide).

All code that depends on this layout is here, and so are the messages about damage. This module handles only bytes, and
the stream with the rest of a frame: no paths, no positions in files, no errors that users catch. frame_finder.py finds
many frames at once; reader.py and writer.py work with files.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence
from functools import lru_cache

from dataset.amounts import PIECE_BYTES
from dataset.io import libraries
from dataset.io.checksum import MASK_DELTA, UINT32_MAX, masked_crc
from dataset.io.files.compression import InputStream, bomb_words
from dataset.io.files.content_hint import content_hint
from dataset.io.indexed.index_file import index_hint

LENGTH_BYTES = 8
HEADER_BYTES = 12
FOOTER_BYTES = 4
FRAME_BYTES = HEADER_BYTES + FOOTER_BYTES  # around the data

# Which checksums to verify; the kernel knows these numbers.
VERIFY_NOTHING, VERIFY_LENGTHS, VERIFY_ALL = 0, 1, 2

_read_length = struct.Struct("<Q").unpack_from
_read_header = struct.Struct("<QI").unpack_from
_read_crc = struct.Struct("<I").unpack_from
_pack_header = struct.Struct("<QI").pack
_pack_length = struct.Struct("<Q").pack
_pack_crc = struct.Struct("<I").pack


class DamagedFrameError(Exception):
    """Internal error: a frame is truncated, or a checksum is wrong.

    Attributes:
        size: the size of the frame if only its data is damaged, so that its end shows where the next frame begins; else
            0.
    """

    def __init__(self, words: str, size: int = 0) -> None:
        super().__init__(words)
        self.size = size


def framed(data: bytes | bytearray | memoryview) -> tuple[bytes, bytes | bytearray | memoryview, bytes]:
    """Return the three pieces of a frame, in the order of writing: header, data, footer. The data isn't copied.

    >>> [piece.hex() for piece in framed(b"a")]
    ['01000000000000000175de41', '61', '786ee428']
    """
    return _header(len(data)), data, _pack_crc(masked_crc(data))


def framed_all(records: Sequence[bytes]) -> bytes:
    """Return the concatenated frames of all records.

    >>> framed_all([b"a"]) == b"".join(framed(b"a")), framed_all([])
    (True, b'')
    """
    pieces: list[bytes] = []
    add = pieces.append
    for data in records:
        add(_header(len(data)))
        add(data)
        crc = libraries.crc32c(data)
        add(_pack_crc(((crc >> 15 | crc << 17) + MASK_DELTA) & UINT32_MAX))  # masked_crc inlined: a fifth of the time
    return b"".join(pieces)


@lru_cache(maxsize=1024)  # in most files the records have few different lengths
def _header(length: int) -> bytes:
    return _pack_header(length, masked_crc(_pack_length(length)))


def walk_frames(block: bytes, position: int, verify: int) -> tuple[list[int], list[int]]:
    """Find consecutive complete frames from ``position`` on; the specification of ``find_frames`` in native/framing.c.

    Returns:
        Where the data of each frame begins, and where it ends. The first frame with a wrong checksum ends the walk.

    >>> walk_frames(framed_all([b"one", b"three"]) + b"begun", 0, VERIFY_ALL)
    ([12, 31], [15, 36])
    """
    begins: list[int] = []
    ends: list[int] = []
    while position + FRAME_BYTES <= len(block):
        (length,) = _read_length(block, position)
        begin, end = position + HEADER_BYTES, position + HEADER_BYTES + length
        if end + FOOTER_BYTES > len(block):
            break
        if verify and block[position:begin] != _header(length):
            break
        if verify == VERIFY_ALL and _read_crc(block, end)[0] != masked_crc(block[begin:end]):
            break
        begins.append(begin)
        ends.append(end)
        position = end + FOOTER_BYTES
    return begins, ends


def frame_bytes(block: bytes, start: int) -> int:
    """Return the size of the frame that begins at ``start``, according to its header."""
    return int(_read_length(block, start)[0]) + FRAME_BYTES


def finish_frame(stream: InputStream, head: bytes, verify: bool) -> bytes:
    """Read the rest of a frame, and no byte beyond it; return its data.

    Args:
        stream: positioned right after ``head``.
        head: the beginning of the frame, or all of it and more: at least its header, unless the stream ends before.
        verify: whether to verify the checksums.

    Raises:
        DamagedFrameError: the frame is truncated, or a checksum is wrong.
    """
    if len(head) < HEADER_BYTES:
        raise DamagedFrameError(header_words(len(head)))
    if verify and (words := length_damage(head, 0)):
        raise DamagedFrameError(words)
    length: int = _read_length(head, 0)[0]
    data, footer = head[HEADER_BYTES : HEADER_BYTES + length], head[HEADER_BYTES + length : FRAME_BYTES + length]
    if length > PIECE_BYTES:  # for smaller records, reading is cheaper than checking
        left = len(head) - HEADER_BYTES + stream.remaining_max()
        if length + FOOTER_BYTES > left:
            raise DamagedFrameError(cut_words(length, f"at most {left} bytes"))
        if length > (most := stream.whole_max()):
            raise DamagedFrameError(f"a record's header declares {length:,} bytes; {bomb_words('record', most)}")
    data = read_exactly(stream, length - len(data), data)
    footer = read_exactly(stream, FOOTER_BYTES - len(footer), footer)
    if len(data) < length or len(footer) < FOOTER_BYTES:
        raise DamagedFrameError(cut_words(length, f"{len(data) + len(footer)} bytes"))
    if verify and (words := data_damage(data, _read_crc(footer)[0])):
        raise DamagedFrameError(words, length + FRAME_BYTES)
    return data


def read_exactly(stream: InputStream, size: int, start: bytes = b"") -> bytes:
    """Return ``start`` and the next ``size`` bytes, or fewer at the end of the stream."""
    if size <= 0:
        return start
    piece = stream.read(min(size, PIECE_BYTES))
    if len(piece) == size and not start:
        return piece
    whole = io.BytesIO()  # grows as bytes arrive, and returns its buffer without a copy
    whole.write(start)
    while piece:
        whole.write(piece)
        size -= len(piece)
        piece = stream.read(min(size, PIECE_BYTES)) if size else b""
    return whole.getvalue()


def frame_damage(block: bytes, start: int, end: int) -> str:
    """Verify both checksums of one complete frame; return a message, or "" if they are correct."""
    (stored,) = _read_crc(block, end - FOOTER_BYTES)
    data = memoryview(block)[start + HEADER_BYTES : end - FOOTER_BYTES]
    return length_damage(block, start) or data_damage(data, stored)


def length_damage(block: bytes, start: int) -> str:
    """Verify the checksum of the length of the frame at ``start``; return a message, or "" if it is correct."""
    _, stored = _read_header(block, start)
    computed = masked_crc(block[start : start + LENGTH_BYTES])
    return "" if stored == computed else f"the checksum of a record's length is wrong: {_differing(stored, computed)}"


def data_damage(data: bytes | memoryview, stored: int) -> str:
    """Verify the stored checksum of the data; return a message, or "" if it is correct."""
    computed = masked_crc(data)
    if stored == computed:
        return ""
    return f"the checksum of a record's {len(data)} bytes is wrong: {_differing(stored, computed)}"


def _differing(stored: int, computed: int) -> str:
    return f"{stored:#010x} stored, {computed:#010x} computed"


def header_words(left: int) -> str:
    """Return the message for a truncated header: only ``left`` bytes are in the file."""
    return f"a record's header is truncated: {HEADER_BYTES} bytes expected, {left} left in the file"


def cut_words(length: int, left: str) -> str:
    """Return the message for a frame of ``length`` bytes of data whose header is followed by only ``left``."""
    return (
        f"a record is truncated: its header declares {length} bytes and a checksum of {FOOTER_BYTES}, but {left} "
        "follow; copying or writing the file may not have finished"
    )


def hinted(words: str, head: bytes, compressed: str) -> str:
    """Add to the message about the first bytes of a TFRecord file what else the file may be.

    Args:
        words: the message.
        head: the first bytes.
        compressed: what to do if they are those of a stream, whose kind replaces ``{}``; "" if it can't be a stream.
    """
    return f"{words}{index_hint(head) or content_hint(head, compressed) or '; is this a TFRecord file?'}"
