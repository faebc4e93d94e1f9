"""Tests of local files: all types of paths, and atomic writes."""

from __future__ import annotations

import errno
import gc
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from dataset.io.files.atomic import AtomicFile, _temporary_name, commit_together
from dataset.io.files.opening import open_input, path_string


class StopError(Exception):
    pass


def names_in(folder):
    return [path.name for path in folder.iterdir()]


@pytest.mark.parametrize("path", ["a/b", b"a/b", Path("a/b")])
def test_a_path_in_any_form_becomes_a_string(path):
    assert path_string(path) == "a/b"
    assert type(path_string(path)) is str


def test_a_pathlike_that_gives_bytes_becomes_a_string():
    class Odd(os.PathLike):
        def __fspath__(self):
            return b"a/b"

    assert path_string(Odd()) == "a/b"


@pytest.mark.parametrize("path", [None, 3, ["a"], bytearray(b"a")])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(TypeError, match=f"must be str, bytes or os.PathLike, got {type(path).__name__}"):
        path_string(path)


@pytest.mark.parametrize("path", ["", b"", "a\0b"])
def test_a_name_that_no_file_can_have_is_refused(path):
    with pytest.raises(ValueError, match="must not be empty or contain a null character"):
        path_string(path)


def test_reading_is_unbuffered(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    file = open_input(str(tmp_path / "a"))
    assert file.read(2) == b"ab"
    assert file.seekable()
    assert file.tell() == 2
    file.close()


def test_the_file_appears_when_it_is_committed(tmp_path):
    target = AtomicFile(tmp_path / "a")
    target.file.write(b"abc")
    assert not (tmp_path / "a").exists()
    assert not target.closed
    target.commit()
    target.commit()
    target.discard()
    assert target.closed
    assert names_in(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"abc"


def test_the_file_has_the_permissions_of_an_ordinary_new_file(tmp_path):
    (tmp_path / "plain").touch()
    with AtomicFile(tmp_path / "a"):
        pass
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


@pytest.mark.parametrize("before", [None, b"old"])
def test_an_exception_leaves_what_was_there(before, tmp_path):
    if before:
        (tmp_path / "a").write_bytes(before)
    with pytest.raises(StopError), AtomicFile(tmp_path / "a") as target:
        target.file.write(b"new")
        raise StopError
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [before] * bool(before)


def test_the_old_file_stays_until_the_new_one_is_whole(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    with AtomicFile(tmp_path / "a") as target:
        target.file.write(b"new")
        target.file.flush()
        assert (tmp_path / "a").read_bytes() == b"old"
    assert (tmp_path / "a").read_bytes() == b"new"


def test_an_abandoned_file_is_removed(tmp_path):
    target = AtomicFile(tmp_path / "a")
    target.file.write(b"abc")
    del target
    gc.collect()
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_commit_that_fails_leaves_nothing(step, tmp_path, monkeypatch):
    def fail(*args):
        raise OSError(errno.EIO, "the disk is gone")

    target = AtomicFile(tmp_path / "a")
    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="the disk is gone"):
        target.commit()
    assert target.closed
    assert names_in(tmp_path) == []


FORKED = """
import gc, os, sys
from dataset.io.files.atomic import AtomicFile
target = AtomicFile(sys.argv[1])
target.file.write(b"once")
if os.fork() == 0:
    {child}
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.wait()[1]) == {status}
target.file.write(b" and again")
target.commit()
"""


@pytest.mark.parametrize(
    ("child", "status"),
    [("", 0), ("del target; gc.collect()", 0), ("target.discard()", 0), ("target.commit()", 1)],
    ids=["exits", "collects it", "discards it", "commits it"],
)
def test_a_forked_child_leaves_the_file_to_its_parent(child, status, tmp_path):
    program = FORKED.format(child=child, status=status)
    done = subprocess.run([sys.executable, "-c", program, tmp_path / "a"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert ("only the process that opened this file can commit it" in done.stderr) == bool(status)
    assert names_in(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"once and again"


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
    assert (tmp_path / "a").read_bytes() == b"first"
    assert names_in(tmp_path) == ["a"]


def test_a_long_name_is_no_problem_for_the_temporary_one(tmp_path):
    with AtomicFile(tmp_path / ("n" * 250)):
        pass
    assert names_in(tmp_path) == ["n" * 250]


def test_a_missing_directory_is_named_with_the_way_out(tmp_path):
    path = tmp_path / "missing" / "a"
    with pytest.raises(FileNotFoundError) as caught:
        AtomicFile(path)
    assert f"the directory {str(path.parent)!r} does not exist; create it first" in str(caught.value)
    assert caught.value.filename == str(path)


def test_a_directory_that_is_a_file_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match=r"file' is not a directory"):
        AtomicFile(tmp_path / "file" / "a")


def test_a_directory_in_the_place_of_the_file_is_named(tmp_path):
    with pytest.raises(IsADirectoryError, match="this is a directory; give the name of a file"):
        AtomicFile(tmp_path)
    assert names_in(tmp_path) == []


def test_a_device_is_not_replaced():
    with pytest.raises(OSError, match="this is a device or a pipe"):
        AtomicFile(os.devnull)
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
    def fail(*args, **kwargs):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "open", fail)
    with pytest.raises(OSError, match=r"cannot write: Read-only file system, in the directory"):
        AtomicFile(tmp_path / "a")


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask():
    """Set an ordinary umask."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o755, 0o400])
def test_a_file_that_is_replaced_keeps_its_permissions(mode, umask, tmp_path):
    (tmp_path / "a").touch()
    (tmp_path / "a").chmod(mode)
    with AtomicFile(tmp_path / "a") as target:
        target.file.write(b"new")
        (temporary,) = (path for path in tmp_path.iterdir() if path.name != "a")
        assert mode_of(temporary) & ~mode & 0o077 == 0  # others may never read a file that they may not read in the end
    assert mode_of(tmp_path / "a") == mode
    assert (tmp_path / "a").read_bytes() == b"new"


def test_the_last_permissions_before_the_commit_count(umask, tmp_path):
    (tmp_path / "a").touch()
    with AtomicFile(tmp_path / "a"), AtomicFile(tmp_path / "b"):
        (tmp_path / "a").chmod(0o600)
        (tmp_path / "b").touch()
        (tmp_path / "b").chmod(0o600)
    assert mode_of(tmp_path / "a") == mode_of(tmp_path / "b") == 0o600


def test_bits_that_run_a_file_as_another_user_are_not_kept(tmp_path):
    (tmp_path / "a").touch()
    (tmp_path / "a").chmod(0o4755)
    with AtomicFile(tmp_path / "a"):
        pass
    assert mode_of(tmp_path / "a") == 0o755


@pytest.mark.parametrize(("mode", "expected"), [(0o600, 0o600), (0o640, 0o640), (0o666, 0o644), (0o777, 0o644)])
@pytest.mark.parametrize("before", [None, 0o644, 0o600])
def test_what_is_made_from_a_file_is_at_most_as_readable(mode, expected, before, umask, tmp_path):
    (tmp_path / "data").touch()
    (tmp_path / "data").chmod(mode)
    if before:
        (tmp_path / "a").touch()
        (tmp_path / "a").chmod(before)
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
    def refuse(*args):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    (tmp_path / "a").touch()
    (tmp_path / "a").chmod(0o640)
    real = os.fstat
    monkeypatch.setattr(os, "fchown", refuse)
    monkeypatch.setattr(os, "fstat", lambda d: os.stat_result([*real(d)[:5], real(d).st_gid + 1, *real(d)[6:]]))
    with AtomicFile(tmp_path / "a"):
        pass
    monkeypatch.undo()
    assert mode_of(tmp_path / "a") == 0o600


KILLED = """
import os, sys
from dataset.io.files.atomic import AtomicFile
target = AtomicFile(sys.argv[1])
target.file.write(b"x" * 1000000)
os._exit(9)
"""


def test_what_a_dead_process_left_is_removed_by_the_next_writer_of_any_file_there(tmp_path):
    subprocess.run([sys.executable, "-c", KILLED, tmp_path / "other"], check=False)
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


def contents(tmp_path):
    return {path.name: path.read_bytes() for path in tmp_path.iterdir()}


@pytest.mark.parametrize("old", ["", "abc", "bc"])
@pytest.mark.parametrize("step", ["prepare", "withdraw", "publish"])
@pytest.mark.parametrize("failing", [0, 1, 2])
def test_files_that_belong_together_are_all_new_or_all_old_or_without_the_first(old, step, failing, tmp_path):
    for name in old:
        (tmp_path / name).write_bytes(b"old")
    before = contents(tmp_path)
    files = committed(tmp_path)

    def fail():
        raise OSError(errno.EIO, "the disk is gone")

    setattr(files[failing]._target, step, fail)
    if step == "withdraw" and failing:  # only the first one is removed
        commit_together(files)
        assert contents(tmp_path) == dict.fromkeys("abc", b"new")
        return
    with pytest.raises(OSError, match="the disk is gone") as caught:
        commit_together(files)
    if step == "publish" and failing != 1:  # it is not the first one that is renamed
        assert "a" not in contents(tmp_path)
        assert f"{tmp_path / 'a'} is missing" in caught.value.__notes__[0]
    else:
        assert contents(tmp_path) == before
        assert not hasattr(caught.value, "__notes__")
    assert not any(name.startswith(".") for name in contents(tmp_path))


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
