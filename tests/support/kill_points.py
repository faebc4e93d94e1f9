"""Kill points: kills a writer at each of its steps in turn. test_kill_points.py runs this module as a program.

A step is a call that changes the disk. For k = 0, 1, 2, ... a forked child writes and kills itself with SIGKILL before
its step k, until a child finishes. After each child, ``check_killed`` checks the folder. Then another child writes the
same without being killed, and ``check_whole`` checks the result. The program prints the number of steps.

    python kill_points.py KIND FOLDER
"""

import json
import os
import shutil
import signal
import sys
from pathlib import Path

import numpy as np

from dataset import Dataset, checkpoint, io
from dataset.io.files.atomic import AtomicFile

STEPS = ("open", "replace", "rename", "fsync", "unlink", "mkdir", "rmdir", "truncate", "ftruncate", "write", "fchmod")


def arm(kill_at):
    """Make the process kill itself before a step; return the list of its steps so far."""
    steps = []

    def before(name, real):
        def step(*arguments, **keywords):
            if len(steps) == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            steps.append(name)
            return real(*arguments, **keywords)

        return step

    for name in STEPS:
        setattr(os, name, before(name, getattr(os, name)))
    return steps


def in_child(function, kill_at=-1):
    """Return whether the child finished; its steps are written to a pipe."""
    child = os.fork()
    if not child:
        try:
            arm(kill_at)
            function()
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(3)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in {0, -signal.SIGKILL}, status
    return status == 0


def files_in(folder):
    return {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if path.is_file()}


def records_of(path):
    with io.TFRecordIndex.build(path) as index:
        return list(index)


class Shards:
    """``write_tfrecord`` over an existing set of the same names."""

    def __init__(self, folder):
        self.folder = folder
        self.names = [f"a-{shard}-of-3" for shard in range(3)]

    def _write(self, word):
        records = [b"%s %d" % (word, i) for i in range(30)]
        Dataset.from_tensor_slices(records).write_tfrecord(self.folder / "a-{shard}-of-{num_shards}", 3)

    def prepare(self):
        self._write(b"old")

    def write(self):
        self._write(b"new")

    def found(self):
        """Return the word in each shard that exists under its final name; each is complete."""
        words = {}
        for shard, name in enumerate(self.names):
            if (self.folder / name).exists():
                records = records_of(self.folder / name)
                (word,) = {record.split()[0] for record in records}
                assert records == [b"%s %d" % (word, i) for i in range(shard, 30, 3)]
                words[shard] = word
        return words

    def check_killed(self):
        words = self.found()
        if len(words) == 3:  # a set that looks complete is old or new
            assert len(set(words.values())) == 1, words
        else:
            assert set(words) == {1, 2}, words

    def check_whole(self):
        assert self.found() == dict.fromkeys(range(3), b"new")
        assert sorted(files_in(self.folder)) == self.names


class NewShards(Shards):
    """``write_tfrecord`` without existing files."""

    def prepare(self):
        pass

    def check_killed(self):
        assert sorted(self.found()) in [[], [1], [1, 2], [0, 1, 2]]


class Elements:
    """``save`` over an earlier save."""

    def __init__(self, folder):
        self.folder = folder / "saved"

    def _make(self, factor):
        return Dataset.range(9).map(lambda x: np.full(1 << 14, x * factor))

    def _save(self, factor):
        self._make(factor).save(self.folder, shard_func=lambda x: x[1] % 3)

    def prepare(self):
        self._save(1)

    def write(self):
        self._save(2)

    def _found(self):
        return sorted(int(x[0]) for x in Dataset.load(self.folder))

    def check_killed(self):
        assert self._found() in [list(range(9)), list(range(0, 18, 2))]

    def check_whole(self):
        assert self._found() == list(range(0, 18, 2))
        self._check_folder(3)

    def _check_folder(self, shards):
        names = [name.rpartition("/")[2] for name in files_in(self.folder)]
        assert sorted(names) == [*(f"{shard:08d}.tfrecord" for shard in range(shards)), "metadata.json"], names
        assert sum(path.is_dir() for path in self.folder.rglob("*")) == 1 + (self.folder.name == "snapshots")


class Resumed(Elements):
    """``save`` with checkpoints, over an earlier save."""

    def write(self):
        arguments = {"directory": self.folder.parent / "checkpoints", "max_to_keep": 1, "checkpoint_interval": 4}
        self._make(2).save(self.folder, shard_func=lambda x: x[1] % 3, checkpoint_args=arguments)

    def check_whole(self):
        super().check_whole()
        assert files_in(self.folder.parent / "checkpoints") == {}


class Cache(Elements):
    """``cache(filename)`` without existing files."""

    def prepare(self):
        pass

    def write(self):
        assert len(list(self._make(2).cache(self.folder))) == 9

    def check_killed(self):
        if (self.folder / "metadata.json").exists():
            assert self._found() == list(range(0, 18, 2))

    def check_whole(self):
        assert self._found() == list(range(0, 18, 2))
        self._check_folder(1)


class Rebuilt(Cache):
    """``cache(filename)`` over the cache of another pipeline."""

    def prepare(self):
        list(self._make(1).cache(self.folder))

    def write(self):
        assert len(list(self._make(2).cache(self.folder, on_mismatch="rebuild"))) == 9

    def check_killed(self):
        assert self._found() in [list(range(9)), list(range(0, 18, 2))]


class Snapshot(Cache):
    """``snapshot`` without existing files."""

    def __init__(self, folder):
        self.folder = folder / "snapshots"

    def write(self):
        assert len(list(self._make(2).snapshot(self.folder))) == 9

    def check_killed(self):
        pass

    def check_whole(self):
        self._check_folder(4)


class State:
    """``checkpoint.save`` over an earlier state."""

    def __init__(self, folder):
        self.folder = folder

    def _save(self, taken):
        iterator = iter(Dataset.range(9))
        for _ in range(taken):
            next(iterator)
        checkpoint.save(self.folder / "a.state", iterator)

    def prepare(self):
        self._save(3)

    def write(self):
        self._save(5)

    def _found(self):
        iterator = iter(Dataset.range(9))
        checkpoint.restore(self.folder / "a.state", iterator)
        return int(next(iterator))

    def check_killed(self):
        assert self._found() in {3, 5}

    def check_whole(self):
        assert self._found() == 5
        assert list(files_in(self.folder)) == ["a.state"]


class Index:
    """The index of a TFRecord file."""

    def __init__(self, folder):
        self.folder = folder

    def prepare(self):
        with io.TFRecordWriter(self.folder / "a") as writer:
            writer.write_all([b"one", b"two"])

    def write(self):
        with io.TFRecordIndex.open(self.folder / "a") as index:
            index.save()

    def check_killed(self):
        with io.TFRecordIndex.build(self.folder / "a") as index:
            assert list(index) == [b"one", b"two"]

    def check_whole(self):
        assert list(files_in(self.folder)) == ["a", "a.index"]


class Unclosed:
    """A TFRecordWriter that is not closed, in a process that is killed before it exits."""

    def __init__(self, folder):
        self.folder = folder

    def prepare(self):
        with io.TFRecordWriter(self.folder / "a") as writer:
            writer.write(b"old")

    def write(self):
        writer = io.TFRecordWriter(self.folder / "a")
        writer.write(b"new")
        del writer

    def check_killed(self):
        assert records_of(self.folder / "a") in [[b"old"], [b"new"]]

    def check_whole(self):
        assert records_of(self.folder / "a") == [b"new"]
        assert list(files_in(self.folder)) == ["a"]


KINDS = {
    kind.__name__: kind
    for kind in (Shards, NewShards, Elements, Resumed, Cache, Rebuilt, Snapshot, State, Index, Unclosed)
}


def main():
    kind, folder = KINDS[sys.argv[1]], Path(sys.argv[2])
    kill_at, ended = 0, False
    while not ended:
        place = folder / str(kill_at)
        place.mkdir()
        case = kind(place)
        case.prepare()
        ended = in_child(case.write, kill_at)
        case.check_killed()
        assert in_child(case.write)
        case.check_whole()
        shutil.rmtree(place)
        kill_at += 1
    with AtomicFile(folder / "steps.json") as target:
        target.file.write(json.dumps(kill_at - 1).encode())


if __name__ == "__main__":
    main()
