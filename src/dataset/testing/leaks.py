"""Counting what must not be left behind: threads and open files."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_JOIN_SECONDS = 30.0  # for threads that have been told to end; a leak is one that does not

_FILES = Path("/proc/self/fd")


@contextmanager
def no_leaks() -> Iterator[None]:
    """Raise AssertionError if the block leaves threads or open files behind.

    Threads that have been told to stop are waited for. Files are counted where the system shows them (Linux).

    >>> from dataset import Dataset
    >>> with no_leaks():
    ...     _ = next(iter(Dataset.range(1000).prefetch(2)))
    """
    gc.collect()
    threads, files = set(threading.enumerate()), _open_files()
    yield
    gc.collect()
    started = [thread for thread in threading.enumerate() if thread not in threads]
    for thread in started:
        thread.join(_JOIN_SECONDS)
    left = [thread.name for thread in started if thread.is_alive()]
    if left:
        raise AssertionError(f"threads left behind: {left}")
    if extra := _open_files() - files:
        raise AssertionError(f"files left open: {sorted(extra)}")


def _open_files() -> set[str]:
    if not _FILES.is_dir():
        return set()
    found = set()
    for name in os.listdir(_FILES):  # noqa: PTH208  # as quick as it gets, for the listing itself opens a file
        try:
            found.add(f"{name}:{os.readlink(_FILES / name)}")  # noqa: PTH115  # with the name in front, as text
        except OSError:  # the descriptor of the listing
            continue
    return found
