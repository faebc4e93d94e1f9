"""Tests of S3 with a moto server: listing, reading, writing, and cleanup after aborted uploads."""

from __future__ import annotations

import itertools
import random

import pytest

from dataset import DataLossError, Dataset, TFRecordDataset, io
from dataset.io.files.atomic import AtomicFile
from dataset.io.files.opening import open_input
from dataset.io.files.remote import objects, reading, writing
from dataset.io.files.remote.s3 import S3Object

pytest.importorskip("s3fs")
pytest.importorskip("moto")

RECORDS = [random.Random(i).randbytes(i * 10) for i in range(60)]


@pytest.fixture
def small_ranges(monkeypatch):
    monkeypatch.setattr(reading, "AHEAD_BYTES_MIN", 500)
    monkeypatch.setattr(reading, "AHEAD_BYTES_MAX", 2000)


def write(path, records=RECORDS, kind=None):
    with io.TFRecordWriter(path, kind) as writer:
        for record in records:
            writer.write(record)
    return path


def uploads(s3):
    return s3.call_s3("list_multipart_uploads", Bucket="bucket").get("Uploads", [])


@pytest.mark.parametrize("kind", [None, "GZIP"])
def test_what_was_written_is_listed_and_read(s3, kind, small_ranges):
    for name in "ba":
        write(f"s3://bucket/data/{name}.tfrecord", kind=kind)
    files = Dataset.list_files("s3://bucket/data/*.tfrecord", shuffle=False)
    assert list(files) == [b"s3://bucket/data/a.tfrecord", b"s3://bucket/data/b.tfrecord"]
    assert list(TFRecordDataset(files, kind)) == RECORDS * 2
    assert sorted(TFRecordDataset(files, kind, num_parallel_reads=2)) == sorted(RECORDS * 2)


def test_reading_resumes(s3, small_ranges):
    dataset = TFRecordDataset(write("s3://bucket/a"), buffer_size=100)
    with iter(dataset) as iterator:
        for position in range(0, 60, 10):
            state = iterator.state_dict()
            assert next(iterator) == RECORDS[position]
            with iter(dataset) as resumed:
                resumed.load_state_dict(state)
                assert list(resumed) == RECORDS[position:]
            for _ in range(9):
                next(iterator)


def test_ranges_are_fetched_one_by_one_and_nothing_else(s3, small_ranges, monkeypatch):
    write("s3://bucket/a")
    calls, call = [], s3._call_s3

    async def counted(method, *args, **kwargs):
        calls.append((method, kwargs.get("Range")))
        return await call(method, *args, **kwargs)

    monkeypatch.setattr(s3, "_call_s3", counted)
    with open_input("s3://bucket/a") as file:
        content = file.read()
    ends = [0, 500, *range(2500, len(content), 2000), len(content)]
    assert calls == [
        ("get_object", f"bytes={start}-{min(start + (2000 if start else 500), max(stop, start + 1)) - 1}")
        for start, stop in itertools.pairwise(ends)
    ]


def test_an_empty_object_and_a_missing_one(s3):
    write("s3://bucket/empty", [])
    assert list(TFRecordDataset("s3://bucket/empty")) == []
    for path in ("s3://bucket/none", "s3://no-such-bucket/a"):
        with pytest.raises(FileNotFoundError) as caught:
            open_input(path)
        assert str(caught.value) == f"[Errno 2] No such file or directory: '{path}'"
        with pytest.raises(FileNotFoundError, match=r"list_files\(\): no file matches"):
            Dataset.list_files(path + "*")


@pytest.mark.parametrize("kind", [S3Object, objects.AsyncObject], ids=["as S3", "as any cloud"])
def test_an_object_that_was_replaced_is_data_loss(s3, kind, small_ranges, monkeypatch):
    """If the file system does not report the version of a range, the version is checked only after a failure."""
    monkeypatch.setattr(reading, "S3Object", kind)
    iterator = iter(TFRecordDataset(write("s3://bucket/a"), buffer_size=100))
    next(iterator)
    write("s3://bucket/a", RECORDS[::-1])
    numbers, call = [], s3._call_s3

    async def fails_once(method, *args, **kwargs):
        numbers.append(method)
        if len(numbers) == 1:
            raise ConnectionResetError
        return await call(method, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(s3, "_call_s3", fails_once)
        with pytest.raises(DataLossError, match="changed while it was read") as caught:
            list(iterator)
    assert caught.value.path == "s3://bucket/a"


def test_any_cloud_is_read_by_what_all_of_fsspec_can(s3, small_ranges, monkeypatch):
    monkeypatch.setattr(reading, "S3Object", objects.AsyncObject)
    assert list(TFRecordDataset(write("s3://bucket/a"))) == RECORDS
    write("s3://bucket/a", RECORDS[:3])
    assert list(TFRecordDataset("s3://bucket/a")) == RECORDS[:3]  # the listing may be outdated and is not trusted
    write("s3://bucket/a", [])
    assert list(TFRecordDataset("s3://bucket/a")) == []
    with pytest.raises(FileNotFoundError):
        open_input("s3://bucket/none")


@pytest.mark.parametrize("kind", [S3Object, objects.AsyncObject], ids=["as S3", "as any cloud"])
def test_a_failure_that_passes_is_not_seen(s3, kind, small_ranges, monkeypatch, waits):
    monkeypatch.setattr(reading, "S3Object", kind)
    write("s3://bucket/a")
    numbers, call = [], s3._call_s3

    async def flaky(method, *args, **kwargs):
        numbers.append(method)
        if len(numbers) % 3 == 0:
            raise ConnectionResetError
        return await call(method, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(s3, "_call_s3", flaky)
        assert list(TFRecordDataset("s3://bucket/a")) == RECORDS
    assert waits


def test_an_object_appears_when_it_is_committed(s3):
    with AtomicFile("s3://bucket/a") as target:
        target.file.write(b"abc")
        target.file.flush()
        assert s3.find("bucket") == []
    assert s3.cat_file("bucket/a") == b"abc"
    assert uploads(s3) == []


@pytest.mark.parametrize("before", [None, b"old"])
@pytest.mark.parametrize("size", [10, 6 << 20])
def test_an_upload_that_is_given_up_leaves_nothing(s3, size, before, monkeypatch):
    monkeypatch.setattr(writing, "PART_BYTES", 5 << 20)
    if before:
        s3.pipe_file("bucket/a", before)
    for end in ("raise", "discard", "drop"):
        target = AtomicFile("s3://bucket/a")
        target.file.write(bytes(size))
        target.file.flush()
        assert bool(uploads(s3)) == (size > 10)
        if end == "raise":
            with pytest.raises(KeyError), target:
                raise KeyError
        elif end == "discard":
            target.discard()
            target.discard()
        del target
        assert uploads(s3) == []
    s3.invalidate_cache()
    assert [s3.cat_file(name) for name in s3.find("bucket")] == [before] * bool(before)


def test_an_object_of_several_parts_comes_back(s3, monkeypatch):
    monkeypatch.setattr(writing, "PART_BYTES", 5 << 20)
    content = random.Random(1).randbytes(11 << 20)
    with AtomicFile("s3://bucket/a") as target:
        for start in range(0, len(content), 1 << 20):
            target.file.write(content[start : start + (1 << 20)])
    with open_input("s3://bucket/a") as file:
        assert file.read() == content


def test_a_commit_that_fails_raises_with_the_path_and_leaves_nothing(s3):
    writer = io.TFRecordWriter("s3://no-such-bucket/a")
    writer.write(b"one")
    with pytest.raises(FileNotFoundError, match="s3://no-such-bucket/a"):
        writer.close()
    writer.close()
