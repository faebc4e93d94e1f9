"""Tests of lock files: other files at their path are neither followed nor changed."""

import os
import stat

import pytest

from dataset.io.files.locks import LockFile, holder_of


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.lock"


def test_a_symbolic_link_is_not_followed(path, tmp_path):
    target = tmp_path / "target"
    target.write_text("precious")
    for there in (target, tmp_path / "nowhere"):
        path.symlink_to(there)
        with pytest.raises(OSError, match="symbolic links"):
            LockFile(path, create=True)
        assert holder_of(path) == "another process"
        assert path.is_symlink()
        path.unlink()
    assert target.read_text() == "precious"
    assert not (tmp_path / "nowhere").exists()


def test_another_file_is_not_overwritten(path):
    path.write_bytes(b"precious")
    lock = LockFile(path, create=True)
    assert holder_of(path) == "another process"
    lock.release(keep=True)
    assert path.read_bytes() == b"precious"


def test_a_second_name_of_another_file_a_folder_and_a_pipe_are_left_as_they_are(path, tmp_path):
    (tmp_path / "target").write_bytes(b"")
    os.link(tmp_path / "target", path)
    with pytest.raises(BlockingIOError):
        LockFile(path, create=True)
    assert (tmp_path / "target").read_bytes() == b""
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(BlockingIOError):
        LockFile(path, create=True)
    assert holder_of(path) == "another process"
    assert path.is_fifo()
    path.unlink()
    path.mkdir()
    with pytest.raises(IsADirectoryError):
        LockFile(path, create=True)


@pytest.mark.parametrize("before", [None, b"", b"process 12345678901234567890\n"])
def test_the_file_is_private_says_who_holds_it_and_is_removed(path, before):
    if before is not None:
        path.write_bytes(before)
    lock = LockFile(path, create=True)
    if before is None:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert holder_of(path) == (before.decode().strip() if before else "another iterator of this process")
    with pytest.raises(BlockingIOError, match="another process holds"):
        LockFile(path, create=True)
    lock.release(keep=True)
    lock.release()
    lock = LockFile(path, create=False)
    lock.release()
    assert not path.exists()
    with pytest.raises(FileNotFoundError):
        LockFile(path, create=False)


def test_a_file_that_was_put_in_its_place_is_not_removed(path):
    lock = LockFile(path, create=True)
    path.unlink()
    path.write_text("of the user")
    lock.release()
    assert path.read_text() == "of the user"
