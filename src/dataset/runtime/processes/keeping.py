"""Crews that rest: worker processes between two iterations of the same dataset.

Starting an interpreter that imports NumPy and some of this library takes a sixth of a second of computing, and what the
user's function imports comes on top. So the processes of an iteration that has ended wait for the next one.

They are kept for an *owner*, which every copy of the plan's node holds, and end

- when the owner is gone: the dataset, all that were made of it, and their iterators;
- ``REST_SECONDS`` after the iteration. The launcher counts them, since there is no thread here that could; the entry in
  the system's table of processes stays until the owner is gone or iterates again;
- when more than ``CREWS_MAX`` rest, the one that has rested longest;
- when the program ends, however it does.

A resting worker holds no function and no element. What it has imported stays imported, as it does in threads. A crew
is not used again where a new one would find something else: environment, arguments, module path, folder, outputs.

Nothing here takes a lock: an owner may go in the garbage collector, in any thread. Each crew is in the list once, and
who takes it out of there has it.
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
"""Then it takes under a hundredth of the time since the last iteration to start them anew."""

CREWS_MAX = 4
"""How many rest at most: two datasets, such as for training and validation, with two such operations each."""

PATIENCE_SECONDS = 2.0
"""How long is waited for processes that were killed."""


class _Resting:
    def __init__(self, crew: WorkerGroup, owner: PoolKey) -> None:
        self.crew = crew
        self.owner = weakref.ref(owner, lambda _: self.end())

    def is_taken(self) -> bool:
        try:
            _resting.remove(self)
        except ValueError:  # somebody else was first
            return False
        return True

    def end(self) -> None:
        if self.is_taken():
            end(self.crew)


_resting: list[_Resting] = []  # the one that has rested longest first


def keep(crew: WorkerGroup, workers: Container[int], owner: PoolKey) -> None:
    """Let a crew rest, but for its other workers than these, which are idle."""
    try:
        crew.rest(workers, REST_SECONDS)
    except BaseException:  # an interrupt
        end(crew)
        raise
    _resting.append(_Resting(crew, owner))
    for oldest in _resting[:-CREWS_MAX]:
        oldest.end()


def kept(owner: PoolKey) -> WorkerGroup | None:
    """The crew that rests for this owner, if there is one; it does not rest any more."""
    for resting in reversed(_resting[:]):
        if resting.owner() is owner and resting.is_taken():
            awake = False
            try:
                awake = resting.crew.wake()
            finally:
                if not awake:
                    end(resting.crew)
            if awake:
                return resting.crew
    return None


def end_resting() -> None:
    """End all that rest."""
    for resting in _resting[:]:
        resting.end()


def end(crew: WorkerGroup) -> None:
    """End a crew, whatever becomes of its processes."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        crew.close(PATIENCE_SECONDS)


atexit.register(end_resting)
