"""What the tests of worker processes share."""

import os
import select
import threading
import types
from pathlib import Path

import numpy as np

from dataset.plan.structure import LEAF, structure_of
from dataset.runtime.chunks.chunk import Chunk

WAIT = 60  # for what must come; nothing waits that long
LABEL = "map(f) from train.py:41"
BIG = (64, 1024)  # of float32: 256 KiB


def elementwise(function):
    """The work of a map, in small: one outcome for each element."""

    def work(inputs, position, context, started):
        outcomes = []
        for row in inputs.rows():
            started()
            try:
                result = function(row)
                outcomes.append(Chunk(structure_of(result), 1, rows=[result]))
            except Exception as error:
                outcomes.append(error)
        return outcomes

    return work


def numbers(count, start=0):
    return Chunk(LEAF, count, [np.arange(start, start + count)])


def one(value):
    return Chunk(structure_of(value), 1, rows=[value])


def plain(outcomes):
    """Elements as they are, exceptions by their type."""
    return [row for o in outcomes for row in ([type(o)] if isinstance(o, BaseException) else o.rows())]


def members(family):
    """All processes that carry the mark in their environment, whoever their parent is."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdecimal() and family.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def has_ended(pid):
    """Wait for the end of a process, whoever its parent is."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], WAIT)[0])
    finally:
        os.close(descriptor)


def in_thread(function):
    """Runs ``function`` in a thread; ``.result()`` waits."""
    box = []

    def run():
        try:
            box.append(function())
        except BaseException as error:
            box.append(error)

    thread = threading.Thread(target=run)
    thread.start()

    def result():
        thread.join(WAIT)
        return box.pop()

    return types.SimpleNamespace(result=result)


def fork(function):
    """A child that calls ``function`` and ends: with 0, or with 1 if that raised or returned False."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        code = int(function() is False)
    finally:
        os._exit(code)


def exit_code_of(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
