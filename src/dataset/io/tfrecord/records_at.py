"""Reads records by their numbers out of a TFRecord file whose index is known, and verifies each.

One read of the system takes in all records of a run that lie together. Nothing is read ahead, and nothing is kept.
"""

from __future__ import annotations

import io
import os
import threading

import numpy as np
import numpy.typing as npt

from dataset.errors import ClosedError, DataLossError
from dataset.io.files.opening import FileStamp, InputFile, file_stamp, open_input, read_whole
from dataset.io.tfrecord.checksums import BlockChecksums
from dataset.io.tfrecord.frames import FRAME_BYTES, HEADER_BYTES, cut_frames, cut_words, frame_damage
from dataset.redaction import redacted

__all__ = ["RUN_BYTES", "RecordsAt"]

RUN_BYTES = 1 << 18  # are read at once at most, or one record if that is more


class RecordsAt:
    """An open file. Several threads may read at once.

    Args:
        path: the TFRecord file.
        offsets: int64 array of shape (n + 1,): where each frame begins, and where the last ends.
        stamp: of the file, when the offsets were found.

    Raises:
        FileNotFoundError: if there is no such file.
        DataLossError: if it is not the file any more that the offsets are of.
    """

    _file: InputFile | None = None  # here too, for a __del__ after a constructor that raised

    def __init__(self, path: str, offsets: npt.NDArray[np.int64], stamp: FileStamp) -> None:
        self.path = path
        self._offsets = offsets
        self._checksums: BlockChecksums | None = None
        self._lock = threading.Lock()  # guards the position of a file that can't be read at any place at once
        self._file = open_input(path)
        self._descriptor = self._file.fileno() if isinstance(self._file, io.FileIO) else None
        if file_stamp(path) != stamp:
            self.close()
            words = "the file was changed after its index was made; make the dataset or the index anew"
            raise DataLossError(words, path=path, offset=0, record=0)

    def record(self, number: int) -> bytes:
        """The record with this number, from 0.

        Raises:
            DataLossError: if it is damaged, or cut.
            ClosedError: after ``close``.
        """
        start, end = self._offsets[number : number + 2].tolist()
        size = end - start
        frame = self._read(start, size)
        if len(frame) < size:
            raise self._damaged(number, self._cut(frame, size))
        damage = frame_damage(frame, 0, size)
        if damage is not None:
            raise self._damaged(number, damage.words)
        return frame[HEADER_BYTES:-4]

    def records(self, first: int, stop: int) -> tuple[list[bytes], DataLossError | None]:
        """Records ``first`` to ``stop``, which have a bounded size together.

        Returns:
            Those before the first that is damaged, and what is wrong with that; all, and None, if none is.
        """
        base, end = int(self._offsets[first]), int(self._offsets[stop])
        block = self._read(base, end - base)
        starts: list[int] = (self._offsets[first : stop + 1] - base).tolist()
        words = ""
        if starts[-1] > len(block):  # the file was cut since
            whole = next(i for i, edge in enumerate(starts) if edge > len(block)) - 1
            words = self._cut(block[starts[whole] :], starts[whole + 1] - starts[whole])
            del starts[whole + 1 :]
        for index, damage in self._verifier(end - base).damages(block, starts):
            words = damage.words
            del starts[index + 1 :]
            break
        records = cut_frames(block, starts)
        return records, self._damaged(first + len(records), words) if words else None

    def _verifier(self, block_bytes: int) -> BlockChecksums:
        if self._checksums is None or block_bytes > RUN_BYTES:
            self._checksums = BlockChecksums(max(block_bytes, RUN_BYTES))
        return self._checksums

    def close(self) -> None:
        """Give the file back. A second time does nothing."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def __del__(self) -> None:
        self.close()  # a dataset that is dropped half way is no mistake, so no ResourceWarning

    def _read(self, offset: int, size: int) -> bytes:
        """``size`` bytes from there, or fewer if the file ends before."""
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
