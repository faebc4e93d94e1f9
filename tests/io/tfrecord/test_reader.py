"""Tests of reading TFRecord files: all records, resuming from every position, and release of resources."""

from __future__ import annotations

import gc
import gzip
import io
import itertools
import os
import random
import tempfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset.errors import ClosedError, DataLossError
from dataset.io.files import stream_file
from dataset.io.tfrecord import reader
from dataset.io.tfrecord.reader import TFRecordFile
from dataset.io.tfrecord.writer import TFRecordWriter
from support.block_files import OpenedFiles
from support.tfrecord_files import COMPRESS, GOLDEN, GOLDEN_RECORDS, KINDS, assorted, frame, frames, read


@pytest.fixture
def opened(monkeypatch):
    counter = OpenedFiles()
    monkeypatch.setattr(stream_file, "open_input", counter)
    return counter


# Elements.


@pytest.mark.parametrize("kind", KINDS)
def test_files_of_tensorflow_are_read(kind, save):
    assert read(TFRecordFile(save(GOLDEN[kind]), kind)) == (GOLDEN_RECORDS, None)


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
    """A block is read and verified once, even if it is returned in small parts."""
    checks = []
    check = reader.BlockChecksums.damages
    monkeypatch.setattr(reader.BlockChecksums, "damages", lambda *args: checks.append(1) or check(*args))
    records = assorted(2000)
    assert read(TFRecordFile(save(frames(records))), n=1) == (records, None)
    assert len(checks) == 1
    assert len(opened.files) == 1


def test_a_pipe_can_be_read(tmp_path):
    """The reader does not ask a pipe for its size, and does not seek in it."""
    ours, theirs = os.pipe()
    os.write(theirs, frames([b"a", b"bb"]))
    os.close(theirs)
    try:
        assert read(TFRecordFile(f"/dev/fd/{ours}")) == ([b"a", b"bb"], None)
    finally:
        os.close(ours)


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
    assert "reading has to start at byte 1000" in str(error) or offset == 1


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


# Files, arguments and resources.


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
    """The records before the error are returned, the error is raised, and no record is lost or repeated."""
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

    monkeypatch.setattr(stream_file, "open_input", Flaky)
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
