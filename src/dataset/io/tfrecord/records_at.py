"""Random-access reader of an indexed TFRecord file; verifies every record.

A run of adjacent records is read with one system call. Nothing is cached, and only announced runs of remote files are
read ahead.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from itertools import takewhile

import numpy as np
import numpy.typing as npt

from dataset.errors import ClosedError, DataLossError
from dataset.io.files.opening import FileStamp, InputFile, file_stamp, open_input, read_whole
from dataset.io.tfrecord.frame_finder import cut_frames, find_frames
from dataset.io.tfrecord.frames import (
    FOOTER_BYTES,
    FRAME_BYTES,
    HEADER_BYTES,
    VERIFY_ALL,
    cut_words,
    frame_damage,
)
from dataset.redaction import redacted
from dataset.world import threading


class RecordsAt:
    """Random-access reader of one open file. Thread-safe.

    Args:
        path: the TFRecord file.
        offsets: int64 array of shape (n + 1,): where each frame begins, and where the last one ends.
        stamp: the stamp of the file when the offsets were determined.

    Raises:
        FileNotFoundError: the file does not exist.
        DataLossError: the file has changed since the offsets were determined.
    """

    _file: InputFile | None = None  # a class attribute, so that __del__ works if the constructor raised

    def __init__(self, path: str, offsets: npt.NDArray[np.int64], stamp: FileStamp) -> None:
        self.path = path
        self._offsets = offsets
        self._lock = threading.Lock()  # guards the position of a file without pread
        self._file = open_input(path)
        self._descriptor = self._file.fileno() if isinstance(self._file, io.FileIO) else None
        if file_stamp(path) != stamp:
            self.close()
            words = "the file was modified after its index was built; create the dataset or the index again"
            raise DataLossError(words, path=path, offset=0, record=0)

    def record(self, number: int) -> bytes:
        """Return the record with this number, from 0.

        Raises:
            DataLossError: the record is damaged or truncated.
            ClosedError: after ``close``.
        """
        start, end = self._offsets[number : number + 2].tolist()
        size = end - start
        frame = self._read(start, size)
        if len(frame) < size:
            raise self._damaged(number, self._cut(frame, size))
        if words := frame_damage(frame, 0, size):
            raise self._damaged(number, words)
        return frame[HEADER_BYTES:-FOOTER_BYTES]

    def records(self, first: int, stop: int) -> tuple[list[bytes], DataLossError | None]:
        """Read records ``first`` to ``stop``, whose total size is bounded.

        Returns:
            The records before the first damaged one, and its error; all records and None if none is damaged.
        """
        base, end = int(self._offsets[first]), int(self._offsets[stop])
        block = self._read(base, end - base)
        edges: list[int] = (self._offsets[first : stop + 1] - base).tolist()
        begins, ends = find_frames(block, 0, VERIFY_ALL)
        found = [0, *(end + FOOTER_BYTES for end in ends)]
        if found == edges:
            return cut_frames(block, begins, ends), None
        sound = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(found, edges, strict=False))) - 1
        start, stop = edges[sound : sound + 2]
        is_cut = stop > len(block)
        words = self._cut(block[start:], stop - start) if is_cut else frame_damage(block, start, stop)
        return cut_frames(block, begins[:sound], ends[:sound]), self._damaged(first + sound, words)

    def expect(self, runs: Sequence[tuple[int, int]]) -> None:
        """Announce which runs of records will be read next, in this order: each from its first to before its last."""
        expect = getattr(self._file, "expect", None)  # of remote files
        if expect is not None:
            with self._lock:
                expect([(int(self._offsets[first]), int(self._offsets[stop])) for first, stop in runs])

    def close(self) -> None:
        """Close the file. May be called more than once."""
        if self._file is not None:
            self._file.close()  # if it is interrupted, __del__ closes the file
            self._file = None

    def __del__(self) -> None:
        self.close()  # no ResourceWarning: abandoning a dataset half way is not a mistake

    def _read(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes from ``offset``, or fewer at the end of the file."""
        if self._file is None:
            raise ClosedError(f"the records of {redacted(self.path)} were closed")
        if self._descriptor is None:
            with self._lock:
                self._file.seek(offset)
                return read_whole(self._file.read, size)
        block = os.pread(self._descriptor, size, offset)
        while len(block) < size and (more := os.pread(self._descriptor, size - len(block), offset + len(block))):
            block += more
        return block

    @staticmethod
    def _cut(frame: bytes, size: int) -> str:
        return cut_words(size - FRAME_BYTES, f"{max(0, len(frame) - HEADER_BYTES)} bytes")

    def _damaged(self, number: int, words: str) -> DataLossError:
        return DataLossError(words, path=self.path, offset=int(self._offsets[number]), record=number)
