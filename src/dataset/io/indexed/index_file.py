"""File format of saved indexes, and its validation.

Layout, little-endian: 8 bytes that name the kind of the index; format version (4); bytes per number, 4 or 8 (4); number
of entries (8); the size of the indexed file in bytes (8) and its version, see ``FileStamp`` (8); one column of numbers
after another; the masked CRC-32C of everything before (4). The kind determines the columns.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dataset.io.checksum import UINT32_MAX, masked_crc
from dataset.io.files.opening import FileStamp

RECORDS, LINES = b"TFRINDEX", b"LINEINDX"
"""The kinds: the records of a TFRecord file, and the lines of a text file."""

VERSION = 1
SUFFIX = ".index"

_HEADER = struct.Struct("<8sIIQQq")
_CRC = struct.Struct("<I")
_DTYPES: dict[int, np.dtype[np.unsignedinteger[Any]]] = {4: np.dtype("<u4"), 8: np.dtype("<u8")}


class NotAnIndexError(Exception):
    """The bytes are not an index, or are a damaged one. The message says which."""


def is_index(content: bytes) -> bool:
    """Return whether a file that begins with these bytes is an index of this library."""
    return content.startswith((RECORDS, LINES))


def index_hint(head: bytes) -> str:
    """Return what to add to a message about the first bytes of a data file if they are those of an index; else ""."""
    # No text begins with them: the version contains null bytes.
    is_one = is_index(head) and b"\0" in head[len(RECORDS) : len(RECORDS) + 4]
    return "; this is the index of another file: use a file pattern that excludes *.index" if is_one else ""


def pack_index(kind: bytes, columns: Sequence[npt.NDArray[np.int64]], stamp: FileStamp) -> bytes:
    """Return the bytes of an index.

    Args:
        kind: what the columns mean.
        columns: arrays of one length, of numbers that are not negative.
        stamp: the stamp of the indexed file.
    """
    width = 4 if max(column.max(initial=0) for column in columns) <= UINT32_MAX else 8
    header = _HEADER.pack(kind, VERSION, width, len(columns[0]), stamp.size, stamp.version)
    content = header + b"".join(column.astype(_DTYPES[width]).tobytes() for column in columns)
    return content + _CRC.pack(masked_crc(content))


def unpack_index(
    kind: bytes, column_count: int, entry_bytes: int, content: bytes
) -> tuple[list[npt.NDArray[np.int64]], FileStamp]:
    """Return the columns of an index, and the stamp of the indexed file.

    The sizes in the first column are guaranteed to add up to that of the file: no position is outside the file.

    Args:
        kind: the expected kind.
        column_count: how many columns such an index has.
        entry_bytes: how many bytes of the file each entry takes in addition to those in the first column.
        content: the bytes.

    Raises:
        NotAnIndexError: the bytes are not a valid index of this kind.
    """
    if content[: len(kind)] != kind:
        raise NotAnIndexError("it is of another kind" if is_index(content) else "it is another kind of file")
    if len(content) < _HEADER.size + _CRC.size:
        raise NotAnIndexError("it is truncated")
    _, version, width, count, size, file_version = _HEADER.unpack_from(content)
    if version != VERSION or width not in _DTYPES:
        raise NotAnIndexError(f"it has version {version}, which this library does not support")
    if len(content) != _HEADER.size + count * column_count * width + _CRC.size:
        raise NotAnIndexError(f"its size of {len(content)} bytes does not match its {count} records")
    if masked_crc(memoryview(content)[: -_CRC.size]) != _CRC.unpack_from(content, len(content) - _CRC.size)[0]:
        raise NotAnIndexError("its checksum is wrong")
    columns = np.frombuffer(content, _DTYPES[width], count * column_count, _HEADER.size).reshape(column_count, count)
    others = count * entry_bytes
    # An integer sum of malicious numbers could wrap around to the expected size; the float sum can't.
    if columns.sum(1, np.float64).max(initial=0) + others >= 2.0 * size + 1 or int(columns[0].sum()) + others != size:
        raise NotAnIndexError("its lengths do not add up to the size of the file")
    return list(columns.astype(np.int64)), FileStamp(size, file_version)
