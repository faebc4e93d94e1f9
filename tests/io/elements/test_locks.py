"""Tests of lock files: other files at their path are neither followed nor changed."""

import os
import stat

import pytest

from dataset import Dataset
from dataset.io.elements.locks import LockFile, holder_of


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.lock"


def test_a_symbolic_link_is_not_followed(path, tmp_path):
    target = tmp_path / "target"
    target.write_text("precious")
    for there in (target, tmp_path / "nowhere"):
        path.symlink_to(there)
        with pytest.raises(OSError, match="a symbolic link was found instead of a lock file and was not followed"):
            LockFile.take(str(path))
        assert holder_of(str(path)) == "a process"
        assert path.is_symlink()
        path.unlink()
    assert target.read_text() == "precious"
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("content", [b"precious", b"process x\n", b"process 1\nand more", b"\0" * 100])
def test_another_file_is_left_as_it_is(path, content):
    path.write_bytes(content)
    with pytest.raises(FileExistsError, match="another file was found instead of a lock file and was not changed"):
        LockFile.take(str(path))
    assert path.read_bytes() == content


def test_a_second_name_of_another_file_and_a_pipe_are_left_as_they_are(path, tmp_path):
    (tmp_path / "target").write_bytes(b"")
    os.link(tmp_path / "target", path)
    with pytest.raises(FileExistsError):
        LockFile.take(str(path))
    assert (tmp_path / "target").read_bytes() == b""
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(FileExistsError):
        LockFile.take(str(path))


@pytest.mark.parametrize("before", [None, b"", b"process 1\n", b"process 12345678901234567890\n"])
def test_the_file_is_private_says_who_holds_it_and_is_removed(path, before, monkeypatch):
    if before is not None:
        path.write_bytes(before)
    lock = LockFile.take(str(path))
    assert lock.was_marked == bool(before)
    if before is None:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text().split() == ["process", str(os.getpid())]
    assert LockFile.take(str(path)) is None
    lock.release(keep=True)
    assert holder_of(str(path)) == f"process {os.getpid()}"
    lock = LockFile.take(str(path), create=False)
    lock.release()
    assert not path.exists()


def test_a_file_that_was_put_in_its_place_is_not_removed(path):
    lock = LockFile.take(str(path))
    path.unlink()
    path.write_text("of the user")
    lock.release()
    assert path.read_text() == "of the user"


def test_a_cache_says_that_its_lock_is_a_link_and_leaves_what_the_link_names(tmp_path):
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "filling.lock").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match=r"symbolic link was found instead of a lock file.*filling\.lock"):
        list(Dataset.range(3).cache(tmp_path / "cache"))
    assert (tmp_path / "precious").read_text() == "precious"
