"""Tests that the check of a whole block agrees with checking each frame."""

from __future__ import annotations

import itertools
import struct

from crc32c import crc32c

from dataset.io.tfrecord.checksums import REGISTER_RESET, BlockChecksums
from dataset.io.tfrecord.frames import frame_starts
from support.tfrecord_files import assorted, frame, frames


def test_the_register_is_reset_by_every_right_checksum():
    """The property that the check of a whole block relies on."""
    for data in assorted(50):
        assert crc32c(data + struct.pack("<I", crc32c(data) ^ REGISTER_RESET) + b"more") == crc32c(b"more")


def test_a_whole_block_is_right_exactly_when_each_of_its_frames_is():
    records = assorted(50)
    content = frames(records)
    checksums = BlockChecksums(len(content))
    starts = [0, *itertools.accumulate(len(frame(record)) for record in records)]
    assert frame_starts(content) == starts
    assert checksums._all_right(content, starts)
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 0x55
        assert not checksums._all_right(bytes(damaged), starts)
