"""Tests of damaged TFRecord files: no wrong records, all records before the damage, and errors with positions."""

from __future__ import annotations

import gzip
import itertools
import random
import re
import tracemalloc

import pytest

from dataset.io.tfrecord.reader import TFRecordFile
from support.tfrecord_files import COMPRESS, GOLDEN, KINDS, assorted, frame, frames, header, read

pytestmark = pytest.mark.usefixtures("native")


@pytest.mark.parametrize("count", [5, 60])  # frames are verified one by one, and at once
@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("block", [None, 200])
def test_a_changed_byte_is_found_in_its_record(count, equal, block, save):
    records = [b"%020d" % i for i in range(count)] if equal else assorted(count)
    content = frames(records)
    owner = [index for index, record in enumerate(records) for _ in frame(record)]
    offsets = [0, *itertools.accumulate(len(frame(record)) for record in records)]
    for place, number in list(enumerate(owner))[:: 1 if count == 5 else 5]:
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        found, error = read(TFRecordFile(save(damaged), buffer_size=block))
        assert found == records[:number]
        assert (error.record, error.offset) == (number, offsets[number])


@pytest.mark.parametrize("kind", ["GZIP", "ZLIB"])
def test_a_changed_byte_of_a_compressed_file_never_gives_wrong_records(kind, save):
    records = assorted(20)
    content = COMPRESS[kind](frames(records))
    silent = 0
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        found, error = read(TFRecordFile(save(damaged), kind))
        assert found == records[: len(found)]
        assert found == records if error is None else error.record == len(found)
        silent += error is None
    assert silent <= 7  # time, level and system in gzip's header (6 bytes), and the padding bits of deflate's last byte


@pytest.mark.parametrize(("kind", "place"), [("GZIP", -6), ("ZLIB", -2)])
def test_damage_far_into_a_compressed_file_loses_no_record_before_it(kind, place, save):
    """A failing call of zlib drops the data that it has decompressed; the records in it must not be lost."""
    records = [random.Random(i).randbytes(100) for i in range(3000)]
    content = bytearray(COMPRESS[kind](frames(records)))
    content[place] ^= 1  # the checksum of the stream: all records are valid
    found, error = read(TFRecordFile(save(content), kind))
    assert (found, error.record) == (records, 3000)
    assert "corrupt" in str(error)


@pytest.mark.parametrize("block", [None, 50])
@pytest.mark.parametrize("kind", KINDS)
def test_a_cut_file_gives_the_whole_records_and_says_so(kind, block, save):
    records = assorted(40)
    content = COMPRESS[kind](frames(records))
    boundaries = {0, *itertools.accumulate(len(frame(record)) for record in records)} if not kind else {0}
    for length in range(len(content)):
        found, error = read(TFRecordFile(save(content[:length]), kind, block))
        assert found == records[: len(found)]
        assert (error is None) == (length in boundaries)
        assert error is None or (error.record == len(found) and "truncated" in str(error))


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [2**63, 2**64 - 1, 2**40, 10_000_000, 1000])
def test_a_length_that_cannot_be_is_not_believed(length, kind, verify, save):
    """The checksum of the length is correct, so only the size of the file shows the damage."""
    tail = random.Random(1).randbytes(8 << 20) if length == 2**40 else b"tail"
    path = save(COMPRESS[kind](frames([b"good"]) + header(length) + tail))
    tracemalloc.start()
    try:
        found, error = read(TFRecordFile(path, kind, None if length == 2**40 else 4096, verify))
        assert tracemalloc.get_traced_memory()[1] < 3_000_000  # not even the bytes that are there are read
    finally:
        tracemalloc.stop()
    assert found == [b"good"]
    assert (error.record, error.offset) == (1, 20)
    assert f"its header declares {length} bytes" in str(error)


def test_blocks_of_zeros_and_repeated_damage_are_found(save):
    """Holes in a file, and the same wrong bit in every record, as caused by a faulty buffer."""
    records = [b"%020d" % i for i in range(1000)]
    content = bytearray(frames(records))
    for start in (0, 36 * 100, 36 * 999):
        holed = bytearray(content)
        holed[start:] = bytes(len(content) - start)
        assert len(read(TFRecordFile(save(holed)))[0]) == start // 36
    content[36 * 7 + 20 :: 36] = bytes(byte ^ 4 for byte in content[36 * 7 + 20 :: 36])
    assert len(read(TFRecordFile(save(content)))[0]) == 7


def test_without_verifying_wrong_checksums_pass(save):
    content = bytearray(frames([b"one", b"two"] * 30))
    content[8] ^= 1  # of a length
    content[12] ^= 1  # data
    content[-1] ^= 1  # of data
    found, error = read(TFRecordFile(save(content), verify=False))
    assert error is None
    assert found == [b"nne", b"two", *[b"one", b"two"] * 29]


def test_errors_say_what_is_wrong_and_where(save):
    path = save(frames([b"one", b"two"])[:-2])
    _, error = read(TFRecordFile(path))
    assert str(error) == (
        f"{path}, record 1, at byte 19: a record is truncated: its header declares 3 bytes and a checksum of 4, "
        "but 5 bytes follow; copying or writing the file may not have finished"
    )
    assert (error.path, error.offset, error.record) == (str(path), 19, 1)


@pytest.mark.parametrize(
    ("content", "kind", "words"),
    [
        (b"a text file, not a TFRecord file", "", "checksum of a record's length is wrong.*is this a TFRecord file?"),
        (b"short", "", "header is truncated: 12 bytes expected, 5 left in the file; is this a TFRecord file?"),
        (GOLDEN["GZIP"], "", 'starts like a GZIP stream: pass compression_type="GZIP"'),
        (GOLDEN["GZIP"][:9], "", 'starts like a GZIP stream: pass compression_type="GZIP"'),
        (GOLDEN["ZLIB"], "", 'starts like a ZLIB stream: pass compression_type="ZLIB"'),
        (GOLDEN[""], "GZIP", "if this is not a GZIP file, pass compression_type=None"),
        (GOLDEN["ZLIB"], "GZIP", "if this is not a GZIP file, pass compression_type='ZLIB'"),
        (GOLDEN["GZIP"], "ZLIB", "if this is not a ZLIB file, pass compression_type='GZIP'"),
        (GOLDEN["GZIP"] + b"garbage", "GZIP", "corrupt .* after 1 complete stream"),
        (GOLDEN["GZIP"][:-1], "GZIP", "the GZIP stream is truncated"),
        (gzip.compress(b"text of some length", mtime=0), "GZIP", "length is wrong.*is this a TFRecord file?"),
    ],
)
def test_a_file_of_another_kind_is_recognised(content, kind, words, save):
    _, error = read(TFRecordFile(save(content), kind))
    assert re.search(words.replace("?", r"\?"), str(error))
