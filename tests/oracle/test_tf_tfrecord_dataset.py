"""Tests of TFRecordDataset against tf.data's, with complete and damaged files written by either library."""

import itertools
from pathlib import Path

import pytest
from compare import assert_same, in_both, theirs

from dataset import io

RECORDS = {
    "some": [b"one", b"two\x00", b"", b"\xff" * 3],
    "one": [b"x"],
    "none": [],
    "empty ones": [b"", b""],
    "large": [bytes(range(256)) * 2000, b"small", b"\x00" * 300_000],
    "many": [b"%d" % i for i in range(1000)],
}


def write(path, records, compression="", *, by="ours"):
    def content(open_writer):
        with open_writer(str(path), compression) as writer:
            for record in records:
                writer.write(record)
        return Path(path).read_bytes()

    if by == "ours":
        content(io.TFRecordWriter)
    else:
        Path(path).write_bytes(theirs(lambda lib: content(lib.tf.io.TFRecordWriter)))
    return str(path)


@pytest.mark.parametrize("by", ["ours", "theirs"])
@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
@pytest.mark.parametrize("records", RECORDS)
def test_files(tmp_path, records, compression, by):
    path = write(tmp_path / "a", RECORDS[records], compression, by=by)
    found = assert_same(lambda lib: lib.TFRecordDataset(path, compression), limit=2000)
    assert found == RECORDS[records]
    for size in (1, 17, 1_000_000):
        assert_same(lambda lib, size=size: lib.TFRecordDataset([path, path], compression, size), limit=3000)


HEADER, FOOTER = 12, 4
RECORD = b"record"
SIZE = HEADER + len(RECORD) + FOOTER


def damaged(path, change):
    data = bytearray(Path(write(path, [RECORD] * 4)).read_bytes())
    Path(path).write_bytes(change(data))
    return str(path)


def flip(offset):
    def change(data):
        data[offset] ^= 0xFF
        return data

    return change


DAMAGES = {
    "length": flip(SIZE + 2),
    "checksum of the length": flip(SIZE + 9),
    "data": flip(SIZE + HEADER + 1),
    "data of the first": flip(HEADER),
    "data of the last": flip(3 * SIZE + HEADER),
    "checksum of the data": flip(2 * SIZE - 1),
    "cut in the data": lambda data: data[: SIZE + HEADER + 2],
    "cut before the checksum": lambda data: data[: 2 * SIZE - FOOTER],
    "cut in the checksum": lambda data: data[: 2 * SIZE - 1],
    "cut between records": lambda data: data[: 2 * SIZE],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files(tmp_path, damage):
    bad, good = damaged(tmp_path / "bad", DAMAGES[damage]), write(tmp_path / "good", [b"a", b"b"])
    assert_same(lambda lib: lib.TFRecordDataset(bad))
    assert_same(lambda lib: lib.TFRecordDataset([good, bad, good]))
    assert_same(lambda lib: lib.TFRecordDataset([good, bad, good], num_parallel_reads=1))
    assert_same(lambda lib: lib.from_tensor_slices([bad, good]).interleave(lib.TFRecordDataset, 2, 1))


def test_no_tfrecord_file(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"this is a file of text and nothing else\n" * 3)
    assert_same(lambda lib: lib.TFRecordDataset(str(path)))


def test_another_compression_than_the_files(tmp_path):
    for written, read in [("", "GZIP"), ("", "ZLIB"), ("GZIP", ""), ("GZIP", "ZLIB"), ("ZLIB", ""), ("ZLIB", "GZIP")]:
        path = write(tmp_path / "a", [b"one", b"two"], written)
        assert_same(lambda lib, path=path, read=read: lib.TFRecordDataset(path, read))
    empty = tmp_path / "empty"
    empty.touch()
    for read in ("", "GZIP", "ZLIB"):
        assert_same(lambda lib, read=read: lib.TFRecordDataset(str(empty), read))


@pytest.mark.parametrize("reshuffle", [True, False])
@pytest.mark.parametrize("size", [7, 30, 100])
def test_epochs_of_a_shuffle_do_not_mix(tmp_path, size, reshuffle):
    """Both libraries fill the buffer for the next epoch before the current one ends."""
    path = write(tmp_path / "a", [b"%d" % i for i in range(30)])

    def check(lib):
        records = lib.TFRecordDataset(path).shuffle(size, 1, reshuffle).repeat(4).as_numpy_iterator()
        epochs = [[int(record) for record in itertools.islice(records, 30)] for _ in range(4)]
        assert [sorted(epoch) for epoch in epochs] == [list(range(30))] * 4
        assert [epochs.index(epoch) for epoch in epochs] == ([0, 1, 2, 3] if reshuffle else [0] * 4)

    in_both(check)
