"""Finds the headers of frames in bytes of which nothing else is known: all positions at once.

A header is a length and the masked CRC-32C of its eight bytes, so it can be told from noise, but for odds of 1 to 2^32.
A call of crc32c for each of a million positions would take a second. What becomes of a header that was found is for
salvage.py to say; the layout of a frame is frames.py's.
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

from dataset.io import libraries
from dataset.io.tfrecord.frames import HEADER_BYTES, LENGTH_BYTES, MASK_DELTA

__all__ = ["find_headers"]


def find_headers(block: bytes, length_max: int) -> list[int]:
    """Every position where a whole header with the right checksum stands, and a length of at most ``length_max``.

    The lengths are compared first, which leaves few positions to most bytes.

    >>> from dataset.io.tfrecord.frames import framed
    >>> find_headers(b"noise" + b"".join(framed(b"abc")), 100)
    [5]
    """
    positions = len(block) - HEADER_BYTES + 1
    if positions < 1:
        return []
    lengths = np.ndarray((positions,), "<u8", block, 0, (1,))  # the eight bytes at each position, as a number
    stored = np.ndarray((positions,), "<u4", block, LENGTH_BYTES, (1,))
    likely = lengths <= np.uint64(min(max(length_max, 0), 2**63))
    # Zeros are what is most often in the place of lost data, and each eight of them would be a length of 0.
    likely &= (lengths != 0) | (stored == _checksums(np.zeros(1, np.uint64)))
    places = np.flatnonzero(likely)
    found: list[int] = places[stored[places] == _checksums(lengths[places])].tolist()
    return found


def _checksums(lengths: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32]:
    """The masked CRC-32C of each length's eight bytes."""
    words = np.ascontiguousarray(lengths, "<u8").view("<u2").reshape(-1, 4)
    crcs = np.full(len(words), libraries.crc32c(bytes(LENGTH_BYTES)), np.uint32)
    for column, table in enumerate(_tables()):
        crcs ^= table[words[:, column]]
    return np.asarray((crcs >> np.uint32(15) | crcs << np.uint32(17)) + np.uint32(MASK_DELTA))


@functools.cache
def _tables() -> list[npt.NDArray[np.uint32]]:
    """For each two bytes of a length: what each of their 65,536 values does to the CRC.

    A CRC is linear: two changes of the data change it by the xor of what each does alone. So 16 bits make a table, and
    four tables all lengths.
    """
    zero = libraries.crc32c(bytes(LENGTH_BYTES))
    tables = []
    for column in range(4):
        table = np.zeros(1, np.uint32)
        for bit in range(16):
            number = 1 << (16 * column + bit)
            effect = np.uint32(libraries.crc32c(number.to_bytes(LENGTH_BYTES, "little")) ^ zero)
            table = np.concatenate((table, table ^ effect))
        tables.append(table)
    return tables
