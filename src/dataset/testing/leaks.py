"""Leak check: threads, open files and child processes that outlive a block."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dataset.world import threading, time

_JOIN_SECONDS = 30.0  # a thread that is still alive this long after it was told to stop is a leak

_OTHERS = {"fsspec.asyn", "pyarrow"}  # have threads of their own, which close files

_FILES = Path("/proc/self/fd")
_PROCESSES = Path("/proc")


@contextmanager
def no_leaks() -> Iterator[None]:
    """Raise AssertionError if threads, open files or child processes of the block outlive it.

    The check waits for threads that were told to stop. fsspec's own thread, which all remote files share, lives as long
    as the process and does not count. Connections that it keeps for later requests count if the block opened them.
    Worker processes that rest between two iterations are ended before and after the block. Files and processes are
    counted on Linux only. A child that has ended but was not waited for, a zombie, counts.

    >>> from dataset import Dataset
    >>> with no_leaks():
    ...     _ = next(iter(Dataset.range(1000).prefetch(2)))
    """
    gc.collect()
    _end_resting_processes()
    threads, files, children = set(threading.enumerate()), _open_files(), _children()
    yield
    gc.collect()
    started = [thread for thread in threading.enumerate() if thread not in threads and not _is_fsspecs(thread)]
    for thread in started:
        thread.join(_JOIN_SECONDS)
    left = [thread.name for thread in started if thread.is_alive()]
    if left:
        raise AssertionError(f"threads still alive: {left}")
    _end_resting_processes()
    _let_other_threads_close(files)
    if extra := _open_files() - files:
        raise AssertionError(f"files still open: {sorted(extra)}")
    if left_running := _children() - children:
        raise AssertionError(f"child processes still there: {sorted(left_running)}")


def _end_resting_processes() -> None:
    resting_groups = sys.modules.get("dataset.runtime.processes.resting_groups")
    if resting_groups is not None:
        resting_groups.end_resting()


def _let_other_threads_close(files: set[str]) -> None:
    """Wait until the threads of fsspec and pyarrow have closed what they were told to, so that only ``files`` are open.

    fsspec's closes connections. pyarrow's may hold a mapped file for a moment after the read has returned. No event
    tells when they have done so.
    """
    deadline = time.monotonic() + _JOIN_SECONDS
    while _OTHERS & sys.modules.keys() and _open_files() - files and time.monotonic() < deadline:
        time.sleep(1e-3)


def _is_fsspecs(thread: threading.Thread) -> bool:
    library = sys.modules.get("fsspec.asyn")
    return library is not None and thread in library.iothread


def _open_files() -> set[str]:
    if not _FILES.is_dir():
        return set()
    found = set()
    for name in os.listdir(_FILES):  # noqa: PTH208  # fast; the listing itself opens a file
        try:
            found.add(f"{name}:{os.readlink(_FILES / name)}")  # noqa: PTH115  # the text of the link
        except OSError:  # the descriptor of the listing
            continue
    return found


def _children() -> set[int]:
    """Return the ids of this process's children."""
    if not _FILES.is_dir():
        return set()
    found = set()
    for folder in _PROCESSES.iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):  # the process has ended in the meantime
                # The name is in parentheses and may contain anything; the state and the parent follow it.
                parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
                if int(parent) == os.getpid():
                    found.add(int(folder.name))
    return found
