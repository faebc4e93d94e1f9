"""The launcher, seen from the user's process: what it is told and how it ends. It runs launcher_main.py."""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import threading
from collections.abc import Sequence
from typing import Any

from dataset.runtime.processes.bootstrap import command
from dataset.runtime.processes.channel import EndedError, new_pair

_THREADS = "OMP_NUM_THREADS"
"""What OpenBLAS, MKL and OpenMP read if their own variables are not set; so what the user has set stands."""


def circumstances() -> tuple[Any, ...]:
    """All that the processes of a launcher would take over from this one now: equal where nothing has changed."""
    try:
        folder = os.getcwd()  # noqa: PTH109  # a text is all that is wanted
    except OSError:  # it has been removed
        folder = ""
    return command("", "", []), dict(os.environ), folder, _file(1), _file(2)


def _file(descriptor: int) -> tuple[int, int] | None:
    """Which file a descriptor stands for."""
    try:
        found = os.fstat(descriptor)
    except OSError:  # closed
        return None
    return found.st_dev, found.st_ino


class Launcher:
    """Starts and ends worker processes. Its process is started at once; it is ready a sixth of a second later.

    Args:
        modules: what is imported once, before there is a worker.
    """

    def __init__(self, modules: Sequence[str] = ()) -> None:
        self._lock = threading.Lock()  # one command at a time; nothing that a garbage collector calls takes it
        with new_pair() as (self._control, descriptor):
            self._process = subprocess.Popen(
                command("dataset.runtime.processes.launcher_main", "main", [descriptor], modules),
                stdin=subprocess.DEVNULL,
                pass_fds=[descriptor],
                env={_THREADS: "1", **os.environ},  # workers are the parallelism; their libraries need not add to it
                process_group=0,  # Ctrl-C in a terminal is for the user's process
            )

    def start(self, number: int, descriptors: Sequence[int]) -> None:
        """Start worker ``number`` with copies of its descriptors; how it went shows at its socket."""
        with self._lock, contextlib.suppress(EndedError):  # the worker's socket ends, too; then end() says why
            self._control.send(pickle.dumps(("start", number)), descriptors)

    def end(self, number: int) -> int | str:
        """End worker ``number``: its exit code, negative for a signal, or why there was no such process.

        Raises:
            EndedError: if the launcher itself has ended.
        """
        with self._lock:
            with contextlib.suppress(EndedError):  # it may have said why, before
                self._control.send(pickle.dumps(("end", number)))
            return self._receive_reply(number)

    def _receive_reply(self, number: int) -> int | str:
        while True:
            message, _ = self._control.receive()
            about, answer = pickle.loads(message)
            if about in {number, None}:  # else it answers a caller who was interrupted
                return answer  # type: ignore[no-any-return]  # see launcher_main.py

    def rest(self, seconds: float) -> None:
        """End in so many seconds, unless there is another command before: ``wake``. Does not wait."""
        with self._lock, contextlib.suppress(EndedError):  # then it has ended already
            self._control.send(pickle.dumps(("rest", seconds)))

    def wake(self) -> bool:
        """Whether it has not ended; then it does not rest any more.

        Raises:
            EndedError: if it ends now.
        """
        with self._lock:
            if self.has_ended:
                return False
            self._receive_reply(0)  # to the command to rest
            self._control.send(pickle.dumps(("wake", 0)))
            self._receive_reply(0)
            return True

    @property
    def has_ended(self) -> bool:
        """Whether its process has ended."""
        return self._process.poll() is not None

    def stop(self) -> None:
        """Have all workers killed, and end. Does not wait; from any thread."""
        self._control.shut_down()
        self._process.terminate()  # heeded only while there are no workers yet: it need not finish its imports

    def wait(self, timeout: float | None = None) -> None:
        """Wait until it has ended, and all workers with it.

        Raises:
            subprocess.TimeoutExpired: if that takes longer than ``timeout`` seconds.
        """
        self._process.wait(timeout)
        self._control.close()

    @property
    def exit_code(self) -> int:
        """Of the launcher itself, once it has ended."""
        return self._process.wait()

    def forget(self) -> None:
        """In a forked child: the process is the parent's."""
        self._process.returncode = 0  # or dropping it would warn of a process that still runs
