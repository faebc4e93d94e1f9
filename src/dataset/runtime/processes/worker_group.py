"""Worker group: a launcher and its workers, used by one operator and kept between iterations (resting_groups.py)."""

from __future__ import annotations

import weakref
from collections.abc import Container, Sequence

from dataset.runtime.processes.forking import at_fork
from dataset.runtime.processes.launcher import Launcher, circumstances
from dataset.runtime.processes.transport.channel import EndedError
from dataset.runtime.processes.worker import Worker

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
        self._modules = modules
        self._circumstances = circumstances()
        self._launcher = Launcher(modules)
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
        """Make the ``spared`` workers rest, kill the others, and end after ``seconds`` unless woken before."""
        for number, worker in list(self.workers.items()):
            if number not in spared or not worker.rest():
                worker.close()
                worker.end()
                del self.workers[number]
        self._launcher.rest(seconds)

    def wake(self) -> bool:
        """Wake the processes; return False if they have ended, or if new ones would get another environment."""
        try:
            return not self._forked and self._circumstances == circumstances() and self._launcher.wake()
        except EndedError:
            return False

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


def _forget_all() -> None:
    for group in list(_live):
        group._forget()  # noqa: SLF001  # its own class


at_fork(in_child=_forget_all)
