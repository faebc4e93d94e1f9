"""What the tests of parallel ops share: functions that take their time, and that tell how many of their calls overlap.

Functions that worker processes run are here, too, where a worker imports them without the tests around them. A sleep in
such a function is its work; nothing waits for anything else by sleeping.
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

WAIT = 10  # seconds, for what must come; where it does not come, a test fails by it


@dataclass(frozen=True)
class Work:
    """Returns its argument after a delay that goes by its number, and fails for some."""

    delays: tuple[float, ...] = (0.0,)
    bad: frozenset[int] = frozenset()

    def __call__(self, x: Any) -> Any:
        number = int(x)
        time.sleep(self.delays[number % len(self.delays)])
        if number in self.bad:
            raise ValueError(f"bad {number}")
        return x

    def at_once(self) -> Work:
        """The same without delays."""
        return Work(bad=self.bad)


class Clock:
    """Stands in for the module time where an op asks it: a time that goes by when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


class Meeting:
    """Returns its argument; the calls for the numbers below ``size`` only once all of them are under way."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.barrier = threading.Barrier(size)

    def __call__(self, x: Any) -> Any:
        if x < self.size:
            self.barrier.wait(WAIT)
        return x


class Calls:
    """Counts the calls that are under way in the block, and the most that ever were."""

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
    """Tells when something was done often enough."""

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


def once(function: Callable[[], Iterator[Any]], calls: Calls) -> Callable[[], Iterator[Any]]:
    """A generator function that counts how many threads are inside its generators."""

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
    """Ends its process at the number 5."""
    if x == 5 and how == "exit":
        os._exit(7)
    if x == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def interrupt_all(x: Any) -> Any:
    """What Ctrl-C does: at the number 3, a signal to the program and to all its processes."""
    while x == 3:
        os.killpg(int(os.environ["MAIN_PID"]), signal.SIGINT)
        threading.Event().wait(5)  # again, as a person would: Python loses a signal that comes just before it waits
    if x > 3:
        threading.Event().wait()
    return x


def be_impatient() -> None:
    """Have the end of the data, and of the program, wait less long for threads that tests block for ever."""
    iterator.PATIENCE_SECONDS = coordinator.PATIENCE_SECONDS = 0.2


def heed_interrupts() -> None:
    """Undo what a shell does to programs in the background: it has them, and all that they start, ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


# What must not be left behind

MARK = str(uuid.uuid4())
os.environ["DATASET_TEST_MARK"] = MARK  # every process that comes from this one inherits it, and orphans keep it


@contextmanager
def nothing_left(seconds: float = WAIT) -> Iterator[None]:
    """Raise AssertionError if the block leaves threads, open files, processes or shared memory behind.

    What the block has told to end may take some time for it.
    """
    with no_leaks():
        before = _outside()
        yield
    deadline = time.monotonic() + seconds
    while (left := _outside() - before) and time.monotonic() < deadline:
        time.sleep(0.01)  # nobody tells when the child of a child is gone
    assert not left, f"left behind: {sorted(left)}"


def processes_of(mark: str) -> set[str]:
    """Processes, this one aside, that have the mark in their environment, with their command lines."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # gone, or not ours
            if mark.encode() in (folder / "environ").read_bytes() and int(folder.name) != os.getpid():
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found.add(f"process {folder.name} {command}")
    return found


def _outside() -> set[str]:
    return processes_of(MARK) | _zombies() | shared_memory() | _shared_mappings()


def _zombies() -> set[str]:
    """Processes below this one that have ended and that nobody has asked for their exit code."""
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


_OTHERS = ("sem.mp-", "torch_")  # what torch's workers use, in other tests that run at the same time


def shared_memory() -> set[str]:
    folder = Path("/dev/shm")  # noqa: S108  # looked at, not written to
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return {f"shared memory {name}" for name in names if not name.startswith(_OTHERS)}


def _shared_mappings() -> set[str]:
    """Shared memory that this process has mapped, with or without a name: address range and inode."""
    maps = Path("/proc/self/maps")
    lines = maps.read_text().splitlines() if maps.exists() else []
    shared = ("/memfd:", "/dev/shm/", "/dev/zero (deleted)")  # noqa: S108
    return {f"mapping {line}" for line in lines if any(name in line for name in shared)}
