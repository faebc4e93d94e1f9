"""Random-access reader of an indexed TFRecord file; verifies every record."""

from __future__ import annotations

from itertools import takewhile

import numpy as np

from dataset.errors import DataLossError
from dataset.io.indexed.records_at import RecordsAt, damage_at
from dataset.io.tfrecord.frame_finder import cut_frames, find_frames
from dataset.io.tfrecord.frames import (
    FOOTER_BYTES,
    FRAME_BYTES,
    HEADER_BYTES,
    VERIFY_ALL,
    cut_words,
    frame_damage,
)


class TFRecordsAt(RecordsAt[bytes]):
    """Random-access reader of the records of one open file. Thread-safe."""

    def record(self, number: int) -> bytes:
        start, end = self._index.span(number, number + 1)
        size = end - start
        frame = self._read(start, size)
        if len(frame) < size:
            raise damage_at(self._index, number, self._cut(frame, size))
        if words := frame_damage(frame, 0, size):
            raise damage_at(self._index, number, words)
        return frame[HEADER_BYTES:-FOOTER_BYTES]

    def records(self, first: int, stop: int) -> tuple[list[bytes], DataLossError | None]:
        base, end = self._index.span(first, stop)
        block = self._read(base, end - base)
        edges: list[int] = np.subtract(self._index.offsets[first : stop + 1], base).tolist()
        begins, ends = find_frames(block, 0, VERIFY_ALL)
        found = [0, *(end + FOOTER_BYTES for end in ends)]
        if found == edges:
            return cut_frames(block, begins, ends), None
        sound = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(found, edges, strict=False))) - 1
        start, stop = edges[sound : sound + 2]
        is_cut = stop > len(block)
        words = self._cut(block[start:], stop - start) if is_cut else frame_damage(block, start, stop)
        return cut_frames(block, begins[:sound], ends[:sound]), damage_at(self._index, first + sound, words)

    @staticmethod
    def _cut(frame: bytes, size: int) -> str:
        return cut_words(size - FRAME_BYTES, f"{max(0, len(frame) - HEADER_BYTES)} bytes")
