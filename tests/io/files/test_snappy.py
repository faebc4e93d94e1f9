"""Tests of Snappy streams in TensorFlow's format. tests/oracle reads and writes them with TensorFlow."""

import io

import cramjam
import pytest

from dataset import Dataset
from dataset.io.files.compression import DamagedStreamError, open_stream
from support.memory import memory_below


def block(raw):
    return len(raw).to_bytes(4, "big") + raw


def test_blocks_of_other_writers_are_read():
    raw = bytes(cramjam.snappy.compress_raw(b"abc"))
    empty = bytes(cramjam.snappy.compress_raw(b""))
    stream = open_stream(io.BytesIO(block(raw) + block(empty) + block(raw)), "SNAPPY")
    assert stream.read(3) + stream.read(3) + stream.read(3) == b"abcabc"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\0\0", "the SNAPPY stream is truncated"),
        (block(b"\1\0a") + b"\0\0\0\1", "the SNAPPY stream is truncated"),
        (b"\xff\xff\xff\xff" + bytes(100), "the SNAPPY stream is truncated"),
        (block(b"\xff\xff\xff\xff\x0f"), "declares too many bytes"),
        (block(b"\5\0"), "the SNAPPY stream is corrupt"),
        (block(b""), "the SNAPPY stream is corrupt"),
    ],
)
def test_damage_is_found_without_allocating_what_it_declares(content, words):
    stream = open_stream(io.BytesIO(content), "SNAPPY")
    with memory_below(1 << 20), pytest.raises(DamagedStreamError, match=words):
        while stream.read(1000):
            pass
    with pytest.raises(DamagedStreamError, match=words):
        stream.read(1000)


def test_saved_datasets_and_snapshots(tmp_path):
    numbers = Dataset.range(3000)
    numbers.save(str(tmp_path / "saved"), compression="SNAPPY")
    assert list(Dataset.load(str(tmp_path / "saved"), compression="SNAPPY")) == list(range(3000))
    snapshot = numbers.snapshot(str(tmp_path / "snapshot"), compression="SNAPPY")
    assert list(snapshot) == list(snapshot) == list(range(3000))
