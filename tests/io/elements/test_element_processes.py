"""Tests of element files with real processes: killed writers and concurrent readers. They do not depend on timing."""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dataset import Dataset
from dataset.io.files.locks import LockFile, holder_of

WRITERS = {
    "save": "dataset.save(path)",
    "cache": "list(dataset.cache(path))",
    "snapshot": "list(dataset.snapshot(path))",
}

PROGRAM = """
import os
import sys
import numpy as np
from dataset import Dataset

path, os.environ["STOP"] = sys.argv[1:3]

def make(x):
    if x == int(os.environ["STOP"]):
        print("reached", flush=True)
        sys.stdin.read()
    return np.full(1 << 16, x)

dataset = Dataset.range(40).map(make)
"""


def start(program, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def finish(process):
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return out


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL


def files_in(path):
    return sorted(str(p.relative_to(path)) for p in Path(path).rglob("*") if p.is_file())


@pytest.mark.parametrize("kind", WRITERS)
def test_what_a_killed_writer_left_is_not_read_and_is_removed(tmp_path, kind):
    path = tmp_path / "elements"
    writer = start(PROGRAM + WRITERS[kind], path, 30)
    assert writer.stdout.readline() == "reached\n"
    kill(writer)
    left = files_in(path)
    assert any(name.endswith(".tfrecord") for name in left)
    assert not any(name.endswith("metadata.json") for name in left)
    if kind == "save":
        with pytest.raises(FileNotFoundError):
            Dataset.load(path)
    finish(start(PROGRAM + WRITERS[kind], path, -1))
    after = files_in(path)
    assert not set(left) & set(after)
    assert not any(name.endswith(".lock") for name in after)
    if kind == "save":
        assert [int(x[0]) for x in Dataset.load(path)] == list(range(40))
    else:
        again = start(PROGRAM + f"print(sum(1 for _ in dataset.{kind}(path)))", path, 0)
        assert finish(again) == "40\n"  # it would have stopped at element 0 if it had been recomputed


def test_a_cache_that_another_process_fills_cannot_be_filled_here(tmp_path):
    path = tmp_path / "cache"
    writer = start(PROGRAM + WRITERS["cache"], path, 20)
    assert writer.stdout.readline() == "reached\n"
    make = lambda: Dataset.range(40).map(lambda x: np.full(1 << 16, x)).cache(path)
    with pytest.raises(FileExistsError, match=rf"process {writer.pid} is filling the cache"):
        next(iter(make()))
    finish(writer)  # let it continue
    reader = start(PROGRAM + "print([int(x[0]) for x in dataset.cache(path)])", path, 0)
    assert finish(reader) == f"{list(range(40))}\n"


def test_a_snapshot_that_another_process_writes_is_written_here_too(tmp_path):
    path = tmp_path / "snapshots"
    program = PROGRAM + WRITERS["snapshot"]
    first, second = start(program, path, 20), start(program, path, 30)
    assert first.stdout.readline() == "reached\n"
    assert second.stdout.readline() == "reached\n"
    finish(first)
    finish(second)
    assert len(list(path.rglob("metadata.json"))) == 1
    assert len(list(path.rglob("*.tfrecord"))) == 4


READER = """
import sys
from dataset import Dataset

elements = iter(Dataset.load(sys.argv[1]))
total = int(next(elements)[0])
print("reading", flush=True)
sys.stdin.read()
print(total + sum(int(x[0]) for x in elements))
"""


def test_two_processes_read_at_the_same_time(tmp_path):
    path = tmp_path / "saved"
    Dataset.range(100).map(lambda x: np.full(1 << 14, x)).save(path, shard_func=lambda x: x[0] % 3)
    readers = [start(READER, path) for _ in range(2)]
    for reader in readers:
        assert reader.stdout.readline() == "reading\n"
    assert [finish(reader) for reader in readers] == ["4950\n", "4950\n"]


def test_a_lock_is_free_when_its_holder_is_dead(tmp_path):
    path = tmp_path / "a.lock"
    program = (
        "import sys\nfrom dataset.io.files.locks import LockFile\nlock = LockFile(sys.argv[1], create=True)\n"
        "print('held', flush=True)\nsys.stdin.read()\nlock.release()"
    )
    holder = start(program, path)
    assert holder.stdout.readline() == "held\n"
    assert holder_of(path) == f"process {holder.pid}"
    with pytest.raises(BlockingIOError):
        LockFile(path, create=True)
    kill(holder)
    lock = LockFile(path, create=True)
    lock.release()
    assert not path.exists()


def test_a_forked_child_neither_holds_nor_removes_what_its_parent_writes(tmp_path):
    path = tmp_path / "cache"
    program = f"""
import os, sys
from dataset import Dataset
iterator = iter(Dataset.range(5000).map(lambda x: x).cache({str(path)!r}))
next(iterator)
child = os.fork()
if child == 0:
    del iterator
    sys.exit(0)
os.waitpid(child, 0)
print(sum(map(int, iterator)))
"""
    assert finish(start(program)) == f"{sum(range(5000))}\n"
    assert len(files_in(path)) == 2
