"""Tests of atomic writes of remote files, on file systems without multi-part uploads."""

from __future__ import annotations

import errno
import gc
from unittest.mock import Mock

import pytest

from dataset import TFRecordDataset, io
from dataset.io.files.atomic import AtomicFile


@pytest.mark.parametrize("before", [None, b"old"])
@pytest.mark.parametrize("end", ["commit", "discard", "drop", "raise"])
def test_the_file_appears_when_it_is_committed_and_otherwise_what_was_there_stays(memory, before, end):
    name = "/bucket/a[1]*.bin"
    if before:
        memory.pipe_file(name, before)
    target = AtomicFile(f"memory:/{name}")
    target.file.write(bytes(1 << 20))
    target.file.flush()
    assert (memory.cat_file(name) if memory.exists(name) else None) == before
    if end == "raise":
        with pytest.raises(ZeroDivisionError), target:
            raise ZeroDivisionError
    elif end != "drop":
        getattr(target, end)()
        getattr(target, end)()
        target.discard()
        assert target.closed
    del target
    gc.collect()
    after = bytes(1 << 20) if end == "commit" else before
    assert {name: file.getvalue() for name, file in memory.store.items()} == ({name: after} if after else {})


@pytest.mark.parametrize("kind", [None, "GZIP"])
def test_records_are_written(memory, kind):
    records = [bytes(range(i % 256)) for i in range(1000)]
    with io.TFRecordWriter("memory://bucket/a", kind) as writer:
        writer.write_all(records)
        writer.flush()
        assert not memory.exists("/bucket/a")
    assert list(TFRecordDataset("memory://bucket/a", kind)) == records


def test_a_move_that_fails_leaves_nothing(memory, monkeypatch):
    monkeypatch.setattr(memory, "cp_file", Mock(side_effect=OSError(errno.EIO, "the cable is out")))
    target = AtomicFile("memory://a")
    target.file.write(b"abc")
    with pytest.raises(OSError, match="the cable is out: 'memory://a'"):
        target.commit()
    assert target.closed
    assert memory.store == {}


def test_a_write_that_fails_names_the_path(memory, monkeypatch):
    target = AtomicFile("memory://a")
    monkeypatch.setattr(target._target._upload.sink, "write", Mock(side_effect=OSError(errno.ENOSPC, "full")))
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
