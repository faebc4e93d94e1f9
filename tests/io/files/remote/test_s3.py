"""Tests of S3 with a moto server: listing, reading, writing, and cleanup after aborted uploads."""

from __future__ import annotations

import random

import pytest

from dataset import DataLossError, Dataset, TFRecordDataset, io
from dataset.io.files.atomic import AtomicFile
from dataset.io.files.opening import open_input
from dataset.io.files.remote import objects, reading, writing
from dataset.io.files.remote.s3 import S3Object
from support.states import rest_of, state_after
from support.tfrecord_files import frames

pytestmark = pytest.mark.explore  # it needs s3fs and moto

RECORDS = [random.Random(i).randbytes(i * 10) for i in range(60)]
CONTENT = frames(RECORDS)


@pytest.fixture(params=[S3Object, objects.AsyncObject], ids=["as S3", "as any cloud"])
def kind(request, monkeypatch):
    monkeypatch.setattr(reading, "S3Object", request.param)


def fail_once(s3, monkeypatch):
    """Let the next call of the S3 client fail."""
    call, failures = s3._call_s3, [ConnectionResetError]

    async def failing(*args, **kwargs):
        if failures:
            raise failures.pop()
        return await call(*args, **kwargs)

    monkeypatch.setattr(s3, "_call_s3", failing)


def uploads(s3):
    return s3.call_s3("list_multipart_uploads", Bucket="bucket").get("Uploads", [])


@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_what_was_written_is_listed_and_read(s3, compression, small_ranges):
    for name in "ba":
        with io.TFRecordWriter(f"s3://bucket/data/{name}.tfrecord", compression) as writer:
            writer.write_all(RECORDS)
    files = Dataset.list_files("s3://bucket/data/*.tfrecord", shuffle=False)
    assert list(files) == [b"s3://bucket/data/a.tfrecord", b"s3://bucket/data/b.tfrecord"]
    assert list(TFRecordDataset(files, compression)) == RECORDS * 2
    make = lambda: TFRecordDataset(files, compression, buffer_size=100).skip(90)
    assert rest_of(make(), state_after(make(), 20)) == RECORDS[50:]


def test_an_object_that_was_replaced_is_data_loss(s3, kind, small_ranges, monkeypatch):
    """If the file system does not report the version of a range, the version is checked only after a failure."""
    s3.pipe_file("bucket/a", CONTENT)
    iterator = iter(TFRecordDataset("s3://bucket/a", buffer_size=100))
    next(iterator)
    s3.pipe_file("bucket/a", frames(RECORDS[::-1]))
    with monkeypatch.context() as patch:
        fail_once(s3, patch)
        with pytest.raises(DataLossError, match="changed while it was read") as caught:
            list(iterator)
    assert caught.value.path == "s3://bucket/a"
    s3.pipe_file("bucket/a", frames(RECORDS[:3]))
    assert list(TFRecordDataset("s3://bucket/a")) == RECORDS[:3]  # the listing may be outdated and is not trusted


def test_several_ranges_at_a_time_give_the_same_bytes(s3, kind, small_ranges, monkeypatch):
    s3.pipe_file("bucket/a", CONTENT)
    fail_once(s3, monkeypatch)
    dataset = TFRecordDataset("s3://bucket/a", index=True, buffer_size=500)
    assert list(dataset) == RECORDS
    assert sorted(dataset.shuffle(None, seed=1)) == sorted(RECORDS)


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


@pytest.mark.parametrize("size", [10, 11 << 20])
def test_an_object_of_one_or_several_parts_appears_when_it_is_committed(s3, size, monkeypatch):
    monkeypatch.setattr(writing, "PART_BYTES", 5 << 20)
    content = random.Random(1).randbytes(size)
    with AtomicFile("s3://bucket/a") as target:
        for start in range(0, len(content), 1 << 20):
            target.file.write(content[start : start + (1 << 20)])
        target.file.flush()
        assert s3.find("bucket") == []
    s3.invalidate_cache()
    with open_input("s3://bucket/a") as file:
        assert file.read() == content
    assert uploads(s3) == []
