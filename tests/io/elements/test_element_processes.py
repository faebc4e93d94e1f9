"""Tests of element files with real processes: killed writers and concurrent readers. They do not depend on timing."""

import subprocess
import sys

import numpy as np
import pytest

from dataset import Dataset
from support.folders import tree

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
    out, _ = process.communicate(timeout=250)
    assert process.returncode == 0
    return out


def test_a_cache_that_another_process_fills_cannot_be_filled_here(tmp_path):
    path = tmp_path / "cache"
    writer = start(PROGRAM + "list(dataset.cache(path))", path, 20)
    assert writer.stdout.readline() == "reached\n"
    make = lambda: Dataset.range(40).map(lambda x: np.full(1 << 16, x)).cache(path)
    with pytest.raises(FileExistsError, match=rf"process {writer.pid} is filling the cache"):
        next(iter(make()))
    finish(writer)  # let it continue
    reader = start(PROGRAM + "print([int(x[0]) for x in dataset.cache(path)])", path, 0)
    assert finish(reader) == f"{list(range(40))}\n"


def test_a_snapshot_that_another_process_writes_is_written_here_too(tmp_path):
    path = tmp_path / "snapshots"
    program = PROGRAM + "list(dataset.snapshot(path))"
    first, second = start(program, path, 20), start(program, path, 30)
    assert first.stdout.readline() == "reached\n"
    assert second.stdout.readline() == "reached\n"
    finish(first)
    finish(second)
    assert len(list(path.rglob("metadata.json"))) == 1
    assert len(list(path.rglob("*.tfrecord"))) == 4


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
    assert sum(content is not None for content in tree(path).values()) == 2
