"""A launcher and its workers: what one operator has, and may be kept from one iteration to the next (keeping.py)."""

from __future__ import annotations

import weakref
from collections.abc import Container, Sequence

from dataset.runtime.processes.channel import EndedError
from dataset.runtime.processes.forking import at_fork
from dataset.runtime.processes.launcher import Launcher, circumstances
from dataset.runtime.processes.worker import Worker

_live: weakref.WeakSet[WorkerGroup] = weakref.WeakSet()


class WorkerGroup:
    """Belongs to one user at a time, whose locks guard it.

    Args:
        modules: what is imported once, before there is a worker.

    Attributes:
        workers: those that have not ended, by number.
        started: how many there were, ever.
    """

    def __init__(self, modules: Sequence[str] = ()) -> None:
        self.workers: dict[int, Worker] = {}
        self.started = 0
        self._forked = False
        self._modules = modules
        self._circumstances = circumstances()
        self._launcher = Launcher(modules)
        self._ended_launchers: list[Launcher] = []  # kept, because workers that they started may ask them about it
        _live.add(self)

    def start(self) -> int:
        """Start one more worker, and a new launcher if that has ended, such as by a signal: the worker's number."""
        if self._launcher.has_ended:
            self._ended_launchers.append(self._launcher)
            self._launcher = Launcher(self._modules)
        self.started += 1
        self.workers[self.started] = Worker(self._launcher, self.started)
        return self.started

    def rest(self, spared: Container[int], seconds: float) -> None:
        """Have these workers forget their work, kill the others, and end in so many seconds, unless woken before."""
        for number, worker in list(self.workers.items()):
            if number not in spared or not worker.rest():
                worker.close()
                worker.end()
                del self.workers[number]
        self._launcher.rest(seconds)

    def wake(self) -> bool:
        """Whether the processes are there, as a new launcher would start them now; then they stay."""
        try:
            return not self._forked and self._circumstances == circumstances() and self._launcher.wake()
        except EndedError:
            return False

    def stop(self) -> None:
        """Have all processes killed. Does not wait; from any thread."""
        if self._forked:
            return
        self._launcher.stop()
        for worker in list(self.workers.values()):
            worker.shut_down()

    def close(self, timeout: float | None = None) -> None:
        """Stop, and wait until no process is left, for so many seconds at most.

        Raises:
            subprocess.TimeoutExpired: if that takes longer.
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
        """In a forked child: the processes are the parent's."""
        self._forked = True
        self._launcher.forget()


def _forget_all() -> None:
    for crew in list(_live):
        crew._forget()  # noqa: SLF001  # its own class


at_fork(in_child=_forget_all)
