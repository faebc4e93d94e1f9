"""Pass counter: the number of the current epoch, the same in all workers of a DataLoader.

A Dataset counts the iterations over it, so that each epoch has a different order. A DataLoader does not pass such a
count to its workers: they are restarted in each epoch, or kept, and do not communicate with each other. However, they
share a seed that changes from pass to pass. So the numbers of the passes are stored by seed in shared memory. A worker
that finds its pass there uses the number stored with it; otherwise it is the first worker of the pass and uses the next
number. If two workers are first at the same time, both have read the same table and compute the same number, so no
locks are needed.

Unlike the seeds, the numbers are the same in all processes of a distributed training, whose workers divide the elements
of one order. If such processes share a table, each uses only its own entries.
"""

from __future__ import annotations

import os
import weakref
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from dataset.plan.node import Node
from dataset.world import mmap, multiprocessing

_WORKERS = 128  # rows of the table; a worker with a higher number shares that of another
_KEPT = 8  # passes in a row of the table, for loaders that run at the same time
_BITS = 20  # bits for the pass, and for the process, in an entry; the number of the pass is in the bits above
_MASK = (1 << _BITS) - 1
_TICKET = (1 << 2 * _BITS) - 1
_NUMBER_MAX = (1 << 63 - 2 * _BITS) - 1


class Passes:
    """Counter of the passes over one dataset. An entry is one integer, so it is read and written atomically."""

    def __init__(self) -> None:
        self._shared: Any = None  # a tensor with the table, after it was sent to a process that is not forked
        self._table: npt.NDArray[np.int64] = np.frombuffer(mmap.mmap(-1, 8 * (_WORKERS * _KEPT + 1)), np.int64)
        self._table.fill(-1)
        self._begun: dict[tuple[int, int], int] = {}  # passes started in this process, by seed and worker

    def __getstate__(self) -> dict[str, Any]:
        """Move the table to memory that torch shares with the processes that it starts; this uses a file."""
        if self._shared is None:
            self._shared = torch.from_numpy(self._table.copy()).share_memory_()
            self._table = self._shared.numpy()
        return {"_shared": self._shared}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._shared, self._table, self._begun = state["_shared"], state["_shared"].numpy(), {}

    @property
    def _entries(self) -> npt.NDArray[np.int64]:
        return self._table[1:].reshape(_WORKERS, _KEPT)

    def choose(self, epoch: int) -> None:
        """Use the number ``epoch`` for all passes that start from now on."""
        self._table[0] = epoch

    def begin(self, worker: Any) -> tuple[int, int]:
        """Start a pass; return its number and a ticket for ``go_on``.

        Args:
            worker: torch's information about this worker; None if this process is not a worker.
        """
        owner, seed, row = _who(worker)
        again = self._begun.get((seed, row), 0)
        self._begun[seed, row] = again + 1
        ticket = owner << _BITS | _hashed(seed, again)
        chosen = int(self._table[0])
        if chosen >= 0:
            return chosen, ticket
        number = self._number(ticket)
        self.go_on(worker, ticket, number)
        return number, ticket

    def _number(self, ticket: int) -> int:
        entries = [entry for entry in self._entries.ravel().tolist() if entry >= 0]
        mine = [entry >> 2 * _BITS for entry in entries if entry & _TICKET == ticket]
        owners = [entry >> 2 * _BITS for entry in entries if entry >> _BITS & _MASK == ticket >> _BITS]
        return max(mine) if mine else max(owners, default=-1) + 1

    def go_on(self, worker: Any, ticket: int, number: int) -> None:
        """Set the number of the pass with this ticket, from a saved state; the next pass gets the number after it."""
        *_, row = _who(worker)
        kept = self._entries[row].tolist()
        same = [place for place, entry in enumerate(kept) if entry >= 0 and entry & _TICKET == ticket]
        place = same[0] if same else kept.index(min(kept))
        self._entries[row, place] = min(number, _NUMBER_MAX) << 2 * _BITS | ticket


def _who(worker: Any) -> tuple[int, int, int]:
    """Return the hashed id of the process that started the pass, the seed of the pass, and the row of the table."""
    if worker is None:
        return _hashed(os.getpid()), -1, 0
    parent = multiprocessing.parent_process()
    owner = os.getpid() if parent is None else parent.pid
    return _hashed(owner or 0), worker.seed - worker.id, worker.id % _WORKERS


def _hashed(*numbers: int) -> int:
    return zlib.crc32(repr(numbers).encode()) & _MASK


_passes: weakref.WeakKeyDictionary[Node, Passes] = weakref.WeakKeyDictionary()


def passes_of(plan: Node) -> Passes:
    """Return the pass counter of a plan, shared by all tensor datasets of this plan in this process."""
    if plan not in _passes:
        _passes[plan] = Passes()
    return _passes[plan]
