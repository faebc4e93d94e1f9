"""Tests of reading TFRecord files: all records, reading from every position, and memory."""

from __future__ import annotations

import pytest

from dataset.io.tfrecord.reader import TFRecordFile
from support.block_files import check_places
from support.memory import memory_below
from support.tfrecord_files import COMPRESS, KINDS, assorted, frames

pytestmark = pytest.mark.usefixtures("native")


# Places.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block", [None, 64])
def test_every_place_can_be_gone_back_to(kind, block, save):
    records = assorted(60)
    file = TFRecordFile(save(COMPRESS[kind](frames(records))), kind, block)
    assert file.tell() == (0, 0)
    assert file.records(1) == records[:1]
    assert file.tell() == (len(frames(records[:1])), 1)
    file.seek(0, 0)
    assert check_places(file, 1) == records


# Memory.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("records", "block", "most"),
    [([b"0123456789" * 80] * 12_000, 1 << 16, 600_000), ([b"first", bytes(20 << 20)], None, 1.3 * (20 << 20))],
    ids=["many", "big"],
)
def test_memory_stays_around_one_block_or_one_record(records, block, most, kind, save):
    path = save(COMPRESS[kind](frames(records)))
    with memory_below(most), TFRecordFile(path, kind, buffer_size=block) as file:
        assert file.records(1) == records[:1]
        while block and file.records(64):
            pass
