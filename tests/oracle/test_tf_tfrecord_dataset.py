"""Tests of TFRecordDataset against tf.data's, with complete and damaged files written by either library."""

import itertools
from pathlib import Path

import pytest
from compare import assert_same, in_both, theirs

from dataset import io
from support.tfrecord_files import COMPRESS, FOOTER, HEADER, frames

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
@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize("records", RECORDS)
def test_files(tmp_path, records, compression, by):
    path = write(tmp_path / "a", RECORDS[records], compression, by=by)
    found = assert_same(lambda lib: lib.TFRecordDataset(path, compression), limit=2000)
    assert found == RECORDS[records]
    for size in (1, 17, 1_000_000):
        assert_same(lambda lib, size=size: lib.TFRecordDataset([path, path], compression, size), limit=3000)


RECORD = b"record"
SIZE = HEADER + len(RECORD) + FOOTER
FLIPPED = {
    "length": SIZE + 2,
    "checksum of the length": SIZE + 9,
    "data": SIZE + HEADER + 1,
    "data of the first": HEADER,
    "data of the last": 3 * SIZE + HEADER,
    "checksum of the data": 2 * SIZE - 1,
}
CUT = {
    "in the data": SIZE + HEADER + 2,
    "before the checksum": 2 * SIZE - FOOTER,
    "in the checksum": 2 * SIZE - 1,
    "between records": 2 * SIZE,
}
DAMAGED = {f"cut {where}": frames([RECORD] * 4)[:place] for where, place in CUT.items()}
for what, place in FLIPPED.items():
    DAMAGED[what] = bytearray(frames([RECORD] * 4))
    DAMAGED[what][place] ^= 0xFF
DAMAGED["no TFRecord file"] = b"this is a file of text and nothing else\n" * 3


@pytest.mark.parametrize("damage", DAMAGED)
def test_damaged_files(tmp_path, damage):
    bad, good = str(tmp_path / "bad"), write(tmp_path / "good", [b"a", b"b"])
    Path(bad).write_bytes(DAMAGED[damage])
    assert_same(lambda lib: lib.TFRecordDataset(bad))
    assert_same(lambda lib: lib.TFRecordDataset([good, bad, good]))
    assert_same(lambda lib: lib.TFRecordDataset([good, bad, good], num_parallel_reads=1))
    assert_same(lambda lib: lib.from_tensor_slices([bad, good]).interleave(lib.TFRecordDataset, 2, 1))


def test_another_compression_than_the_files(tmp_path):
    for written, read in itertools.product(COMPRESS, COMPRESS):
        path = write(tmp_path / "a", [b"one", b"two"], written)
        assert_same(lambda lib, path=path, read=read: lib.TFRecordDataset(path, read))
    (tmp_path / "empty").touch()
    for read in COMPRESS:
        assert_same(lambda lib, read=read: lib.TFRecordDataset(str(tmp_path / "empty"), read))


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
