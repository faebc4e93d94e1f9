"""The frames of TFRecord files: how one is laid out, found in a block, put around data, and what is wrong with one.

A file is a row of frames, each the length of the data (8 bytes, little-endian), the masked CRC-32C of those 8 bytes
(4 bytes), the data, and the masked CRC-32C of the data (4 bytes). The format is TensorFlow's ("TFRecord and
tf.train.Example" in its guide).

Everything that knows this layout byte by byte lives here, and so do the words for damage. Only bytes are seen, and the
stream that has the rest of a frame: no path, no place in a file, no error that users catch. checksums.py verifies
many frames at once; reader.py and writer.py work with files.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dataset.io import libraries
from dataset.io.files.compression import bomb_words

if TYPE_CHECKING:
    from dataset.io.files.compression import InputStream

__all__ = ["FOOTER_BYTES", "FRAME_BYTES", "HEADER_BYTES", "LENGTH_BYTES", "MASK_DELTA", "DamagedFrameError"]
__all__ += ["FrameDamage", "cut_frames", "cut_words", "data_damage", "finish_frame", "frame_bytes", "frame_damage"]
__all__ += ["frame_starts", "framed", "framed_all", "length_damage", "masked_crc", "read_exactly"]

LENGTH_BYTES = 8
HEADER_BYTES = 12
FOOTER_BYTES = 4
FRAME_BYTES = HEADER_BYTES + FOOTER_BYTES  # around the data

PIECE_BYTES_MAX = 1 << 20  # a record is taken in by pieces of this size, so that no declared length is believed

UINT32_MAX = 0xFFFFFFFF
MASK_DELTA = 0xA282EAD8  # of the format: CRCs of data that holds CRCs are weak, so they are rotated and shifted

_read_length = struct.Struct("<Q").unpack_from
_read_header = struct.Struct("<QI").unpack_from
_read_crc = struct.Struct("<I").unpack_from
_pack_header = struct.Struct("<QI").pack
_pack_length = struct.Struct("<Q").pack
_pack_crc = struct.Struct("<I").pack


class FrameDamage(NamedTuple):
    """What is wrong with a frame that is whole by its length.

    Attributes:
        words: for the user.
        length_is_right: whether only the data is damaged, so that the next frame begins where this one says.
    """

    words: str
    length_is_right: bool


class DamagedFrameError(Exception):
    """A frame is cut short, or the checksum of its length is wrong. The reader catches it."""


def masked_crc(data: bytes | bytearray | memoryview) -> int:
    """The CRC-32C of bytes, as the format stores it."""
    crc: int = libraries.crc32c(data)
    return ((crc >> 15 | crc << 17) + MASK_DELTA) & UINT32_MAX


def framed(data: bytes | bytearray | memoryview) -> tuple[bytes, bytes | bytearray | memoryview, bytes]:
    """The three pieces of a frame, to be written one after the other: header, data, footer. The data isn't copied.

    >>> [piece.hex() for piece in framed(b"a")]
    ['01000000000000000175de41', '61', '786ee428']
    """
    return _header(len(data)), data, _pack_crc(masked_crc(data))


def framed_all(records: Sequence[bytes]) -> bytes:
    """The frames of all records, one after the other.

    >>> framed_all([b"a"]) == b"".join(framed(b"a")), framed_all([])
    (True, b'')
    """
    pieces: list[bytes] = []
    add = pieces.append
    for data in records:
        add(_header(len(data)))
        add(data)
        crc = libraries.crc32c(data)
        add(_pack_crc(((crc >> 15 | crc << 17) + MASK_DELTA) & UINT32_MAX))  # inlined: it is a fifth of the time
    return b"".join(pieces)


@lru_cache(maxsize=1024)  # most files have records of few lengths
def _header(length: int) -> bytes:
    return _pack_header(length, masked_crc(_pack_length(length)))


def frame_starts(block: bytes) -> list[int]:
    """Where the frames begin that are whole in the block, and where the last of them ends. Lengths are just believed.

    Files of equal records are common. So when the first two lengths agree, NumPy looks how long that goes on.

    >>> frame_starts(bytes(2 * FRAME_BYTES) + b"begun")
    [0, 16, 32]
    """
    size = len(block)
    position = 0
    starts: list[int] = []
    if size >= HEADER_BYTES:
        stride = _read_length(block, 0)[0] + FRAME_BYTES
        count = size // stride
        if count > 2 and block[:LENGTH_BYTES] == block[stride : stride + LENGTH_BYTES]:
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


def frame_bytes(block: bytes, start: int) -> int:
    """How long the frame is that begins at ``start``, as its header says."""
    return int(_read_length(block, start)[0]) + FRAME_BYTES


def cut_frames(block: bytes, starts: list[int]) -> list[bytes]:
    """The data of the frames that begin at ``starts``, of which the last only tells where the one before it ends."""
    return [block[start + HEADER_BYTES : end - FOOTER_BYTES] for start, end in pairwise(starts)]


def finish_frame(stream: InputStream, head: bytes, verify: bool) -> tuple[bytes, int]:
    """Read what a frame lacks, and no byte more.

    Args:
        stream: stands right behind ``head``.
        head: the frame's beginning: its header at least, unless the stream has come to its end.
        verify: whether to compute the checksum of the length.

    Returns:
        The data and its stored checksum, which was not compared.

    Raises:
        DamagedFrameError: the header or the data is cut, or the length wrong.
    """
    if len(head) < HEADER_BYTES:
        words = f"a record's header is cut: {HEADER_BYTES} bytes expected, {len(head)} left in the file"
        raise DamagedFrameError(words)
    if verify and (words := length_damage(head, 0)):
        raise DamagedFrameError(words)
    length: int = _read_length(head, 0)[0]
    data, footer = head[HEADER_BYTES : HEADER_BYTES + length], head[HEADER_BYTES + length :]
    if length > PIECE_BYTES_MAX:  # or else finding out costs more than trying
        left = len(head) - HEADER_BYTES + stream.remaining_max()
        if length + FOOTER_BYTES > left:
            raise DamagedFrameError(cut_words(length, f"at most {left} bytes"))
        if length > (most := stream.whole_max()):
            raise DamagedFrameError(f"a record's header announces {length:,} bytes; {bomb_words('record', most)}")
    data = read_exactly(stream, length - len(data), data)
    footer = read_exactly(stream, FOOTER_BYTES - len(footer), footer)
    if len(data) < length or len(footer) < FOOTER_BYTES:
        raise DamagedFrameError(cut_words(length, f"{len(data) + len(footer)} bytes"))
    return data, _read_crc(footer)[0]


def read_exactly(stream: InputStream, size: int, start: bytes = b"") -> bytes:
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


def frame_damage(block: bytes, start: int, end: int) -> FrameDamage | None:
    """What is wrong with the checksums of one whole frame; ``None`` if nothing is."""
    if words := length_damage(block, start):
        return FrameDamage(words, length_is_right=False)
    (stored,) = _read_crc(block, end - FOOTER_BYTES)
    words = data_damage(memoryview(block)[start + HEADER_BYTES : end - FOOTER_BYTES], stored)
    return FrameDamage(words, length_is_right=True) if words else None


def length_damage(block: bytes, start: int) -> str:
    """What is wrong with the checksum of the length of the frame that begins at ``start``; empty if nothing is."""
    _, stored = _read_header(block, start)
    computed = masked_crc(block[start : start + LENGTH_BYTES])
    return "" if stored == computed else f"the checksum of a record's length is wrong: {_differing(stored, computed)}"


def data_damage(data: bytes | memoryview, stored: int) -> str:
    """What is wrong if this is the checksum that was stored for the data; empty if nothing is."""
    computed = masked_crc(data)
    if stored == computed:
        return ""
    return f"the checksum of a record's {len(data)} bytes is wrong: {_differing(stored, computed)}"


def _differing(stored: int, computed: int) -> str:
    return f"{stored:#010x} stored, {computed:#010x} computed"


def cut_words(length: int, left: str) -> str:
    """What is wrong with a frame of ``length`` bytes of data, behind whose header there is only what ``left`` says."""
    return (
        f"a record is cut: its header announces {length} bytes and a checksum of {FOOTER_BYTES}, but {left} follow; "
        "the file's copy or its writer may not have finished"
    )
