"""Tests of Snappy streams in TensorFlow's format. tests/oracle reads and writes them with TensorFlow."""

import io

import pytest

from dataset.io.files.compression import DamagedStreamError, open_stream
from support.memory import memory_below


def block(raw):
    return len(raw).to_bytes(4, "big") + raw


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
