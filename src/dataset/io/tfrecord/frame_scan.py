"""Scan of a TFRecord file: finds the lengths of its records and verifies their checksums in one pass.

The data is not verified. If records are long, it is not even read: a frame's header says where the next frame is.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from dataset.amounts import BLOCK_BYTES, FEW_ELEMENTS, PEEK_BYTES
from dataset.errors import DataLossError
from dataset.io.files.opening import InputFile, open_input, read_whole
from dataset.io.tfrecord.frame_finder import find_frames
from dataset.io.tfrecord.frames import (
    FOOTER_BYTES,
    FRAME_BYTES,
    HEADER_BYTES,
    VERIFY_LENGTHS,
    cut_words,
    frame_bytes,
    header_words,
    hinted,
    length_damage,
)


def scan_lengths(
    path: str, progress: Callable[[int, int], object] | None = None
) -> tuple[npt.NDArray[np.int64], DataLossError | None]:
    """Return the data lengths in bytes of all complete records, and the damage after the last of them, if any.

    Args:
        path: the file.
        progress: called from time to time with the numbers of bytes and records scanned so far.

    Raises:
        OSError: the file can't be read.
    """
    with contextlib.closing(open_input(path)) as file:
        return _scan(file, path, progress)


def _scan(
    file: InputFile, path: str, progress: Callable[[int, int], object] | None
) -> tuple[npt.NDArray[np.int64], DataLossError | None]:
    size = file.seek(0, os.SEEK_END)
    records = 0
    edges = [np.zeros(1, np.int64)]  # the ends of frames, block by block
    position, block_bytes, words = 0, BLOCK_BYTES, ""
    while position < size and not words:
        file.seek(position)
        block = read_whole(file.read, min(block_bytes, size - position))
        if len(block) < HEADER_BYTES:
            words = header_words(len(block))
            break
        ends, words = _frame_ends(block, size - position)
        edges.append(np.array(ends, np.int64) + position)
        position += ends[-1] if ends else 0
        records += len(ends)
        if progress is not None:
            progress(position, records)
        block_bytes = BLOCK_BYTES if len(ends) > FEW_ELEMENTS else PEEK_BYTES  # records are long: only headers matter
        if words and not position:
            words = hinted(words, block, ", and only uncompressed files can be indexed")
    places = np.concatenate(edges)
    lengths = np.diff(places) - FRAME_BYTES
    return lengths, DataLossError(words, path=path, offset=position, record=len(lengths)) if words else None


def _frame_ends(block: bytes, left: int) -> tuple[list[int], str]:
    """Return the ends of the frames whose headers are in the block, and the damage after them, if any.

    Args:
        block: bytes that begin with a frame.
        left: the number of bytes from the start of the block to the end of the file.
    """
    ends = [end + FOOTER_BYTES for end in find_frames(block, 0, VERIFY_LENGTHS)[1]]
    start = ends[-1] if ends else 0
    if len(block) - start < HEADER_BYTES:
        return ends, ""
    if words := length_damage(block, start):
        return ends, words
    size = frame_bytes(block, start)
    if start + size > left:
        return ends, cut_words(size - FRAME_BYTES, f"{left - start - HEADER_BYTES} bytes")
    return [*ends, start + size], ""
