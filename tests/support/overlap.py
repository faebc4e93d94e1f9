"""Helpers for tests of parallel ops: functions with delays, and functions that count how many of their calls overlap.

Functions for worker processes are also here, so that a worker imports them without the tests. A sleep in a function
represents its work; it is never used to wait for another thread or process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dataset.runtime.iteration import iterator
from dataset.runtime.resources import coordinator
from dataset.testing import no_leaks

WAIT = 10  # seconds to wait for an event; if it does not happen by then, the test fails


@dataclass(frozen=True)
class Work:
    """Function that returns its argument after a delay that depends on it, and fails for some arguments."""

    delays: tuple[float, ...] = (0.0,)
    bad: frozenset[int] = frozenset()

    def __call__(self, x: Any) -> Any:
        number = int(x)
        time.sleep(self.delays[number % len(self.delays)])
        if number in self.bad:
            raise ValueError(f"bad {number}")
        return x

    def at_once(self) -> Work:
        """Return the same function without delays."""
        return Work(bad=self.bad)


class Clock:
    """A clock that the test advances, as a function or in the place of the module ``time``."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    perf_counter = process_time = __call__


class Meeting:
    """Return the argument; calls for the numbers below ``size`` return only when all of them are running."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.barrier = threading.Barrier(size)

    def __call__(self, x: Any) -> Any:
        if x < self.size:
            self.barrier.wait(WAIT)
        return x


class Calls:
    """Counter of the calls that are inside the block, and of their maximum."""

    def __init__(self) -> None:
        self.now = self.most = self.total = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            self.now += 1
            self.total += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.now -= 1


class Counter:
    """Counter that signals when something was done a given number of times."""

    def __init__(self, enough: int) -> None:
        self.enough = enough
        self.count = 0
        self.reached = threading.Event()
        self._lock = threading.Lock()

    def add(self) -> None:
        with self._lock:
            self.count += 1
            if self.count == self.enough:
                self.reached.set()


class Gate:
    """Function whose calls for numbers from ``first`` on wait until the gate is opened.

    Attributes:
        entered: set when a call waits.
        opened: the gate.
        called: the numbers of all calls.
    """

    def __init__(self, first: int = 0) -> None:
        self.first = first
        self.entered, self.opened = threading.Event(), threading.Event()
        self.called: list[int] = []
        self._waiting = threading.Semaphore(0)

    def __call__(self, x: Any) -> Any:
        self.called.append(int(x))
        if x >= self.first:
            self._waiting.release()
            self.entered.set()
            assert self.opened.wait(6 * WAIT)
        return x

    def wait_for(self, calls: int) -> None:
        """Wait until this many calls wait."""
        for _ in range(calls):
            assert self._waiting.acquire(timeout=WAIT)


def counted(calls: Calls, seconds: float) -> Callable[[Any], Any]:
    """Function that returns its argument after a delay, and whose concurrent calls are counted."""

    def call(x: Any) -> Any:
        with calls:
            time.sleep(seconds)
            return x

    return call


def once(function: Callable[[], Iterator[Any]], calls: Calls) -> Callable[[], Iterator[Any]]:
    """Generator function that counts how many threads are inside its generators."""

    def generate() -> Iterator[Any]:
        elements = function()
        while True:
            with calls:
                try:
                    element = next(elements)
                except StopIteration:
                    return
            yield element

    return generate


# For worker processes


def double(x: Any) -> Any:
    return x * 2


def fail_at_two(x: Any) -> Any:
    if x == 2:
        raise ValueError("failed")
    return x


def slow_at_first(x: Any) -> Any:
    time.sleep(0.02 if x % 5 == 0 else 0)
    if x % 7 == 3:
        raise ValueError(f"bad {x}")
    return {"number": x, "array": np.full((40, 50), x, np.float32), "text": f"{x}"}


def block_for_ever(x: Any) -> Any:
    if x > 0:
        threading.Event().wait()
    return x


def die(how: str, x: Any) -> Any:
    """End the process at the number 5."""
    if x == 5 and how == "exit":
        os._exit(7)
    if x == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def be_impatient() -> None:
    """Reduce the time for which iterators and the interpreter wait for threads that a test blocks forever."""
    iterator.PATIENCE_SECONDS = coordinator.PATIENCE_SECONDS = 0.2


# Leaks

MARK = str(uuid.uuid4())
os.environ["DATASET_TEST_MARK"] = MARK  # child processes inherit it, and orphans keep it


@contextmanager
def nothing_left(seconds: float = WAIT) -> Iterator[None]:
    """Raise AssertionError if the block leaks threads, open files, processes or shared memory.

    They may take some time to end after the block.
    """
    with no_leaks():
        before = _outside()
        yield
    left = remaining(lambda: _outside() - before, seconds)
    assert not left, f"left behind: {sorted(left)}"


def remaining(look: Callable[[], set[str]], seconds: float = WAIT) -> set[str]:
    """Look until nothing is left, or for these seconds; return what is left then."""
    deadline = time.monotonic() + seconds
    while (left := look()) and time.monotonic() < deadline:
        time.sleep(0.01)  # there is no notification when a grandchild or an orphan ends
    return left


def processes_of(mark: str) -> set[str]:
    """Return the other processes that have the mark in their environment, with their command lines."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or belongs to another user
            if mark.encode() in (folder / "environ").read_bytes() and int(folder.name) != os.getpid():
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found.add(f"process {folder.name} {command}")
    return found


def _outside() -> set[str]:
    return processes_of(MARK) | _zombies() | shared_memory() | _shared_mappings()


def _zombies() -> set[str]:
    """Return the zombies among the descendants of this process."""
    parents, ended = {}, set()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            parents[folder.name] = parent
            if state == "Z":
                ended.add(folder.name)
    return {f"zombie {pid}" for pid in ended if str(os.getpid()) in _ancestors(pid, parents)}


def _ancestors(pid: str, parents: dict[str, str]) -> set[str]:
    found = set()
    while pid in parents:
        pid = parents[pid]
        found.add(pid)
    return found


_OTHERS = ("sem.mp-", "torch_", "fuzz-")  # of tests that run at the same time: torch's workers, tests/fuzz


def shared_memory() -> set[str]:
    folder = Path("/dev/shm")  # noqa: S108  # only read
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return {f"shared memory {name}" for name in names if not name.startswith(_OTHERS)}


def _shared_mappings() -> set[str]:
    """Return the address ranges and inodes of the shared memory that this process has mapped, named or not."""
    maps = Path("/proc/self/maps")
    lines = maps.read_text().splitlines() if maps.exists() else []
    shared = ("/memfd:", "/dev/shm/", "/dev/zero (deleted)")  # noqa: S108
    return {f"mapping {line}" for line in lines if any(name in line for name in shared)}
