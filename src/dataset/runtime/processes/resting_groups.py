"""Resting worker groups: worker processes kept between two iterations of the same dataset.

Starting an interpreter that imports NumPy and part of this library takes a sixth of a second of CPU time, plus the
imports of the user's function. So the processes of a finished iteration wait for the next one.

They are kept for an *owner*, which every copy of the plan's node holds. They end

- when the owner is dropped: the dataset, all datasets derived from it, and their iterators;
- ``REST_SECONDS`` after the iteration. The launcher measures this time, because this process has no thread for it. The
  entry in the system's process table stays until the owner is dropped or iterates again;
- when more than ``GROUPS_MAX`` groups rest: the one that has rested longest;
- when the program ends, in whatever way.

A resting worker holds no function and no element. Modules that it has imported stay imported, as they do in threads. A
group is not reused if a new one would start under other conditions: environment variables, arguments, module path,
working directory, outputs.

Nothing here takes a lock, because an owner may be dropped by the garbage collector in any thread. Each group is in the
list once, and the thread that removes it owns it.
"""

from __future__ import annotations

import atexit
import contextlib
import subprocess
import weakref
from collections.abc import Container

from dataset.runtime.processes.pool_key import PoolKey
from dataset.runtime.processes.worker_group import WorkerGroup

REST_SECONDS = 60.0
"""After this time, restarting the processes takes less than 1% of the time since the last iteration."""

GROUPS_MAX = 4
"""Maximum number of resting groups: enough for two datasets (training and validation) with two process pools each."""

PATIENCE_SECONDS = 2.0
"""How long to wait for killed processes."""


class _Resting:
    def __init__(self, group: WorkerGroup, owner: PoolKey) -> None:
        self.group = group
        self.owner = weakref.ref(owner, lambda _: self.end())

    def is_taken(self) -> bool:
        try:
            _resting.remove(self)
        except ValueError:  # another thread was first
            return False
        return True

    def end(self) -> None:
        if self.is_taken():
            end(self.group)


_resting: list[_Resting] = []  # longest resting first


def keep(group: WorkerGroup, workers: Container[int], owner: PoolKey) -> None:
    """Let a group rest, with only the given idle workers."""
    try:
        group.rest(workers, REST_SECONDS)
    except BaseException:  # an interrupt
        end(group)
        raise
    _resting.append(_Resting(group, owner))
    for oldest in _resting[:-GROUPS_MAX]:
        oldest.end()


def kept(owner: PoolKey) -> WorkerGroup | None:
    """Return the resting group of this owner and wake it; None if there is none."""
    for resting in reversed(_resting[:]):
        if resting.owner() is owner and resting.is_taken():
            awake = False
            try:
                awake = resting.group.wake()
            finally:
                if not awake:
                    end(resting.group)
            if awake:
                return resting.group
    return None


def end_resting() -> None:
    """End all resting groups."""
    for resting in _resting[:]:
        resting.end()


def end(group: WorkerGroup) -> None:
    """Close a group; stop waiting for its processes after a timeout."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        group.close(PATIENCE_SECONDS)


atexit.register(end_resting)
