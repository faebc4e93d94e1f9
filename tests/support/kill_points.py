"""Kill points: kills a writer at each of its steps in turn. test_kill_points.py runs this module as a program.

A step is a call that changes the disk. For k = 0, 1, 2, ... a forked child writes and kills itself with SIGKILL before
its step k, until a child finishes. After each child, the folder holds the old or the new content. Then another child
writes the same without being killed: the folder holds the new content, and nothing else. The program writes the number
of steps to a file.

    python kill_points.py KIND FOLDER
"""

import itertools
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

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


OLD, NEW = 1, 2
"""The contents: all that is written depends on one of these numbers."""


@dataclass
class Kind:
    """What is written.

    Attributes:
        write: writes a content into a folder.
        read: returns which content a folder has.
        allowed: what may be read after the writer was killed; the last one is the new content.
        names: the names of the files afterwards.
        folders: the number of folders afterwards.
        is_over_old: whether the folder holds the old content before.
    """

    write: Callable[[Path, int], object]
    read: Callable[[Path], Any]
    allowed: list[Any]
    names: list[str]
    folders: int = 0
    is_over_old: bool = True


SHARDS = [f"a-{shard}-of-3" for shard in range(3)]


def write_shards(folder, content):
    records = [b"%d %d" % (content, i) for i in range(30)]
    Dataset.from_tensor_slices(records).write_tfrecord(folder / "a-{shard}-of-{num_shards}", 3)


def read_shards(folder):
    """Return the content of each shard, None for those that do not exist; each is complete."""
    found = []
    for shard, name in enumerate(SHARDS):
        records = records_of(folder / name) if (folder / name).exists() else []
        found.append(int(records[0][:1]) if records else None)
        assert not records or records == [b"%d %d" % (found[-1], i) for i in range(shard, 30, 3)]
    return found


def records_of(path):
    with io.TFRecordIndex.build(path) as index:
        return list(index)


def elements(content):
    return Dataset.range(9).map(lambda x: np.full(1 << 14, x * content))


def save(folder, content, **options):
    elements(content).save(folder / "saved", shard_func=lambda x: x[1] % 3, **options)


def save_with_checkpoints(folder, content):
    save(folder, content, checkpoint_args={"directory": folder / "kept", "max_to_keep": 1, "checkpoint_interval": 4})


def saved(folder):
    """Return the content that was saved or cached, None if there is none."""
    if not (folder / "saved" / "metadata.json").exists():
        return None
    numbers = sorted(int(x[0]) for x in Dataset.load(folder / "saved"))
    assert numbers == [numbers[1] * i for i in range(9)]
    return numbers[1]


def cache(folder, content, **options):
    assert len(list(elements(content).cache(folder / "saved", **options))) == 9


def snapshot(folder, content):
    assert len(list(elements(content).snapshot(folder / "saved"))) == 9


def save_state(folder, content):
    iterator = iter(Dataset.range(9))
    list(itertools.islice(iterator, content))
    checkpoint.save(folder / "a.state", iterator)


def read_state(folder):
    iterator = iter(Dataset.range(9))
    checkpoint.restore(folder / "a.state", iterator)
    return int(next(iterator))


def write_records(folder, content):
    with io.TFRecordWriter(folder / "a") as writer:
        writer.write(b"%d" % content)


def write_index(folder, content):
    if content == OLD:  # there are records, but no index
        write_records(folder, NEW)
        return
    with io.TFRecordIndex.open(folder / "a") as index:
        index.save()


def write_unclosed(folder, content):
    writer = io.TFRecordWriter(folder / "a")
    writer.write(b"%d" % content)
    del writer


def read_records(folder):
    (record,) = records_of(folder / "a")
    return int(record)


SAVED = [*(f"{shard:08d}.tfrecord" for shard in range(3)), "metadata.json"]
CACHED = [SAVED[0], SAVED[-1]]
KINDS = {
    "Shards": Kind(
        write_shards,
        read_shards,
        [*([None, *rest] for rest in itertools.product((OLD, NEW), repeat=2)), [OLD] * 3, [NEW] * 3],
        SHARDS,
    ),
    "NewShards": Kind(
        write_shards,
        read_shards,
        [[None] * 3, [None, NEW, None], [None, NEW, NEW], [NEW] * 3],
        SHARDS,
        is_over_old=False,
    ),
    "Elements": Kind(save, saved, [OLD, NEW], SAVED, 2),
    "Resumed": Kind(save_with_checkpoints, saved, [OLD, NEW], SAVED, 3),
    "Cache": Kind(cache, saved, [None, NEW], CACHED, 2, is_over_old=False),
    "Rebuilt": Kind(partial(cache, on_mismatch="rebuild"), saved, [OLD, NEW], CACHED, 2),
    "Snapshot": Kind(
        snapshot, lambda folder: NEW, [NEW], [*SAVED[:3], "00000003.tfrecord", "metadata.json"], 3, is_over_old=False
    ),
    "State": Kind(save_state, read_state, [OLD, NEW], ["a.state"]),
    "Index": Kind(write_index, read_records, [NEW], ["a", "a.index"]),
    "Unclosed": Kind(write_unclosed, read_records, [OLD, NEW], ["a"]),
}


def main():
    kind, folder = KINDS[sys.argv[1]], Path(sys.argv[2])
    kill_at, ended = 0, False
    while not ended:
        place = folder / str(kill_at)
        place.mkdir()
        if kind.is_over_old:
            kind.write(place, OLD)
        ended = in_child(lambda: kind.write(place, NEW), kill_at)
        assert (found := kind.read(place)) in kind.allowed, found
        assert in_child(lambda: kind.write(place, NEW))
        assert (found := kind.read(place)) == kind.allowed[-1], found
        below = list(place.rglob("*"))
        assert sorted(path.name for path in below if path.is_file()) == kind.names, below
        assert sum(path.is_dir() for path in below) == kind.folders, below
        shutil.rmtree(place)
        kill_at += 1
    with AtomicFile(folder / "steps.json") as target:
        target.file.write(json.dumps(kill_at - 1).encode())


if __name__ == "__main__":
    main()
