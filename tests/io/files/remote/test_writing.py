"""Tests of atomic writes of remote files, on file systems without multi-part uploads."""

from __future__ import annotations

import errno
import gc

import pytest

from dataset import TFRecordDataset, io
from dataset.io.files.atomic import AtomicFile


class StopError(Exception):
    pass


def test_the_file_appears_when_it_is_committed(memory):
    target = AtomicFile("memory://bucket/a[1]*.bin")
    target.file.write(b"abc")
    target.file.flush()
    assert not memory.exists("/bucket/a[1]*.bin")
    target.commit()
    target.commit()
    target.discard()
    assert target.closed
    assert {name: file.getvalue() for name, file in memory.store.items()} == {"/bucket/a[1]*.bin": b"abc"}


@pytest.mark.parametrize("before", [None, b"old"])
@pytest.mark.parametrize("end", ["raise", "discard", "drop"])
def test_what_is_given_up_leaves_what_was_there(memory, before, end):
    if before:
        memory.pipe_file("/a", before)
    target = AtomicFile("memory://a")
    target.file.write(bytes(1 << 20))
    if end == "raise":
        with pytest.raises(StopError), target:
            raise StopError
    elif end == "discard":
        target.discard()
    del target
    gc.collect()
    assert [file.getvalue() for file in memory.store.values()] == [before] * bool(before)


def test_the_old_file_stays_until_the_new_one_is_whole(memory):
    memory.pipe_file("/a", b"old")
    with AtomicFile("memory://a") as target:
        target.file.write(b"new")
        target.file.flush()
        assert memory.cat_file("/a") == b"old"
    assert memory.cat_file("/a") == b"new"


@pytest.mark.parametrize("kind", [None, "GZIP"])
def test_records_are_written(memory, kind):
    records = [bytes(range(i % 256)) for i in range(1000)]
    with io.TFRecordWriter("memory://bucket/a", kind) as writer:
        for record in records:
            writer.write(record)
        writer.flush()
        assert not memory.exists("/bucket/a")
    assert list(TFRecordDataset("memory://bucket/a", kind)) == records


def test_a_move_that_fails_leaves_nothing(memory, monkeypatch):
    def fail(*args, **kwargs):
        raise OSError(errno.EIO, "the cable is out")

    monkeypatch.setattr(memory, "cp_file", fail)
    target = AtomicFile("memory://a")
    target.file.write(b"abc")
    with pytest.raises(OSError, match="the cable is out: 'memory://a'"):
        target.commit()
    assert target.closed
    assert memory.store == {}


def test_a_write_that_fails_names_the_path(memory, monkeypatch):
    target = AtomicFile("memory://a")

    def fail(data):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(target._target._upload.sink, "write", fail)
    target.file.write(b"abc")
    with pytest.raises(OSError, match="full: 'memory://a'"):
        target.file.flush()
    target.discard()
    assert memory.store == {}


@pytest.mark.parametrize(
    "path", ["http://127.0.0.1/a", "https://host/a", "zip://a::memory://b", "simplecache::s3://a/b"]
)
def test_what_can_only_be_read_is_refused_at_once(path):
    with pytest.raises(OSError, match="paths of this kind are read-only; write to a local file") as caught:
        io.TFRecordWriter(path)
    assert caught.value.errno == errno.EROFS
