"""Search for frame headers in arbitrary bytes; all positions are tested at once.

A header is a length and the masked CRC-32C of its eight bytes, so random bytes look like a header with a probability of
only 2^-32. Calling crc32c for each of a million positions would take a second. salvage.py decides what to do with the
headers; frames.py defines the layout of a frame.
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

from dataset.io import libraries
from dataset.io.checksum import MASK_DELTA
from dataset.io.tfrecord.frames import HEADER_BYTES, LENGTH_BYTES


def find_headers(block: bytes, length_max: int) -> list[int]:
    """Return all positions of complete headers with a correct checksum and a length of at most ``length_max``.

    The lengths are compared first; for most data this leaves few positions.

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
    # Lost data is most often replaced by zeros, and every eight zeros look like a length of 0.
    likely &= (lengths != 0) | (stored == _checksums(np.zeros(1, np.uint64)))
    places = np.flatnonzero(likely)
    found: list[int] = places[stored[places] == _checksums(lengths[places])].tolist()
    return found


def _checksums(lengths: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32]:
    """Return the masked CRC-32C of the eight bytes of each length."""
    words = np.ascontiguousarray(lengths, "<u8").view("<u2").reshape(-1, 4)
    crcs = np.full(len(words), libraries.crc32c(bytes(LENGTH_BYTES)), np.uint32)
    for column, table in enumerate(_tables()):
        crcs ^= table[words[:, column]]
    return np.asarray((crcs >> np.uint32(15) | crcs << np.uint32(17)) + np.uint32(MASK_DELTA))


@functools.cache
def _tables() -> list[npt.NDArray[np.uint32]]:
    """Return, for each two bytes of a length, a table of the effect of their 65,536 values on the CRC.

    A CRC is linear: the effect of two changes of the data is the xor of their separate effects. So one table covers 16
    bits, and four tables cover all lengths.
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
