"""Tests of compression_type="AUTO": the first bytes of each file determine how it is compressed."""

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset import (
    CsvDataset,
    DataLossError,
    FixedLengthRecordDataset,
    JsonLinesDataset,
    TarDataset,
    TextLineDataset,
    TFRecordDataset,
    io,
)
from dataset.io.files.compression import detect_compression
from dataset.testing import check_operator
from support.block_files import COMPRESS, KINDS
from support.tar_files import archive
from support.tfrecord_files import frames

RECORDS = [b"%d" % number * 20 for number in range(500)]
READERS = {
    "records": (TFRecordDataset, frames(RECORDS)),
    "lines": (TextLineDataset, b"\n".join(RECORDS)),
    "fixed": (lambda paths, kind: FixedLengthRecordDataset(paths, 7, compression_type=kind), b"1234567" * 700),
    "csv": (lambda paths, kind: CsvDataset(paths, [np.int64], kind), b"12\n" * 700),
    "tar": (lambda paths, kind: TarDataset(paths, ["txt"], kind), archive((f"{i}.txt", b"abc") for i in range(90))),
    "json": (lambda paths, kind: JsonLinesDataset(paths, {"a": np.int64}, kind), b'{"a": 1}\n' * 700),
}


@pytest.mark.parametrize("reader", READERS)
def test_files_of_all_kinds_are_read_together(reader, save):
    read, content = READERS[reader]
    paths = [str(save(COMPRESS[kind](content))) for kind in KINDS]
    expected = list(read([paths[0]], None)) * len(paths)
    check_operator(lambda: read(paths, "AUTO"), expected, positions=4)


@pytest.mark.parametrize("size", [0, 9, 5000])
def test_a_zstd_file_may_begin_with_a_skippable_frame(size, save):
    skipped = b"\x50\x2a\x4d\x18" + size.to_bytes(4, "little") + bytes(size)
    assert list(TextLineDataset(save(skipped + COMPRESS["ZSTD"](b"one\ntwo\n")), "AUTO")) == [b"one", b"two"]


@pytest.mark.parametrize("content", [b"", b"x^2", b"8O", b"x\x01", b"hCommand line", b"(S)" * 2000, b"\x1f", b"x"])
def test_plain_text_is_not_taken_for_a_stream(content, save):
    assert list(TextLineDataset(save(content), "AUTO")) == content.split(b"\n")[: len(content)]


@given(st.binary(min_size=1, max_size=200))
def test_the_beginning_of_a_zlib_stream_and_only_that_is_detected(content):
    stream = zlib.compress(content)
    assert detect_compression(stream, is_whole=True) == "ZLIB"
    assert detect_compression(stream[:-1], is_whole=False) == "ZLIB"
    assert detect_compression(stream[:-1], is_whole=True) == ""


def test_records_whose_length_looks_like_a_magic_number_are_plain(save):
    """The checksum of the first length decides: 0x8b1f bytes begin like GZIP, 0x9c78 like ZLIB."""
    records = [bytes(0x8B1F), bytes(0x9C78)]
    for record in records:
        content = frames([record])
        assert content[:2] in {b"\x1f\x8b", b"\x78\x9c"}
        assert list(TFRecordDataset(save(content), "AUTO")) == [record]


def test_a_wrong_size_is_known_before_the_first_record_as_for_a_plain_file(save):
    with pytest.raises(DataLossError):
        next(iter(FixedLengthRecordDataset(save(b"12345"), 2, compression_type="AUTO")))


def test_only_readers_accept_it(tmp_path):
    with pytest.raises(ValueError, match='compression_type must be None, "", "GZIP", "ZLIB", "ZSTD" or "SNAPPY", got'):
        io.TFRecordWriter(tmp_path / "a", "AUTO")
    with pytest.raises(ValueError, match="index"):
        TFRecordDataset(tmp_path / "a", "AUTO", index=True)
