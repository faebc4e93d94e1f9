"""Finding and slicing the frames of a block, by the native kernel if it is in use, otherwise by its twin."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dataset.io.tfrecord.frames import FRAME_BYTES, walk_frames
from dataset.native.library import kernels

__all__ = ["cut_frames", "find_frames"]

FEW_FRAMES = 8  # slicing fewer frames one by one is faster


def find_frames(block: bytes, position: int, verify: int) -> tuple[list[int], list[int]]:
    """Return where the data of consecutive complete frames begins and ends; see ``walk_frames``."""
    native = kernels()
    if native is None:
        return walk_frames(block, position, verify)
    edges = np.empty((len(block) // FRAME_BYTES, 2), np.int64)
    found = native.find_frames(block, len(block), position, verify, edges.ctypes.data)
    begins, ends = edges[:found].T.tolist()
    return begins, ends


def cut_frames(block: bytes, begins: Sequence[int], ends: Sequence[int]) -> list[bytes]:
    """Return the data of consecutive frames. NumPy slices those of equal length in half the time.

    >>> cut_frames(b"abcdef", [0, 4], [3, 6])
    [b'abc', b'ef']
    """
    count = len(begins)
    size = ends[0] - begins[0] if count > FEW_FRAMES else 0
    stride = size + FRAME_BYTES
    # The last end is compared first, since records of different lengths hardly ever agree with it.
    if size and ends[-1] == ends[0] + (count - 1) * stride and ends == list(range(ends[0], ends[-1] + 1, stride)):
        records: list[bytes] = np.ndarray((count,), f"V{size}", block, begins[0], (stride,)).tolist()
        return records
    return [block[begin:end] for begin, end in zip(begins, ends, strict=True)]
