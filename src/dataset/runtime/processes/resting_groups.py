"""Resting worker groups: worker processes that the program keeps for its next pipelines.

Starting an interpreter that imports NumPy and part of this library takes a sixth of a second of CPU time, plus the
imports of the user's function. So the processes of a finished iteration rest, and any operator of any dataset takes
them, such as that of a pipeline that is built again for each epoch.

An operator takes a whole group: a launcher and its workers. It can then kill them without a lock, which the garbage
collector needs, and a launcher that dies concerns a single operator. Two operators at the same time have a group each.

Groups end

- after they have rested for ``REST_SECONDS``. The processes measure this time, because this one has no thread for it: a
  launcher ends with all of its workers, and a worker on its own if the operator that took the group does not need it.
  The entry in the system's process table stays until another group rests or is taken in its place;
- when more than ``_processes_max`` processes rest: those that have rested longest. The group that rested last may have
  more, as its operator is likely to be opened again;
- when the program ends, in whatever way.

A resting worker holds no function and no element. Modules that it has imported stay imported, and global state that a
function has changed stays changed, as they do in threads. A group is not taken if a new one would find something else:
environment variables, arguments, module path, working directory, outputs, or the code of a module that was reloaded.

Nothing here takes a lock, because the garbage collector may end an iteration in any thread. Each group is in the list
once, and the thread that removes it owns it.
"""

from __future__ import annotations

import atexit
import contextlib
from collections.abc import Container, Sequence

from dataset.runtime.processes.worker_group import WorkerGroup
from dataset.runtime.resources.coordinator import PATIENCE_SECONDS
from dataset.runtime.resources.cores import usable_cores
from dataset.world import subprocess
from dataset.world.forking import at_fork

REST_SECONDS = 60.0
"""After this time, restarting the processes takes less than 1% of the time since the last iteration."""

_resting: list[WorkerGroup] = []  # those that rested last first


def _processes_max() -> int:
    """Return how many processes may rest: two datasets (training and validation) of two operators that use all cores.

    Each of these operators has a launcher and a worker per core.
    """
    return 2 * 2 * (1 + usable_cores())


def take(count: int, modules: Sequence[str] = ()) -> WorkerGroup:
    """Return the group for an operator: a resting one with about ``count`` workers, or a new one.

    Args:
        count: the maximum number of workers that the operator uses. The group may have more, or none.
        modules: the modules that the launcher of a new group imports.
    """
    for group in sorted(_resting, key=lambda group: abs(len(group.workers) - count)):
        if _is_removed(group):
            awake = False
            try:
                awake = group.wake()
            finally:
                if not awake:
                    end(group)
            if awake:
                return group
    return WorkerGroup(modules)


def keep(group: WorkerGroup, workers: Container[int]) -> None:
    """Let a group rest, with only the given idle workers."""
    try:
        group.rest(workers, REST_SECONDS)
    except BaseException:  # an interrupt
        end(group)
        raise
    _resting.insert(0, group)
    room = _processes_max()
    for resting in _resting[:]:
        room -= 1 + len(resting.workers)
        if resting is not group and (room < 0 or resting.has_ended) and _is_removed(resting):
            end(resting)


def resting_count() -> int:
    """Return how many resting workers the next operator could take: if there are any, processes start at once."""
    return max((len(group.workers) for group in _resting[:] if group.is_usable), default=0)


def end_resting() -> None:
    """End all resting groups."""
    for group in _resting[:]:
        if _is_removed(group):
            end(group)


def end(group: WorkerGroup) -> None:
    """Close a group; stop waiting for its processes after a timeout."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        group.close(PATIENCE_SECONDS)


def _is_removed(group: WorkerGroup) -> bool:
    """Remove a group from the list; return False if another thread was first."""
    try:
        _resting.remove(group)
    except ValueError:
        return False
    return True


at_fork(in_child=_resting.clear)
atexit.register(end_resting)
