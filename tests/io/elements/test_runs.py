"""Tests of what element writers remove: only files that they have listed themselves."""

import os
import stat
from pathlib import Path

import numpy as np
import pytest

from dataset import DataLossError, Dataset, TFRecordDataset
from dataset.io.elements.metadata import Metadata
from dataset.io.elements.write_session import lock_path
from dataset.io.tfrecord.writer import TFRecordWriter
from support.folders import tree

HEX = "0123456789abcdef"
WRITERS = {
    "save": lambda path: Dataset.range(5).save(path),
    "cache": lambda path: list(Dataset.range(5).cache(path)),
}


SHARD = f"{HEX}/00000000.tfrecord"
LOCK = lock_path("", HEX).name
LISTED = {LOCK: "process 1\n"}
NOT_SHARDS = ["0000000.tfrecord", "00000000.tfrecord.bak", "a00000000.tfrecord", "00000000.TFRECORD", "\u0660" * 8]
NOT_SHARDS += ["00000000.tfrecord\n", "00000000-tfrecord", ".tfrecord", "-0000001.tfrecord", "metadata.json"]
MINE = {
    "a folder": {f"{HEX}/notes.txt": "precious"},
    "a folder that looks like a run": {SHARD: "precious"},
    "an empty folder": {HEX: None},
    "a file": {HEX: "precious"},
    "a folder and a file beside it without check digits": {SHARD: "precious", f"{HEX}.lock": "process 1\n"},
    "a folder and a file beside it with other check digits": {SHARD: "precious", f"{HEX}.01234567.lock": "process 1"},
    "a folder of other files, with a lock file": {f"{HEX}/notes.txt": "precious", **LISTED},
    "a folder of folders, with a lock file": {f"{SHARD}/a": "precious", **LISTED},
    "a link": {"x/00000000.tfrecord": "precious", HEX: Path("x")},
    "a link to a folder, with a lock file": {"x/00000000.tfrecord": "precious", HEX: Path("x"), **LISTED},
    "a folder of links, with a lock file": {"x": "precious", SHARD: Path("../x"), **LISTED},
    "a link for a lock file": {LOCK: Path("x")},
    **{name: {f"{HEX}/{name}": "precious", SHARD: "precious", **LISTED} for name in NOT_SHARDS},
}


def fill(folder, content):
    """Make files of text, links to paths, and folders for None."""
    for name, what in content.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if what is None:
            path.mkdir()
        elif isinstance(what, Path):
            path.symlink_to(what)
        else:
            path.write_text(what)


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("mine", [*MINE.values(), None], ids=[*MINE, "a snapshot"])
def test_what_no_writer_listed_is_not_removed(mine, kind, tmp_path):
    if mine is None:
        list(Dataset.range(3).map(lambda x: x + 1).snapshot(tmp_path))
    else:
        fill(tmp_path, mine)
    before = tree(tmp_path)
    for _ in range(2):
        WRITERS[kind](tmp_path)
    after = tree(tmp_path)
    assert {name: after.get(name) for name in before} == before
    assert list(Dataset.load(tmp_path)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("kind", WRITERS)
def test_what_a_dead_writer_listed_is_removed(kind, tmp_path):
    fill(tmp_path, dict.fromkeys((SHARD, f"{HEX}/00000001.tfrecord", f"{HEX}/123456789.tfrecord"), "") | LISTED)
    fill(
        tmp_path, {lock_path("", HEX[::-1]).name: "process 1\n"}
    )  # the second writer died before it created its folder
    fill(tmp_path, {lock_path("", f"{HEX[1:]}0").name: ""})  # the third, before it wrote its number
    WRITERS[kind](tmp_path)
    run = Metadata.read(tmp_path).run
    assert set(tree(tmp_path)) == {"metadata.json", run, f"{run}/00000000.tfrecord"}


def test_the_run_that_the_metadata_names_is_not_removed_though_it_is_listed(tmp_path):
    """The state after a writer was killed before the rename that replaces the file."""
    Dataset.range(5).save(tmp_path)
    run = Metadata.read(tmp_path).run
    lock_path(tmp_path, run).write_text("process 1\n")
    with pytest.raises(ValueError, match="bad"):
        Dataset.range(3).map(lambda x: int("bad")).save(tmp_path)
    assert list(Dataset.load(tmp_path)) == [0, 1, 2, 3, 4]
    assert set(tree(tmp_path)) == {"metadata.json", run, f"{run}/00000000.tfrecord"}


def test_what_the_user_puts_into_the_folder_of_a_run_stays(tmp_path):
    def write(x):
        (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
        (folder / "notes.txt").write_text("mine")
        raise ValueError("bad")

    with pytest.raises(ValueError, match="bad"):
        Dataset.range(3).map(write).save(tmp_path)
    assert [path.read_text() for path in tmp_path.rglob("notes.txt")] == ["mine"]


def test_a_shard_is_not_written_through_a_link(tmp_path):
    (tmp_path / "precious").write_text("precious")

    def link(x):
        (folder,) = (path for path in (tmp_path / "saved").iterdir() if path.is_dir())
        (folder / "00000000.tfrecord").symlink_to(tmp_path / "precious")
        return x

    with pytest.raises(OSError, match="00000000"):
        Dataset.range(1).map(link).save(tmp_path / "saved")
    assert (tmp_path / "precious").read_text() == "precious"


def modes(folder):
    """Return the modes of the folders and of the files in a folder."""
    found = set(), set()
    for path in folder.rglob("*"):
        found[path.is_file()].add(stat.S_IMODE(path.stat().st_mode))
    return found


def test_a_directory_that_was_made_private_stays_private(tmp_path):
    before = os.umask(0o022)
    try:
        Dataset.range(3).save(tmp_path)
        assert modes(tmp_path)[1] == {0o644}
        for path in tmp_path.rglob("*"):
            path.chmod(0o700 if path.is_dir() else 0o600)
        Dataset.range(4).save(tmp_path)
    finally:
        os.umask(before)
    assert modes(tmp_path) == ({0o700}, {0o600})


def shards_of(path):
    return sorted(path.rglob("*.tfrecord"))


def exchange(one, other):
    content = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(content)


def in_shards(start, path, compression=None):
    Dataset.range(start, start + 6).save(path, compression, shard_func=lambda x: x % 2)
    return shards_of(path)


@pytest.mark.parametrize("compression", [None, "GZIP"])
@pytest.mark.parametrize("case", ["within", "between", "in the same place"])
def test_a_shard_that_was_exchanged_is_noticed_before_its_first_element(case, compression, tmp_path):
    first, second = in_shards(0, tmp_path / "a", compression)
    other, _ = in_shards(10, tmp_path / "b", compression)
    exchange(*{"within": (first, second), "between": (second, other), "in the same place": (first, other)}[case])
    with pytest.raises(DataLossError, match=r"the file was exchanged with another shard, or comes from") as caught:
        list(Dataset.load(tmp_path / "a", reader_func=lambda shards: shards.shuffle(2, seed=1).flat_map(lambda x: x)))
    assert caught.value.path.startswith(str(tmp_path / "a"))
    assert caught.value.record == 0


def test_a_record_that_is_missing_or_there_twice_is_noticed(tmp_path):
    Dataset.range(40).map(lambda x: np.full((1 << 15,), x)).save(tmp_path)  # a record holds four
    (shard,) = shards_of(tmp_path)
    records = list(TFRecordDataset(shard))
    assert len(records) > 5
    for changed in ([*records[:2], *records[3:]], [*records[:2], *records[1:]], records[::-1]):
        with TFRecordWriter(shard) as writer:
            writer.write_all(changed)
        with pytest.raises(DataLossError, match="the file was exchanged"):
            list(Dataset.load(tmp_path))


def test_a_run_that_fails_after_the_metadata_names_it_stays(tmp_path, monkeypatch):
    write = Metadata.write

    def write_and_fail(self, path):
        write(self, path)
        raise MemoryError

    Dataset.range(5).save(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(Metadata, "write", write_and_fail)
        with pytest.raises(MemoryError):
            Dataset.range(7).save(tmp_path)
    assert [int(x) for x in Dataset.load(tmp_path)] == list(range(7))
    assert not list(tmp_path.glob("*.lock"))
