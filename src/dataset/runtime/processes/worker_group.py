"""Worker group: a launcher and its workers, used by one operator at a time (resting_groups.py)."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Container, Sequence
from types import ModuleType
from typing import Any

from dataset.runtime.processes.launcher import Launcher, circumstances
from dataset.runtime.processes.transport.channel import EndedError
from dataset.runtime.processes.worker import Worker
from dataset.world.forking import at_fork

_live: weakref.WeakSet[WorkerGroup] = weakref.WeakSet()


class WorkerGroup:
    """A launcher and its workers. It has one user at a time, whose locks guard it.

    Args:
        modules: the modules that the launcher imports once, before it forks a worker.

    Attributes:
        workers: the workers that have not ended, by number.
        started: the number of workers that were ever started.
    """

    def __init__(self, modules: Sequence[str] = ()) -> None:
        self.workers: dict[int, Worker] = {}
        self.started = 0
        self._forked = False
        self._modules = (*modules, "cloudpickle")  # it decodes functions that are sent by value
        self._circumstances = circumstances()
        self._specs = _module_specs()
        self._launcher = Launcher(self._modules)
        self._ended_launchers: list[Launcher] = []  # kept, because their workers ask them for their exit status
        _live.add(self)

    def start(self) -> int:
        """Start a worker, and a new launcher if the old one has ended; return the worker's number."""
        if self._launcher.has_ended:
            self._ended_launchers.append(self._launcher)
            self._launcher = Launcher(self._modules)
        self.started += 1
        self.workers[self.started] = Worker(self._launcher, self.started)
        return self.started

    def rest(self, spared: Container[int], seconds: float) -> None:
        """Make the ``spared`` workers rest, kill the others, and end after ``seconds`` unless woken before.

        A worker that was already resting, because the operator did not need it, ends ``seconds`` after it began to.
        """
        for number, worker in list(self.workers.items()):
            if number not in spared or not worker.rest(seconds):
                worker.close()
                worker.end()
                del self.workers[number]
        self._launcher.rest(seconds)

    @property
    def has_ended(self) -> bool:
        """Whether its launcher has ended, and all workers with it."""
        return self._launcher.has_ended

    @property
    def is_usable(self) -> bool:
        """Whether its launcher runs, and a new group would find the same environment and the same code of modules."""
        specs = _module_specs()
        return (
            self._circumstances == circumstances()
            and all(specs.get(name, spec) is spec for name, spec in self._specs.items())
            and not self.has_ended
        )

    def wake(self) -> bool:
        """Wake the processes; return False if the group is not usable."""
        try:
            awake = self.is_usable and self._launcher.wake()
        except EndedError:
            return False
        self._specs = _module_specs() | self._specs  # the processes may import what was imported here since
        return awake

    def stop(self) -> None:
        """Kill all processes. Does not wait; may be called from any thread."""
        if self._forked:
            return
        self._launcher.stop()
        for worker in list(self.workers.values()):
            worker.shut_down()

    def close(self, timeout: float | None = None) -> None:
        """Stop, and wait until all processes have ended.

        Raises:
            subprocess.TimeoutExpired: if that takes longer than ``timeout`` seconds.
        """
        if self._forked:
            return
        self.stop()
        for launcher in (*self._ended_launchers, self._launcher):
            launcher.wait(timeout)
        for worker in self.workers.values():
            worker.close()
        self.workers.clear()

    def _forget(self) -> None:
        """In a forked child: ignore the processes, which belong to the parent."""
        self._forked = True
        self._launcher.forget()


def _module_specs() -> dict[str, Any]:
    """Return the specs of the imported modules; one that is reloaded, or removed and imported again, has another."""
    return {
        name: object.__getattribute__(module, "__dict__").get("__spec__")  # a lazy module would load on plain access
        for name, module in sys.modules.copy().items()
        if issubclass(type(module), ModuleType)
    }


def _forget_all() -> None:
    for group in list(_live):
        group._forget()  # noqa: SLF001  # its own class


at_fork(in_child=_forget_all)
