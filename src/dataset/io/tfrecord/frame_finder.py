"""Finder of the frames in a block, by the native kernel if it is in use, otherwise by its twin in frames.py."""

from __future__ import annotations

import numpy as np

from dataset.io.tfrecord.frames import find_frames
from dataset.native.library import kernels

__all__ = ["FRAMES_MAX", "FrameFinder"]

FRAMES_MAX = 4096  # found in one call; this bounds the scratch arrays


class FrameFinder:
    """Finder of frames, with the scratch arrays of the kernel; for one thread at a time."""

    def __init__(self) -> None:
        self._kernels = kernels()
        if self._kernels is not None:
            self._edges = np.empty((2, FRAMES_MAX), np.int64)
            self._addresses = [row.ctypes.data for row in self._edges]

    def find(self, block: bytes, position: int, verify: bool) -> tuple[list[int], list[int]]:
        """Find up to ``FRAMES_MAX`` consecutive complete frames, as ``find_frames`` does."""
        if self._kernels is None:
            return find_frames(block, position, verify, FRAMES_MAX)
        begins, ends = self._addresses
        found = self._kernels.find_frames(block, len(block), position, verify, begins, ends, FRAMES_MAX)
        begins, ends = self._edges[:, :found].tolist()
        return begins, ends
