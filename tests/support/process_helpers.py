"""Helpers for tests of worker processes."""

import os
import select
import subprocess
import sys
import threading
import traceback
import types
import warnings
from pathlib import Path

import numpy as np

from dataset.plan.structure import LEAF, structure_of
from dataset.runtime.chunks.chunk import Chunk

WAIT = 60  # seconds to wait for an event; tests normally wait much less
LABEL = "map(f) from train.py:41"
BIG = (64, 1024)  # of float32: 256 KiB


def elementwise(function):
    """Compute a map in a simple way: one outcome for each element."""

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
    """Return elements unchanged, and exceptions as their type."""
    return [row for o in outcomes for row in ([type(o)] if isinstance(o, BaseException) else o.rows())]


def members(family):
    """Return all processes that have the mark in their environment, whatever their parent."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdecimal() and family.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def has_ended(pid):
    """Wait for the end of a process, whatever its parent."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], WAIT)[0])
    finally:
        os.close(descriptor)


def in_thread(function):
    """Run ``function`` in a thread; ``.result()`` waits for it."""
    box = []

    def run():
        try:
            box.append(function())
        except BaseException as error:
            box.append(error)

    thread = threading.Thread(target=run, daemon=True)  # a test that fails leaves it waiting
    thread.start()

    def result():
        thread.join(WAIT)
        return box.pop()

    return types.SimpleNamespace(result=result)


def run_code(code, *arguments, check=True, **environment):
    """Run a program in another interpreter."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    environment = {**os.environ, **environment}
    return subprocess.run(command, env=environment, check=check, capture_output=True, text=True, timeout=2 * WAIT)


def fork(function):
    """Fork a child that calls ``function`` and exits with status 0, or 1 if it raised or returned False."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*use of fork", DeprecationWarning)  # from Python 3.12 on, with threads
        child = os.fork()
    if child:
        return child
    code = 1
    try:
        code = int(function() is False)
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        os._exit(code)


def exit_code_of(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
