"""Finding and slicing the frames of a block, by the native kernel if it is in use, otherwise by its twin."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dataset.amounts import BLOCK_BYTES, FEW_ELEMENTS
from dataset.io.tfrecord.frames import FRAME_BYTES, walk_frames
from dataset.native.library import kernels
from dataset.world import threading

KEPT_FRAMES = BLOCK_BYTES // FRAME_BYTES  # as many as fit in a block of the default size


class _FrameEdges(threading.local):
    """Array of a thread for the results of the kernel. A new array for each block would cost a page fault per page."""

    def __init__(self) -> None:
        self.edges = np.empty((KEPT_FRAMES, 2), np.int64)
        self.address = self.edges.ctypes.data


_scratch = _FrameEdges()


def find_frames(block: bytes, position: int, verify: int) -> tuple[list[int], list[int]]:
    """Return where the data of consecutive complete frames begins and ends; see ``walk_frames``."""
    edges = frame_edges(block, position, verify)
    if edges is None:
        return walk_frames(block, position, verify)
    begins, ends = edges.T.tolist()
    return begins, ends


def frame_edges(block: bytes, position: int, verify: int) -> npt.NDArray[np.int64] | None:
    """Return the results of ``find_frames`` as a temporary array of shape (n, 2); None if the kernel is not in use."""
    native = kernels()
    room = len(block) // FRAME_BYTES
    if native is None:
        return None
    edges, address = _scratch.edges, _scratch.address
    if room > KEPT_FRAMES:
        edges = np.empty((room, 2), np.int64)
        address = edges.ctypes.data
    found = native.find_frames(block, len(block), position, verify, address)
    return edges[:found] if found >= 0 else None  # -1: the processor has no instructions; the package has tables


def cut_frames(block: bytes, begins: Sequence[int], ends: Sequence[int]) -> list[bytes]:
    """Return the data of consecutive frames. NumPy slices those of equal length in half the time.

    >>> cut_frames(b"abcdef", [0, 4], [3, 6])
    [b'abc', b'ef']
    """
    count = len(begins)
    size = ends[0] - begins[0] if count > FEW_ELEMENTS else 0
    stride = size + FRAME_BYTES
    # The last end is compared first, since records of different lengths hardly ever agree with it.
    if size and ends[-1] == ends[0] + (count - 1) * stride and ends == list(range(ends[0], ends[-1] + 1, stride)):
        records: list[bytes] = np.ndarray((count,), f"V{size}", block, begins[0], (stride,)).tolist()
        return records
    return [block[begin:end] for begin, end in zip(begins, ends, strict=True)]
