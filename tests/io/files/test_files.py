"""Tests of local files: what is no path, and atomic writes."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from pathlib import Path
from unittest.mock import Mock

import pytest

from dataset import Dataset
from dataset.io.files import atomic
from dataset.io.files.atomic import AtomicFile, _temporary_name, commit_together, write_file
from dataset.io.files.opening import path_string
from support.folders import names_in, tree
from support.process_helpers import run_code


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def make(path, mode):
    path.touch()
    path.chmod(mode)


@pytest.fixture
def umask():
    """Set an ordinary umask."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.parametrize(
    ("path", "kind", "words"),
    [
        *((path, ValueError, "must not be empty or contain a null character") for path in ("", b"", "a\0b")),
        *((path, TypeError, "must be str, bytes or os.PathLike, got ") for path in (None, 3, ["a"], bytearray(b"a"))),
    ],
)
def test_what_is_no_path_is_refused(path, kind, words):
    with pytest.raises(kind, match=words + type(path).__name__ * (kind is TypeError)):
        path_string(path)


FORKED = """
import gc, os, sys
from dataset.io.files.atomic import AtomicFile
target = AtomicFile(sys.argv[1])
target.file.write(b"once")
for end, status in (("", 0), ("collect", 0), ("discard", 0), ("commit", 1)):
    if os.fork() == 0:
        if end == "collect":
            del target
            gc.collect()
        elif end:
            getattr(target, end)()
        sys.exit(0)
    assert os.waitstatus_to_exitcode(os.wait()[1]) == status, end
target.file.write(b" and again")
target.commit()
"""


def test_a_forked_child_leaves_the_file_to_its_parent(tmp_path):
    done = run_code(FORKED, tmp_path / "a")
    assert "only the process that opened this file can commit it" in done.stderr
    assert tree(tmp_path) == {"a": b"once and again"}


def test_a_link_is_followed_and_kept(tmp_path):
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with AtomicFile(tmp_path / "link") as target:
        target.file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"


def test_two_writers_of_one_name_do_not_mix(tmp_path):
    with AtomicFile(tmp_path / "a") as first, AtomicFile(tmp_path / "a") as second:
        first.file.write(b"first")
        second.file.write(b"second")
    assert tree(tmp_path) == {"a": b"first"}


@pytest.mark.parametrize(
    ("path", "kind", "words"),
    [
        ("missing/a", FileNotFoundError, r"the directory '.*/missing' does not exist; create it first"),
        ("file/a", NotADirectoryError, "file' is not a directory"),
        (".", IsADirectoryError, "this is a directory; give the name of a file"),
        (os.devnull, OSError, "this is a device or a pipe"),
    ],
)
def test_where_no_file_can_be_the_reason_is_named_with_the_way_out(path, kind, words, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(kind, match=words) as caught:
        AtomicFile(tmp_path / path)
    assert caught.value.filename == str(tmp_path / path)
    assert names_in(tmp_path) == ["file"]
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


@pytest.fixture
def unprivileged():
    """Run with the rights of an ordinary user: permission bits do not restrict root, which many test machines use."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_directory_without_write_permission_is_named_with_the_way_out(unprivileged):
    """Create a folder here, because pytest's folders are not accessible to other users."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a")
        with AtomicFile(path):
            pass  # otherwise the user may write here
        path.parent.chmod(0o500)
        try:
            with pytest.raises(PermissionError) as caught:
                AtomicFile(path.with_name("b"))
            assert names_in(path.parent) == ["a"]
        finally:
            path.parent.chmod(0o700)
    assert f"no permission to create files in {folder!r}; choose another directory" in str(caught.value)
    assert caught.value.filename == str(path.with_name("b"))


def test_another_failure_keeps_its_words(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "open", Mock(side_effect=OSError(errno.EROFS, "Read-only file system")))
    with pytest.raises(OSError, match=r"cannot write: Read-only file system, in the directory"):
        AtomicFile(tmp_path / "a")


@pytest.mark.parametrize(
    ("mode", "expected"), [*((mode, mode) for mode in (0o600, 0o640, 0o664, 0o755, 0o400)), (0o4755, 0o755)]
)
def test_a_file_that_is_replaced_keeps_its_permissions_but_runs_as_nobody_else(mode, expected, umask, tmp_path):
    make(tmp_path / "a", mode)
    with AtomicFile(tmp_path / "a") as target:
        target.file.write(b"new")
        (temporary,) = (path for path in tmp_path.iterdir() if path.name != "a")
        assert mode_of(temporary) & ~mode & 0o077 == 0  # others may never read a file that they may not read in the end
    assert mode_of(tmp_path / "a") == expected
    assert (tmp_path / "a").read_bytes() == b"new"


def test_the_last_permissions_before_the_commit_count(umask, tmp_path):
    make(tmp_path / "a", 0o644)
    with AtomicFile(tmp_path / "a"), AtomicFile(tmp_path / "b"), AtomicFile(tmp_path / "c"):
        make(tmp_path / "a", 0o600)
        make(tmp_path / "b", 0o600)
    assert [mode_of(tmp_path / name) for name in "abc"] == [0o600, 0o600, 0o644]


@pytest.mark.parametrize(("mode", "expected"), [(0o600, 0o600), (0o640, 0o640), (0o666, 0o644), (0o777, 0o644)])
@pytest.mark.parametrize("before", [None, 0o644, 0o600])
def test_what_is_made_from_a_file_is_at_most_as_readable(mode, expected, before, umask, tmp_path):
    make(tmp_path / "data", mode)
    if before:
        make(tmp_path / "a", before)
    with AtomicFile(tmp_path / "a", like=str(tmp_path / "data")):
        pass
    assert mode_of(tmp_path / "a") == expected & (before or 0o777)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_that_root_replaces_keeps_its_owner(tmp_path):
    (tmp_path / "a").touch()
    os.chown(tmp_path / "a", 1234, 4321)
    with AtomicFile(tmp_path / "a"), AtomicFile(tmp_path / "b", like=str(tmp_path / "a")):
        pass
    for name in "ab":
        assert ((tmp_path / name).stat().st_uid, (tmp_path / name).stat().st_gid) == (1234, 4321)


def test_where_the_group_cannot_be_kept_the_new_one_gets_no_rights(umask, tmp_path, monkeypatch):
    make(tmp_path / "a", 0o640)
    real = os.fstat
    with monkeypatch.context() as patch:
        patch.setattr(os, "fchown", Mock(side_effect=PermissionError(errno.EPERM, "Operation not permitted")))
        patch.setattr(os, "fstat", lambda d: os.stat_result([*real(d)[:5], real(d).st_gid + 1, *real(d)[6:]]))
        with AtomicFile(tmp_path / "a"):
            pass
    assert mode_of(tmp_path / "a") == 0o600


KILLED = """
import os, sys
from dataset.io.files.atomic import AtomicFile
target = AtomicFile(sys.argv[1])
target.file.write(b"x" * 1000000)
os._exit(9)
"""


def test_what_a_dead_process_left_is_removed_by_the_next_writer_of_any_file_there(tmp_path):
    run_code(KILLED, tmp_path / "other", check=False)
    (left,) = names_in(tmp_path)
    mine = [".a.0123456789abcdef.tmp", ".a.0123456789abcdef01234567.tmp", f".b{left[6:]}", left[1:], f"{left}.tmp"]
    for name in mine:
        (tmp_path / name).write_bytes(b"of the user")
    (tmp_path / _temporary_name("link")).symlink_to(tmp_path / mine[0])
    (tmp_path / _temporary_name("folder")).mkdir()
    os.mkfifo(tmp_path / _temporary_name("pipe"))
    before = set(names_in(tmp_path))
    with AtomicFile(tmp_path / "living") as living:
        living.file.write(b"whole")
        with AtomicFile(tmp_path / "a"):
            pass
    assert set(names_in(tmp_path)) == before - {left} | {"a", "living"}
    assert (tmp_path / "living").read_bytes() == b"whole"


def committed(tmp_path, names="abc"):
    files = [AtomicFile(tmp_path / name) for name in names]
    for file in files:
        file.file.write(b"new")
    return files


def test_the_parents_of_new_directories_are_written_through(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(atomic, "sync_directory", synced.append)
    (tmp_path / "a").mkdir()
    write_file(tmp_path / "a/b/c/d", b"")
    assert synced == [str(tmp_path / "a" / place) for place in ("b", ".", "b/c")]
    Dataset.range(2).save(tmp_path / "e")
    list(Dataset.range(2).cache(tmp_path / "f"))
    assert synced.count(str(tmp_path)) == 2


def test_all_files_are_written_through_before_the_first_is_renamed_and_each_directory_once(tmp_path, monkeypatch):
    calls = []

    def noted(name):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *args: (calls.append(name), real(*args))[1])

    (tmp_path / "folder").mkdir()
    files = [*committed(tmp_path), *committed(tmp_path / "folder", "d")]
    noted("fsync")
    noted("replace")
    commit_together(files)
    assert calls == ["fsync"] * 4 + ["replace"] * 5 + ["fsync"] * 2
    assert sorted(names_in(tmp_path)) == ["a", "b", "c", "folder"]
