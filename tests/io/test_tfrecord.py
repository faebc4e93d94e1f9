"""TFRecord files: what is written comes back, what is damaged never does, and every place can be gone back to."""

from __future__ import annotations

import gc
import gzip
import io
import itertools
import os
import random
import struct
import subprocess
import sys
import tempfile
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset.errors import ClosedError, DataLossError
from dataset.io import tfrecord
from dataset.io.tfrecord import TFRecordFile, TFRecordOptions, TFRecordWriter

KINDS = ["", "GZIP", "ZLIB"]
COMPRESS = {"": bytes, "GZIP": lambda data: gzip.compress(data, mtime=0), "ZLIB": zlib.compress}

# Written by TensorFlow 2.21's tf.io.TFRecordWriter, one file per compression type.
GOLDEN_RECORDS = [b"", b"a", b"tensor\x00flow", bytes(range(40))]
GOLDEN = {
    "": b"\x00\x00\x00\x00\x00\x00\x00\x00)\x03\x98\x07\xd8\xea\x82\xa2\x01\x00\x00\x00\x00\x00\x00\x00\x01u\xdeAaxn"
    b"\xe4("
    b"\x0b\x00\x00\x00\x00\x00\x00\x00\x86\x15\xf5\x04tensor\x00flow\x1f3\xbf/(\x00\x00\x00\x00\x00\x00\x00\xffp\x16J"
    b"\x00\x01\x02\x03\x04\x05\x06\x07\x08\t\n\x0b\x0c\r\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c"
    b"\x1d\x1e\x1f !\"#$%&'u\x11\x89\x83",
    "GZIP": b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03c`\x80\x00M\xe6\x19\xec7^5-b\x84\xf2\x19K\xef9&V\xe4=\xd1\xe0\x86"
    b"\n\xb4\x89~e)I\xcd+\xce/bH\xcb\xc9/\x977\xde\xaf\xaf\x01\x95\xfa_ \xe6\xc5\xc0\xc8\xc4\xcc\xc2\xca\xc6\xce\xc1"
    b"\xc9\xc5\xcd\xc3\xcb\xc7/ ($,\"*&.!)%-#+'\xaf\xa0\xa8\xa4\xac\xa2\xaa\xa6^*\xd8\xd9\x0c\x00\xd0\xfb9\xf0t\x00\x00"
    b"\x00",
    "ZLIB": b"x\x9cc`\x80\x00M\xe6\x19\xec7^5-b\x84\xf2\x19K\xef9&V\xe4=\xd1\xe0\x86\n\xb4\x89~e)I\xcd+\xce/bH\xcb\xc9/"
    b'\x977\xde\xaf\xaf\x01\x95\xfa_ \xe6\xc5\xc0\xc8\xc4\xcc\xc2\xca\xc6\xce\xc1\xc9\xc5\xcd\xc3\xcb\xc7/ ($,"*&.!)%-'
    b"#+'\xaf\xa0\xa8\xa4\xac\xa2\xaa\xa6^*\xd8\xd9\x0c\x00K\x83\x15b",
}


def masked(data):
    """The format's masked CRC-32C, in the words of its description."""
    crc = crc32c(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) % 2**32)


def header(length):
    packed = struct.pack("<Q", length)
    return packed + masked(packed)


def frame(data):
    return header(len(data)) + data + masked(data)


def frames(records):
    return b"".join(map(frame, records))


def read(file, n=1000):
    """All records, and the error that ended them or None; closes the file."""
    found, error = [], None
    try:
        while (chunk := file.records(n)) is not None:
            assert 1 <= len(chunk) <= n
            found += chunk
    except DataLossError as damage:
        error = damage
        assert file.records(n) is None
        assert file.exhausted
    file.close()
    return found, error


def names_in(folder):
    return [path.name for path in folder.iterdir()]


def assorted(count, seed=0, largest=30):
    """Records of different lengths, some of them empty."""
    rng = random.Random(seed)
    return [rng.randbytes(rng.randrange(largest)) for _ in range(count)]


@pytest.fixture
def save(tmp_path):
    """Write bytes to a new file and return its path."""
    names = itertools.count()

    def write(content):
        path = tmp_path / f"{next(names)}.tfrecord"
        path.write_bytes(content)
        return path

    return write


class OpenedFiles:
    """Stands for open_input and remembers what it opened."""

    def __init__(self):
        self.files = []

    def __call__(self, path):
        self.files.append(io.FileIO(path))
        return self.files[-1]

    def all_closed(self):
        return all(file.closed for file in self.files)


@pytest.fixture
def opened(monkeypatch):
    counter = OpenedFiles()
    monkeypatch.setattr(tfrecord, "open_input", counter)
    return counter


# What comes out.


@pytest.mark.parametrize("kind", KINDS)
def test_files_of_tensorflow_are_read(kind, save):
    assert read(TFRecordFile(save(GOLDEN[kind]), kind)) == (GOLDEN_RECORDS, None)


def test_the_writer_writes_the_bytes_that_tensorflow_writes(tmp_path):
    with TFRecordWriter(tmp_path / "a") as writer:
        for record in GOLDEN_RECORDS:
            writer.write(record)
    assert (tmp_path / "a").read_bytes() == GOLDEN[""]


@pytest.mark.parametrize(("kind", "decompress"), [("GZIP", gzip.decompress), ("ZLIB", zlib.decompress)])
@pytest.mark.parametrize("level", [None, -1, 0, 9])
def test_compressed_files_hold_the_same_frames(kind, decompress, level, tmp_path):
    with TFRecordWriter(tmp_path / "a", TFRecordOptions(kind, level)) as writer:
        for record in GOLDEN_RECORDS:
            writer.write(record)
    assert decompress((tmp_path / "a").read_bytes()) == GOLDEN[""]


@settings(deadline=None, max_examples=60)
@given(
    records=st.lists(st.one_of(st.binary(max_size=60), st.integers(0, 9000).map(lambda n: b"x" * n)), max_size=60),
    kind=st.sampled_from(KINDS),
    block=st.sampled_from([None, 0, 1, 13, 100, 4096]),
    n=st.sampled_from([1, 3, 1000]),
    verify=st.booleans(),
)
def test_what_was_written_comes_back(records, kind, block, n, verify):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a")
        with TFRecordWriter(path, kind) as writer:
            for record in records:
                writer.write(record)
        assert read(TFRecordFile(path, kind, block, verify), n) == (records, None)


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_runs_of_equal_records_that_break_off_come_back(kind, verify, save):
    runs = [b"a" * 20] * 50 + [b"b" * 21] + [b"c" * 20] * 3 + [b""] * 40 + [b"d" * 20] * 50
    for records in (runs, runs[::-1], runs[50:], runs[:50]):
        for block in (None, 500, 1000):
            file = TFRecordFile(save(COMPRESS[kind](frames(records))), kind, block, verify)
            assert read(file) == (records, None)


@pytest.mark.parametrize("kind", KINDS)
def test_big_records_between_small_ones_come_back(kind, save):
    big = random.Random(1).randbytes(3 << 20)
    records = [b"small", big, b"", big[:70_000], b"x" * 40_000, *[b"small"] * 100, big[:262_140], big[:262_128], b"end"]
    assert read(TFRecordFile(save(COMPRESS[kind](frames(records))), kind)) == (records, None)


def test_records_are_bytes(save):
    found, _ = read(TFRecordFile(save(frames([b"a" * 10, b"b" * 200_000]))))
    assert [type(record) for record in found] == [bytes, bytes]


def test_several_gzip_streams_in_a_row_are_one_file(save):
    records = assorted(90)
    content = frames(records)
    cut = len(content) // 3
    streams = gzip.compress(content[:cut]) + gzip.compress(b"") + gzip.compress(content[cut:]) + bytes(1000)
    assert read(TFRecordFile(save(streams), "GZIP")) == (records, None)


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_file_has_no_records(kind, save):
    assert read(TFRecordFile(save(b""), kind)) == ([], None)
    assert read(TFRecordFile(save(COMPRESS[kind](b"")), kind)) == ([], None)


def test_after_the_end_there_is_nothing_ever(save):
    file = TFRecordFile(save(frames([b"a"])))
    assert file.records(5) == [b"a"]
    assert not any(file.records(5) for _ in range(3))


def test_records_asked_for_one_by_one_are_not_read_one_by_one(save, opened, monkeypatch):
    """A block is read and verified once, however small the helpings."""
    checks = []
    check = tfrecord._Checksums.first_damage
    monkeypatch.setattr(tfrecord._Checksums, "first_damage", lambda *args: checks.append(1) or check(*args))
    records = assorted(2000)
    assert read(TFRecordFile(save(frames(records))), n=1) == (records, None)
    assert len(checks) == 1
    assert len(opened.files) == 1


def test_a_pipe_can_be_read(tmp_path):
    """Nothing asks a pipe for its size, or to move."""
    ours, theirs = os.pipe()
    os.write(theirs, frames([b"a", b"bb"]))
    os.close(theirs)
    try:
        assert read(TFRecordFile(f"/dev/fd/{ours}")) == ([b"a", b"bb"], None)
    finally:
        os.close(ours)


# Damage.


@pytest.mark.parametrize(
    "count", [5, 60]
)  # so few that frames are verified one by one, so many that it is done at once
@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("block", [None, 200])
def test_a_changed_byte_is_found_in_its_record(count, equal, block, save):
    records = [b"%020d" % i for i in range(count)] if equal else assorted(count)
    content = frames(records)
    owner = [index for index, record in enumerate(records) for _ in frame(record)]
    offsets = [0, *itertools.accumulate(len(frame(record)) for record in records)]
    for place, number in enumerate(owner):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        found, error = read(TFRecordFile(save(damaged), buffer_size=block))
        assert found == records[:number]
        assert (error.record, error.offset) == (number, offsets[number])


@pytest.mark.parametrize("kind", ["GZIP", "ZLIB"])
def test_a_changed_byte_of_a_compressed_file_never_gives_wrong_records(kind, save):
    records = assorted(60)
    content = COMPRESS[kind](frames(records))
    silent = 0
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        found, error = read(TFRecordFile(save(damaged), kind))
        assert found == records[: len(found)]
        assert error is None or error.record == len(found)
        silent += error is None
        assert error is not None or found == records
    assert silent <= 7  # time, level and system in gzip's header (6 bytes), and the bits that fill deflate's last byte


@pytest.mark.parametrize("kind", ["GZIP", "ZLIB"])
def test_damage_far_into_a_compressed_file_loses_no_record_before_it(kind, save):
    """The call of zlib that fails drops what it had inflated; those records must not be lost."""
    records = [random.Random(i).randbytes(100) for i in range(3000)]
    content = bytearray(COMPRESS[kind](frames(records)))
    content[-6 if kind == "GZIP" else -2] ^= 1  # the stream's own checksum: every record is sound
    found, error = read(TFRecordFile(save(content), kind))
    assert found == records
    assert error.record == len(records)
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
        assert error is None or (error.record == len(found) and "cut" in str(error))


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [2**63, 2**64 - 1, 2**40, 10_000_000, 1000])
def test_a_length_that_cannot_be_is_not_believed(length, kind, verify, save):
    """Its checksum is right, so only the file's size can tell."""
    content = COMPRESS[kind](frames([b"good"]) + header(length) + b"tail")
    tracemalloc.start()
    try:
        found, error = read(TFRecordFile(save(content), kind, 4096, verify))
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()
    assert found == [b"good"]
    assert (error.record, error.offset) == (1, 20)
    assert f"its header announces {length} bytes" in str(error)


@pytest.mark.parametrize("kind", KINDS)
def test_a_length_beyond_the_file_does_not_read_the_rest_of_it_into_memory(kind, save):
    content = COMPRESS[kind](header(2**40) + random.Random(1).randbytes(8 << 20))
    tracemalloc.start()
    try:
        found, error = read(TFRecordFile(save(content), kind))
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    finally:
        tracemalloc.stop()
    assert found == []
    assert "at most" in str(error)


@settings(deadline=None, max_examples=200)
@given(content=st.binary(max_size=400), kind=st.sampled_from(KINDS), verify=st.booleans(), lengths=st.booleans())
def test_no_bytes_at_all_make_the_reader_hang_or_crash(content, kind, verify, lengths):
    if lengths:  # let it come further than the first eight bytes
        content = b"".join(header(byte) + bytes(byte % 7) for byte in content[:9]) + content
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a")
        path.write_bytes(content)
        read(TFRecordFile(path, kind, 64, verify))


@settings(deadline=None, max_examples=150)
@given(data=st.data(), count=st.integers(30, 80))
def test_any_damage_of_several_fields_is_found_at_the_first(data, count):
    records = assorted(count)
    content = bytearray(frames(records))
    places = data.draw(st.sets(st.integers(0, len(content) - 1), min_size=1, max_size=20))
    for place in places:
        content[place] ^= data.draw(st.integers(1, 255))
    owner = [index for index, record in enumerate(records) for _ in frame(record)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a")
        path.write_bytes(content)
        found, error = read(TFRecordFile(path))
    assert found == records[: owner[min(places)]]
    assert error.record == len(found)


def test_blocks_of_zeros_and_repeated_damage_are_found(save):
    """Holes in a file, and the same wrong bit in every record, as a bad buffer makes them."""
    records = [b"%020d" % i for i in range(1000)]
    content = bytearray(frames(records))
    for start in (0, 36 * 100, 36 * 999):
        holed = bytearray(content)
        holed[start:] = bytes(len(content) - start)
        assert len(read(TFRecordFile(save(holed)))[0]) == start // 36
    content[36 * 7 + 20 :: 36] = bytes(byte ^ 4 for byte in content[36 * 7 + 20 :: 36])
    assert len(read(TFRecordFile(save(content)))[0]) == 7


def test_the_register_is_reset_by_every_right_checksum():
    """What the check of a whole block rests on."""
    reset = tfrecord.REGISTER_RESET
    assert crc32c(struct.pack("<I", reset)) == 0
    for data in assorted(50):
        assert crc32c(data + struct.pack("<I", crc32c(data) ^ reset) + b"more") == crc32c(b"more")


def test_a_whole_block_is_right_exactly_when_each_of_its_frames_is():
    records = assorted(50)
    content = frames(records)
    checksums = tfrecord._Checksums(len(content))
    starts = [0, *itertools.accumulate(len(frame(record)) for record in records)]
    assert tfrecord._frame_starts(content) == starts
    assert checksums._all_right(content, starts)
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 0x55
        assert not checksums._all_right(bytes(damaged), starts)


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
    with TFRecordFile(path) as file:
        file.records(1)
        with pytest.raises(DataLossError) as caught:
            file.records(1)
    assert str(caught.value) == (
        "a record is cut: its header announces 3 bytes and a checksum of 4, but 5 bytes follow; "
        f"the file's copy or its writer may not have finished, in {path}, record 1, at byte 19"
    )
    assert (caught.value.path, caught.value.offset, caught.value.record) == (str(path), 19, 1)


@pytest.mark.parametrize(
    ("content", "kind", "words"),
    [
        (b"a text file, not a TFRecord file", "", "checksum of a record's length is wrong.*is this a TFRecord file?"),
        (b"short", "", "header is cut: 12 bytes expected, 5 left in the file; is this a TFRecord file?"),
        (GOLDEN["GZIP"], "", 'starts like a GZIP stream: pass compression_type="GZIP"'),
        (GOLDEN["GZIP"][:9], "", 'starts like a GZIP stream: pass compression_type="GZIP"'),
        (GOLDEN["ZLIB"], "", 'starts like a ZLIB stream: pass compression_type="ZLIB"'),
        (GOLDEN[""], "GZIP", "is this a GZIP file? else pass compression_type=None"),
        (GOLDEN["ZLIB"], "GZIP", "is this a GZIP file? else pass compression_type='ZLIB'"),
        (GOLDEN["GZIP"], "ZLIB", "is this a ZLIB file? else pass compression_type='GZIP'"),
        (GOLDEN["GZIP"] + b"garbage", "GZIP", "corrupt .* after 1 whole stream"),
        (GOLDEN["GZIP"][:-1], "GZIP", "the GZIP stream is cut short"),
        (gzip.compress(b"text of some length"), "GZIP", "length is wrong.*is this a TFRecord file?"),
    ],
)
def test_a_file_of_another_kind_is_recognised(content, kind, words, save):
    _, error = read(TFRecordFile(save(content), kind))
    pattern = words.replace("?", r"\?")
    with pytest.raises(DataLossError, match=pattern):
        raise error


# Places.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block", [None, 64])
def test_every_place_can_be_gone_back_to(kind, block, save):
    records = assorted(60)
    path = save(COMPRESS[kind](frames(records)))
    file = TFRecordFile(path, kind, block)
    places = []
    for record in records:
        places.append(file.tell())
        assert file.records(1) == [record]
    places.append(file.tell())
    assert places == list(
        zip(itertools.accumulate((len(frame(r)) for r in records), initial=0), range(len(records) + 1), strict=True)
    )
    assert file.records(1) is None
    for number in random.Random(2).sample(range(len(places)), len(places)):
        file.seek(*places[number])
        assert file.tell() == places[number]
        assert file.records(1) == (records[number : number + 1] or None)
    for place in places[::7]:
        other = TFRecordFile(path, kind)
        other.seek(*place)
        assert read(other) == (records[place[1] :], None)
    file.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("offset", [1, 1000])
def test_a_place_that_does_not_fit_the_file_is_data_loss(kind, offset, save):
    file = TFRecordFile(save(COMPRESS[kind](frames([b"one", b"two"]))), kind)
    file.seek(offset, 1)
    found, error = read(file)
    assert found == []
    assert (error.offset, error.record) == (offset, 1)
    assert "was to be read from byte 1000 on" in str(error) or offset == 1


def test_going_back_from_damage_starts_afresh(save):
    file = TFRecordFile(save(frames([b"one", b"two"])[:-1]))
    assert file.records(9) == [b"one"]
    with pytest.raises(DataLossError):
        file.records(9)
    assert file.tell() == (19, 1)
    assert file.exhausted
    file.seek(0, 0)
    assert not file.exhausted
    assert file.records(9) == [b"one"]
    file.close()


def test_a_negative_place_is_refused(save):
    with pytest.raises(ValueError, match=r"can't be negative, got \(-1, 0\)"):
        TFRecordFile(save(b"")).seek(-1, 0)


# Files, arguments, and what is given back.


def test_a_missing_file_is_reported_by_every_read_and_not_before(tmp_path):
    file = TFRecordFile(tmp_path / "missing")
    for _ in range(3):
        with pytest.raises(FileNotFoundError, match="missing"):
            file.records(1)
    (tmp_path / "missing").write_bytes(frames([b"there"]))
    assert read(file) == ([b"there"], None)


def test_a_directory_is_reported(tmp_path):
    with pytest.raises(IsADirectoryError):
        TFRecordFile(tmp_path).records(1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_read_that_fails_is_tried_again_at_its_place(kind, save, monkeypatch):
    """The records before it come out, the error is raised, and nothing is lost or repeated."""
    records = [random.Random(i).randbytes(30_000) for i in range(20)]
    calls = itertools.count(1)
    failing = {1, 4, 5, 9, 16, 30, 31, 32}
    opened = []

    class Flaky(io.FileIO):
        def __init__(self, path):
            super().__init__(path)
            opened.append(self)

        def read(self, size=-1):
            if next(calls) in failing:
                raise OSError(5, "the cable is out", self.name)
            return super().read(size)

    monkeypatch.setattr(tfrecord, "open_input", Flaky)
    file = TFRecordFile(save(COMPRESS[kind](frames(records))), kind, buffer_size=100_000)
    found, chunk, errors = [], [], []
    while chunk is not None:
        found += chunk
        try:
            chunk = file.records(100)
        except OSError as error:
            chunk = []
            errors.append(error.strerror)
    assert found == records
    assert len(errors) > 3
    assert set(errors) == {"the cable is out"}
    assert len(opened) > len(errors)  # a handle that failed may be stale
    assert all(handle.closed for handle in opened)


def test_files_are_closed_at_the_end_on_damage_on_close_and_when_abandoned(save, opened):
    path, damaged = save(frames([b"a" * 100] * 9000)), save(b"nonsense, and enough of it")
    at_end, abandoned, closed = TFRecordFile(path), TFRecordFile(path), TFRecordFile(path)
    while at_end.records(10_000):
        pass
    assert opened.all_closed()
    with pytest.raises(DataLossError):
        TFRecordFile(damaged).records(1)
    assert opened.all_closed()
    closed.records(1)
    abandoned.records(1)
    assert not opened.all_closed()
    closed.close()
    closed.close()
    del abandoned
    gc.collect()
    assert opened.all_closed()
    assert len(opened.files) == 4


def test_a_closed_file_keeps_its_place_and_refuses_the_rest(save):
    file = TFRecordFile(save(frames([b"one", b"two"])))
    file.records(1)
    file.close()
    assert file.tell() == (19, 1)
    for use in (lambda: file.records(1), lambda: file.seek(0, 0)):
        with pytest.raises(ClosedError, match="was closed"):
            use()


@pytest.mark.parametrize("kind", KINDS)
def test_memory_stays_around_one_block(kind, save):
    path = save(COMPRESS[kind](frames([b"0123456789" * 80]) * 12_000))
    tracemalloc.start()
    try:
        file = TFRecordFile(path, kind, buffer_size=1 << 16)
        while file.records(64):
            pass
        assert tracemalloc.get_traced_memory()[1] < 600_000
    finally:
        tracemalloc.stop()
    file.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_big_record_is_held_once(kind, save):
    size = 20 << 20
    path = save(COMPRESS[kind](frames([b"first", bytes(size)])))
    tracemalloc.start()
    try:
        file = TFRecordFile(path, kind)
        assert file.records(1) == [b"first"]
        assert tracemalloc.get_traced_memory()[1] < size * 1.3
    finally:
        tracemalloc.stop()
    file.close()


def test_bad_arguments_are_refused_at_construction(tmp_path):
    with pytest.raises(ValueError, match=r'must be None, "", "GZIP" or "ZLIB", got \'BZ2\''):
        TFRecordFile(tmp_path / "a", "BZ2")
    with pytest.raises(ValueError, match="buffer_size must be at least 0 bytes, got -1"):
        TFRecordFile(tmp_path / "a", buffer_size=-1)
    with pytest.raises(TypeError, match=r"a path must be str, bytes or os.PathLike, got int: 3"):
        TFRecordFile(3)
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        TFRecordFile(tmp_path / "a").records(0)


# The writer.


class StopError(Exception):
    pass


@pytest.mark.parametrize("kind", KINDS)
def test_the_name_appears_when_the_writer_is_closed(kind, tmp_path):
    path = tmp_path / "a"
    writer = TFRecordWriter(path, kind)
    writer.write(b"one")
    writer.flush()
    assert not path.exists()
    writer.write(b"two")
    writer.close()
    writer.close()
    assert names_in(tmp_path) == ["a"]
    assert read(TFRecordFile(path, kind)) == ([b"one", b"two"], None)


def test_flushed_records_are_in_the_temporary_file(tmp_path):
    with TFRecordWriter(tmp_path / "a") as writer:
        writer.write(b"one")
        writer.flush()
        (temporary,) = tmp_path.iterdir()
        assert temporary.read_bytes() == frame(b"one")


@pytest.mark.parametrize("before", [None, b"the old file"])
def test_an_exception_leaves_what_was_there(before, tmp_path):
    path = tmp_path / "a"
    if before:
        path.write_bytes(before)
    with pytest.raises(StopError), TFRecordWriter(path) as writer:
        writer.write(b"one")
        raise StopError
    assert [p.read_bytes() for p in tmp_path.iterdir()] == [before] * bool(before)


def test_a_writer_that_is_dropped_leaves_nothing(tmp_path):
    writer = TFRecordWriter(tmp_path / "a")
    writer.write(b"one")
    assert len(names_in(tmp_path)) == 1
    del writer
    gc.collect()
    assert names_in(tmp_path) == []


@pytest.mark.parametrize(("last", "left"), [("sys.exit(1)", 0), ("os._exit(1)", 1)])
def test_a_process_that_ends_leaves_nothing_under_the_name(last, left, tmp_path):
    """An exit cleans up; a crash can't, but what it leaves does not look like the file."""
    code = (
        "import os, sys; from dataset.io.tfrecord import TFRecordWriter\n"
        f"writer = TFRecordWriter({str(tmp_path / 'a.tfrecord')!r}); writer.write(b'one'); writer.flush(); {last}"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 1
    assert len(names_in(tmp_path)) == left
    assert list(tmp_path.glob("*.tfrecord")) == []


def test_a_write_that_fails_gives_the_file_up(tmp_path, monkeypatch):
    """A frame written by half must not get the name through a later close()."""
    writer = TFRecordWriter(tmp_path / "a")
    writer.write(b"one")

    class Full:
        def compress(self, data):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(writer, "_compressor", Full())
    with pytest.raises(OSError, match="No space left"):
        writer.write(b"two")
    writer.close()
    assert names_in(tmp_path) == []
    with pytest.raises(ValueError, match="is closed"):
        writer.write(b"three")


def test_a_closed_writer_refuses_records(tmp_path):
    writer = TFRecordWriter(tmp_path / "a")
    writer.close()
    for use in (lambda: writer.write(b"one"), writer.flush):
        with pytest.raises(ValueError, match=r"the writer of .*a is closed"):
            use()


@pytest.mark.parametrize("record", [b"abc", bytearray(b"abc"), memoryview(b"abc"), np.bytes_(b"abc")])
def test_anything_that_is_bytes_is_written(record, tmp_path):
    with TFRecordWriter(tmp_path / "a") as writer:
        writer.write(record)
    assert (tmp_path / "a").read_bytes() == frame(b"abc")


def test_a_view_of_numbers_is_written_whole(tmp_path):
    numbers = np.arange(6, dtype="<i4").reshape(2, 3)
    with TFRecordWriter(tmp_path / "a") as writer:
        writer.write(numbers.data)
    assert (tmp_path / "a").read_bytes() == frame(numbers.tobytes())


@pytest.mark.parametrize(("record", "words"), [("text", "got str: 'text'; encode"), (3, "int: 3"), (None, "NoneType")])
def test_a_record_that_is_not_bytes_is_refused(record, words, tmp_path):
    with TFRecordWriter(tmp_path / "a") as writer:
        with pytest.raises(TypeError, match=words):
            writer.write(record)
        writer.write(b"fine")
    assert read(TFRecordFile(tmp_path / "a")) == ([b"fine"], None)


def test_a_message_that_was_not_serialized_is_told_how(tmp_path):
    class Message:
        def SerializeToString(self):  # noqa: N802
            return b""

    with TFRecordWriter(tmp_path / "a") as writer, pytest.raises(TypeError, match=r"call its SerializeToString\(\)"):
        writer.write(Message())


def test_options_are_checked(tmp_path):
    with pytest.raises(ValueError, match="got 'LZ4'"):
        TFRecordWriter(tmp_path / "a", "LZ4")
    with pytest.raises(ValueError, match="must be None or -1 to 9, got 10"):
        TFRecordOptions("GZIP", 10)
    with pytest.raises(TypeError, match="must be TFRecordOptions or a string, got 3"):
        TFRecordWriter(tmp_path / "a", 3)
    assert names_in(tmp_path) == []
