"""File format of the index of a TFRecord file, and its validation.

Layout, little-endian: 8 bytes "TFRINDEX"; format version (4); bytes per length, 4 or 8 (4); number of records (8); the
size of the TFRecord file in bytes (8) and its version, see ``FileStamp`` (8); the length of each record's data; the
masked CRC-32C of everything before (4). The start of a record follows from the lengths of the records before it.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from dataset.io.files.content_hint import content_hint
from dataset.io.files.opening import FileStamp
from dataset.io.tfrecord.frames import FRAME_BYTES, masked_crc

MAGIC = b"TFRINDEX"
VERSION = 1

_HEADER = struct.Struct("<8sIIQQq")
_CRC = struct.Struct("<I")
_DTYPES: dict[int, np.dtype[np.unsignedinteger[Any]]] = {4: np.dtype("<u4"), 8: np.dtype("<u8")}


def hinted(words: str, head: bytes, compressed: str) -> str:
    """Add to the message about the first bytes of a TFRecord file what else the file may be.

    Args:
        words: the message.
        head: the first bytes.
        compressed: what to do if they are those of a stream, whose kind replaces ``{}``; "" if it can't be a stream.
    """
    if head.startswith(MAGIC):
        return f"{words}; this is the index of a TFRecord file: use a file pattern that excludes *.index"
    return f"{words}{content_hint(head, compressed) or '; is this a TFRecord file?'}"


class NotAnIndexError(Exception):
    """The bytes are not an index, or are a damaged one. The message says which."""


def pack_index(lengths: npt.NDArray[np.int64], stamp: FileStamp) -> bytes:
    """Return the bytes of an index.

    Args:
        lengths: the sizes of the records' data, in bytes.
        stamp: the stamp of the TFRecord file.
    """
    width = 4 if not len(lengths) or lengths.max() <= 0xFFFFFFFF else 8
    header = _HEADER.pack(MAGIC, VERSION, width, len(lengths), stamp.size, stamp.version)
    content = header + lengths.astype(_DTYPES[width]).tobytes()
    return content + _CRC.pack(masked_crc(content))


def unpack_index(content: bytes) -> tuple[npt.NDArray[np.int64], FileStamp]:
    """Return the lengths, and the stamp of their file.

    The records are guaranteed to fill a file of that size exactly: no offset is outside the file.

    Raises:
        NotAnIndexError: the bytes are not a valid index.
    """
    if content[: len(MAGIC)] != MAGIC:
        raise NotAnIndexError("it is another kind of file")
    if len(content) < _HEADER.size + _CRC.size:
        raise NotAnIndexError("it is truncated")
    _, version, width, count, size, file_version = _HEADER.unpack_from(content)
    if version != VERSION or width not in _DTYPES:
        raise NotAnIndexError(f"it has version {version}, which this library does not support")
    if len(content) != _HEADER.size + count * width + _CRC.size:
        raise NotAnIndexError(f"its size of {len(content)} bytes does not match its {count} records")
    if masked_crc(memoryview(content)[: -_CRC.size]) != _CRC.unpack_from(content, len(content) - _CRC.size)[0]:
        raise NotAnIndexError("its checksum is wrong")
    lengths = np.frombuffer(content, _DTYPES[width], count, _HEADER.size)
    if not _fill(lengths, size):
        raise NotAnIndexError("its lengths do not add up to the size of the file")
    return lengths.astype(np.int64), FileStamp(size, file_version)


def _fill(lengths: npt.NDArray[np.unsignedinteger[Any]], size: int) -> bool:
    """Return whether records of these lengths fill a file of this size."""
    frames = len(lengths) * FRAME_BYTES
    # An integer sum of malicious lengths could wrap around to the expected size; the float sum can't.
    return bool(lengths.sum(dtype=np.float64) + frames < 2.0 * size + 1) and int(lengths.sum()) + frames == size
