"""A process and all below it, looked at from outside: CPU time, memory, and that nothing of it is left behind.

A ``Look`` has, for each process, its CPU time so far, that of the children that have ended and that it has waited for,
and the most memory it has held. Looks are taken at the marks of a run and a few times a second in between, because what
a process has used is gone with it unless its parent waits for it, which daemons do not.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil

Key = tuple[int, float]
"""A process: its number, which is given again after its end, and the time of its start."""


@dataclass(frozen=True)
class Usage:
    """Of one process."""

    parent: int
    own_s: float
    ended_children_s: float
    peak_bytes: int

    @property
    def all_s(self) -> float:
        return self.own_s + self.ended_children_s


@dataclass(frozen=True)
class Look:
    """All processes at one time."""

    processes: dict[Key, Usage]
    time_s: float = field(default_factory=time.monotonic)

    def with_own(self, pid: int, own_s: float) -> Look:
        """With the CPU time of one process as it has read it itself: from outside it comes in steps of 10 ms."""
        exact = {key: replace(usage, own_s=own_s) for key, usage in self.processes.items() if key[0] == pid}
        return Look(self.processes | exact, self.time_s)

    @property
    def peak_bytes(self) -> int:
        """The most that each has held, added up. Pages that processes share count in each of them."""
        return sum(usage.peak_bytes for usage in self.processes.values())


def cpu_s(looks: Sequence[Look]) -> float:
    """The CPU time used from the first look to the last, also by processes that have ended in between."""
    first, last = looks[0].processes, looks[-1].processes
    latest: dict[Key, Usage] = {}
    for look in looks:
        latest.update(look.processes)
    alive = {key[0]: key for key in last}
    parents = {key[0]: usage.parent for key, usage in latest.items()}
    # By process that is still there: what those below it that have ended were last seen to have used, before and since.
    before: dict[Key, float] = dict.fromkeys(last, 0.0)
    since: dict[Key, float] = dict.fromkeys(last, 0.0)
    total = 0.0
    for key in latest.keys() - last.keys():
        at_first = first[key].all_s if key in first else 0.0
        above = parents[key[0]]
        while above not in alive and above in parents and above != key[0]:
            above = parents[above]
        if above in alive:
            before[alive[above]] += at_first
            since[alive[above]] += latest[key].all_s - at_first
        else:
            total += latest[key].all_s - at_first
    for key, usage in last.items():
        start = first.get(key, Usage(0, 0.0, 0.0, 0))
        waited_for = usage.ended_children_s - start.ended_children_s
        # Whoever was waited for adds all of its life; who was not adds nothing, and counts as last seen.
        total += usage.own_s - start.own_s + max(waited_for - before[key], since[key])
    return total


class Tree:
    """The processes below this one, except those that were there before.

    On Linux this process also becomes the parent of those below it whose own parent ends, so that none gets away.
    """

    def __init__(self) -> None:
        if sys.platform == "linux":
            set_child_subreaper = 36
            ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0)
        self.me = psutil.Process()
        self.others = set(self.me.children(recursive=True))
        self.seen: set[psutil.Process] = set()

    def look(self) -> Look:
        found = {}
        now = time.monotonic()
        for process in set(self.me.children(recursive=True)) - self.others:
            self.seen.add(process)
            with contextlib.suppress(psutil.Error), process.oneshot():
                times = process.cpu_times()
                found[process.pid, process.create_time()] = Usage(
                    process.ppid(),
                    times.user + times.system,
                    times.children_user + times.children_system,
                    _peak_bytes(process),
                )
        return Look(found, now)

    def end(self, grace_s: float = 0.5) -> int:
        """Have all processes ended, by themselves within the grace or else killed. How many had to be."""
        self.look()
        _, left = psutil.wait_procs(self.seen, grace_s)
        killed = 0
        while left:
            for process in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
                    killed += 1
            psutil.wait_procs(left, 10)
            left = list(set(self.me.children(recursive=True)) - self.others)
        self.seen.clear()
        return killed


def _peak_bytes(process: psutil.Process) -> int:
    """The most memory a process has held at once. Where the system does not keep it, what it holds now."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        return 0  # it has ended, and nobody has waited for it
    return int(process.memory_info().rss)
