"""checkpoint.save: the old file or the new one, whatever happens; and restore goes on there."""

import fcntl
import os
import pathlib

import pytest

from dataset import Dataset, StateError, checkpoint
from dataset.io.files.atomic import AtomicFile, _temporary_name
from support.folders import names_in
from support.states import Holder


def opened_as(descriptor):
    """The path of an open file."""
    return pathlib.Path(f"/proc/self/fd/{descriptor}").readlink()


def pipeline():
    return Dataset.range(100).shuffle(20).map(lambda x: x * 2).repeat(2).batch(8)


@pytest.mark.parametrize("kind", [str, pathlib.Path, os.fsencode], ids=["str", "path", "bytes"])
def test_an_iterator_resumes_where_it_was_saved(tmp_path, kind):
    path = kind(str(tmp_path / "train.state"))
    iterator = iter(pipeline())
    for _ in range(7):
        next(iterator)
    checkpoint.save(path, iterator)
    rest = [batch.tolist() for batch in iterator]
    for _ in range(2):
        resumed = iter(pipeline())
        checkpoint.restore(path, resumed)
        assert [batch.tolist() for batch in resumed] == rest
    assert names_in(tmp_path) == ["train.state"]


def test_a_file_that_another_writer_has_open_is_not_removed(tmp_path):
    with AtomicFile(tmp_path / "a.state") as other:
        other.file.write(b"x")
        checkpoint.save(tmp_path / "a.state", iter(Dataset.range(3)))
        assert len(names_in(tmp_path)) == 2
    assert (tmp_path / "a.state").read_bytes() == b"x"


def test_a_new_file_that_another_process_removes_is_made_again(tmp_path, monkeypatch):
    taken, real = [], fcntl.flock

    def flock(descriptor, how):
        if not taken:  # somebody else is faster
            taken.append(opened_as(descriptor))
            taken[0].unlink()
        real(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    with AtomicFile(tmp_path / "a.bin") as target:
        target.file.write(b"abc")
    assert taken
    assert (tmp_path / "a.bin").read_bytes() == b"abc"
    assert names_in(tmp_path) == ["a.bin"]


def test_a_file_system_without_locks_is_written_to(tmp_path, monkeypatch):
    def flock(descriptor, how):
        raise OSError(95, "not supported")

    monkeypatch.setattr(fcntl, "flock", flock)
    (tmp_path / _temporary_name("a.state")).touch()
    checkpoint.save(tmp_path / "a.state", Holder(3))
    assert len(names_in(tmp_path)) == 2  # nobody can tell whether it is abandoned


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
@pytest.mark.parametrize("kind", ["iterator", pytest.param("loader", marks=pytest.mark.explore)])  # needs torchdata
def test_an_iterator_over_tensors_and_a_loader_of_torchdata_are_saved(tmp_path, kind):
    def new():
        tensors = Dataset.range(40).shuffle(40, seed=1).batch(4).to_torch()
        if kind == "iterator":
            return iter(tensors)
        from torchdata.stateful_dataloader import StatefulDataLoader

        return StatefulDataLoader(tensors, batch_size=None, num_workers=0)

    saved, resumed = new(), new()
    iterator = iter(saved)
    for _ in range(3):
        next(iterator)
    checkpoint.save(tmp_path / "a.state", saved)
    checkpoint.restore(tmp_path / "a.state", resumed)
    assert [batch.tolist() for batch in resumed] == [batch.tolist() for batch in iterator]
    assert "range(40)" in checkpoint.describe(tmp_path / "a.state")


def test_a_refused_file_leaves_the_iterator_where_it_was(tmp_path):
    path = tmp_path / "a.state"
    checkpoint.save(path, iter(Dataset.range(5)))
    iterator = iter(Dataset.range(6))
    next(iterator)
    for content in (path.read_bytes(), path.read_bytes()[:50], b""):
        path.write_bytes(content)
        with pytest.raises(StateError):
            checkpoint.restore(path, iterator)
    assert [int(x) for x in iterator] == [1, 2, 3, 4, 5]
