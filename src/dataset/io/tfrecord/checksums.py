"""Verifies the checksums of all frames of a block in one pass.

The mathematics of that lives here, and the choice between it and looking at the frames one by one. Only a block and the
starts of its frames are seen. The frames themselves, and the words about a damaged one, are frames.py.
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

# Below this many frames in a block, verifying them one by one takes less time than preparing to do it at once.
FEW_FRAMES = 24


class BlockChecksums:
    """Verifies the checksums of all frames of a block in one pass.

    A call of crc32c costs 0.1 us, however short its data, and a record has two checksums to compute, unmask and
    compare. On a whole block, crc32c runs at 20 GB/s. So this asks one question about the block instead: *is every
    checksum right?* It relies on how a CRC works. The register after some data depends on nothing but the register
    before it and the data. Feeding it four more bytes, the CRC itself xor REGISTER_RESET, puts it back to its initial
    value whatever the data was, and no other four bytes do. So: copy the block, unmask every stored checksum, xor it
    with REGISTER_RESET, and take the CRC of all that. While the checksums are right the register is back at its
    initial value after each of them, and the result is 0, the CRC of nothing.

    What a wrong one does: from there on the register differs from what it should be, and steps that are one-to-one
    keep it different. So damage in one field (a length or a record's data, with its checksum) is found exactly when
    that field's own checksum finds it. Where several fields of a block are damaged, one may hide the other with the
    odds of 1 to 2^32 that a single CRC-32C always has.
    """

    def __init__(self, block_bytes: int) -> None:
        scratch = np.empty(block_bytes, np.uint8)
        self._view = scratch.data
        # A 32-bit number at every byte. Checksums stand where the records' lengths put them, seldom aligned.
        self._words = np.ndarray((block_bytes - 3,), "<u4", scratch, 0, (1,))

    def damages(self, block: bytes, starts: list[int]) -> Iterator[tuple[int, FrameDamage]]:
        """The frames with a wrong checksum: the index of each, and what is wrong with it.

        They are looked for as they are asked for. Behind a wrong length nothing is known, so that is the last.
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
    """The index of the first frame whose length has a wrong checksum; ``None`` if there is none.

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
    """Of masked checksums, the four bytes that put the register back: see BlockChecksums. Changes ``crcs``."""
    crcs -= np.uint32(MASK_DELTA)
    low = crcs >> np.uint32(17)
    crcs <<= np.uint32(15)
    crcs |= low
    crcs ^= np.uint32(REGISTER_RESET)
    return crcs
