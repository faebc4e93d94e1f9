"""Which epoch it is, the same in all workers of a DataLoader.

Iterating over a Dataset counts the iterations, so that each epoch has another order. A DataLoader gives its workers no
such count: they begin anew in each epoch, or stay, and tell each other nothing. But they have a seed in common that is
another one in the next pass. So the numbers of passes stand in memory that all processes share. A worker that finds its
pass there takes the number beside it; else it is the first, and takes the next number. Should two be the first at once,
both have seen the same numbers, and come to the same next one: nobody waits for anybody.

The numbers, unlike the seeds, are alike in all processes of a training, whose workers share out the elements of one
order. Where such processes have a table in common, each goes by its own part of it.
"""

from __future__ import annotations

import mmap
import multiprocessing
import os
import weakref
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from dataset.plan.node import Node

_WORKERS = 128  # rows of the table; a worker with a higher number shares that of another
_KEPT = 8  # passes in a row, for loaders that run side by side
_BITS = 20  # of a pass, and of a process, in an entry; the number is above them
_MASK = (1 << _BITS) - 1
_TICKET = (1 << 2 * _BITS) - 1
_NUMBER_MAX = (1 << 63 - 2 * _BITS) - 1


class Passes:
    """Counts the passes over one dataset. An entry is one integer, so that nobody ever sees half of one."""

    def __init__(self) -> None:
        self._shared: Any = None  # a tensor with the table, once it was sent to a process that is not forked
        self._table: npt.NDArray[np.int64] = np.frombuffer(mmap.mmap(-1, 8 * (_WORKERS * _KEPT + 1)), np.int64)
        self._table.fill(-1)
        self._begun: dict[tuple[int, int], int] = {}  # in this process, by seed and worker

    def __getstate__(self) -> dict[str, Any]:
        """The table goes into memory that torch shares with the processes that it starts, and takes a file for it."""
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
        """Have all passes that begin from now on be number ``epoch``."""
        self._table[0] = epoch

    def begin(self, worker: Any) -> tuple[int, int]:
        """A pass begins: its number, and a ticket for ``go_on``.

        Args:
            worker: what torch says of the worker that this is; None in the process that iterates itself.
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
        """Say which pass the one with this ticket is, from a saved state: the next is behind it."""
        *_, row = _who(worker)
        kept = self._entries[row].tolist()
        same = [place for place, entry in enumerate(kept) if entry >= 0 and entry & _TICKET == ticket]
        place = same[0] if same else kept.index(min(kept))
        self._entries[row, place] = min(number, _NUMBER_MAX) << 2 * _BITS | ticket


def _who(worker: Any) -> tuple[int, int, int]:
    """(process whose pass it is, seed of the pass, row of the table)."""
    if worker is None:
        return _hashed(os.getpid()), -1, 0
    parent = multiprocessing.parent_process()
    owner = os.getpid() if parent is None else parent.pid
    return _hashed(owner or 0), worker.seed - worker.id, worker.id % _WORKERS


def _hashed(*numbers: int) -> int:
    return zlib.crc32(repr(numbers).encode()) & _MASK


_passes: weakref.WeakKeyDictionary[Node, Passes] = weakref.WeakKeyDictionary()


def passes_over(plan: Node) -> Passes:
    """The count of passes over a plan, which all datasets of tensors made from it in this process share."""
    if plan not in _passes:
        _passes[plan] = Passes()
    return _passes[plan]
