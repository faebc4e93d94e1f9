"""Tests of a full disk: existing files stay intact, no other files remain, and the error describes the problem."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from dataset import Dataset, checkpoint
from support.folders import tree
from support.states import Holder

SIZE = 1 << 16


def records(value):
    return [bytes([value]) * SIZE for _ in range(9)]


def write_shards(folder, value):
    return Dataset.from_tensor_slices(records(value)).write_tfrecord(folder / "a-{shard}", 3)


def elements(value):
    return Dataset.range(9).map(lambda x: np.full(SIZE, value))


def cache(folder, value):
    with iter(elements(value).cache(folder / "cache", on_mismatch="rebuild")) as iterator:
        assert len(list(iterator)) == 9


WRITERS = {
    "write_tfrecord": write_shards,
    "save": lambda folder, value: elements(value).save(folder / "saved", shard_func=lambda x: 0),
    "cache": cache,
    "checkpoint": lambda folder, value: checkpoint.save(folder / "a.state", Holder(np.full(SIZE, value))),
}


@pytest.mark.parametrize("step", ["open", "fsync", "replace", "mkdir"])
@pytest.mark.parametrize("kind", WRITERS)
def test_a_disk_that_is_full_at_any_step_leaves_what_was_there(kind, step, tmp_path, monkeypatch):
    """Let each call of the step fail once, one after the other."""
    write = WRITERS[kind]
    write(tmp_path, 1)
    real = getattr(os, step)
    for number in range(40):
        before, calls = tree(tmp_path), []

        def fail(*arguments, number=number, calls=calls, **keywords):
            calls.append(arguments)
            if len(calls) == number + 1 and not is_read(arguments):
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(*arguments, **keywords)

        with monkeypatch.context() as patch:
            patch.setattr(os, step, fail)
            failure = None
            try:
                write(tmp_path, 2 + number)
            except OSError as error:
                failure = error
        if failure is not None:
            assert failure.errno == errno.ENOSPC
            assert tree(tmp_path) == before or is_incomplete(kind, step, failure, tree(tmp_path))
        assert not any(Path(name).name.startswith(".") or name.endswith(".lock") for name in tree(tmp_path))
        if len(calls) <= number:
            return
    raise AssertionError("there is no end")


def is_read(arguments):
    """Return whether the file is opened to be read or locked, which needs no space."""
    return len(arguments) > 1 and type(arguments[1]) is int and not arguments[1] & os.O_WRONLY


def is_incomplete(kind, step, error, after):
    """The only failure that cannot be undone: some of several files are renamed, and the first one is missing."""
    return (
        kind == "write_tfrecord"
        and step == "replace"
        and "a-0" not in after
        and "is missing" in "".join(getattr(error, "__notes__", []))
    )
