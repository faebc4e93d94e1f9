"""Tests of atomic writes of files: local ones, and those of file systems without multi-part uploads."""

from __future__ import annotations

import errno
import gc
from unittest.mock import Mock

import pytest

from dataset import io
from dataset.io.files.atomic import AtomicFile
from support.folders import tree


@pytest.fixture(params=["local", "memory"])
def place(request, memory, tmp_path):
    """Return the path of a file, its name, and a function that returns what is in its folder."""
    if request.param == "local":
        name = "n" * 250  # which is no problem for the temporary name
        return tmp_path / name, name, lambda: tree(tmp_path)
    name = "/bucket/a[1]*.bin"
    return f"memory:/{name}", name, lambda: {name: file.getvalue() for name, file in memory.store.items()}


@pytest.mark.parametrize("before", [None, b"old"])
@pytest.mark.parametrize("end", ["commit", "discard", "drop", "raise"])
def test_the_file_appears_when_it_is_committed_and_otherwise_what_was_there_stays(place, before, end):
    path, name, contents = place
    if before:
        io.write_file(path, before)
    target = AtomicFile(path)
    target.file.write(bytes(1 << 20))
    target.file.flush()
    assert contents().get(name) == before
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
    assert contents() == ({name: after} if after else {})


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
