"""Checksum verification of all frames of a block in one pass.

This module contains the mathematics, and chooses between it and verifying the frames one by one. It sees only a block
and the starts of its frames. frames.py defines the frames and the messages about damage.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from dataset.io import libraries
from dataset.io.tfrecord.frames import (
    FOOTER_BYTES,
    HEADER_BYTES,
    LENGTH_BYTES,
    MASK_DELTA,
    FrameDamage,
    frame_damage,
    length_damage,
)

__all__ = ["BlockChecksums", "first_wrong_length"]

REGISTER_RESET = 0x9BE09BAB  # CRC-32C of these four bytes is 0; see BlockChecksums

# For fewer frames than this, verifying them one by one is faster than preparing to verify all at once.
FEW_FRAMES = 24


class BlockChecksums:
    """Checksum verifier for all frames of a block at once.

    A call of crc32c takes 0.1 us even for short data, and each record has two checksums to compute, unmask and compare.
    On a whole block, crc32c runs at 20 GB/s. So this class asks one question about the block: *are all checksums
    correct?* The CRC register after some data depends only on the register before it and the data. Feeding it four more
    bytes, the CRC itself xor REGISTER_RESET, resets the register to its initial value for any data, and no other four
    bytes do. So: copy the block, unmask every stored checksum, xor it with REGISTER_RESET, and compute the CRC of the
    result. As long as the checksums are correct, the register is at its initial value after each of them, and the final
    CRC is 0, the CRC of empty data.

    After a wrong checksum the register differs from its expected value, and the following steps, being one-to-one, keep
    it different. So damage in a single field (a length or a record's data, with its checksum) is detected exactly if
    the checksum of that field detects it. If several fields of a block are damaged, one may hide another with a
    probability of 2^-32, as for any single CRC-32C.
    """

    def __init__(self, block_bytes: int) -> None:
        scratch = np.empty(block_bytes, np.uint8)
        self._view = scratch.data
        # A 32-bit number at every byte: the positions of checksums depend on record lengths and are seldom aligned.
        self._words = np.ndarray((block_bytes - 3,), "<u4", scratch, 0, (1,))

    def damages(self, block: bytes, starts: list[int]) -> Iterator[tuple[int, FrameDamage]]:
        """Iterate over the frames with a wrong checksum: the index of each, and the damage.

        The search is lazy. After a wrong length the next frame is unknown, so the iteration ends.
        """
        if len(starts) > FEW_FRAMES and self._all_right(block, starts):
            return
        for index, (start, end) in enumerate(pairwise(starts)):
            damage = frame_damage(block, start, end)
            if damage is not None:
                yield index, damage
                if not damage.length_is_right:
                    return

    def _all_right(self, block: bytes, starts: list[int]) -> bool:
        edges = np.fromiter(starts, np.int64, len(starts))
        places = np.concatenate((edges[:-1] + LENGTH_BYTES, edges[1:] - FOOTER_BYTES))
        self._view[: len(block)] = block
        self._words[places] = _resetting(self._words[places])
        return bool(libraries.crc32c(self._view[: starts[-1]]) == 0)


def first_wrong_length(block: bytes, starts: list[int]) -> int | None:
    """Return the index of the first frame whose length has a wrong checksum; ``None`` if there is none.

    Args:
        block: holds the headers of all frames.
        starts: where they begin.
    """
    places = np.fromiter(starts, np.int64, len(starts))
    headers = np.frombuffer(block, np.uint8)[places[:, None] + np.arange(HEADER_BYTES)]
    crcs = headers[:, LENGTH_BYTES:].view("<u4")
    crcs[...] = _resetting(crcs)
    if libraries.crc32c(headers) == 0:
        return None
    return next(index for index, start in enumerate(starts) if length_damage(block, start))


def _resetting(crcs: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Convert masked checksums to the bytes that reset the register (see BlockChecksums). Modifies ``crcs``."""
    crcs -= np.uint32(MASK_DELTA)
    low = crcs >> np.uint32(17)
    crcs <<= np.uint32(15)
    crcs |= low
    crcs ^= np.uint32(REGISTER_RESET)
    return crcs
