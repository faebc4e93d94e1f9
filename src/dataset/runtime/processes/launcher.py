"""Launcher handle: the launcher process as seen from the user's process. The launcher runs launcher_main.py."""

from __future__ import annotations

import contextlib
import os
import pickle
from collections.abc import Sequence
from typing import Any

from dataset.runtime.processes.bootstrap import command
from dataset.runtime.processes.transport.channel import EndedError, new_pair
from dataset.world import signal, subprocess, threading

_THREADS = "OMP_NUM_THREADS"
"""Read by OpenBLAS, MKL and OpenMP if their own variables are not set; a value set by the user takes precedence."""

_REPLY_SECONDS = 10.0
"""A launcher that does not reply for this long, for example because it is stopped, is killed. Replies take 1 ms."""


def circumstances() -> tuple[Any, ...]:
    """Return everything that a launcher would inherit from this process now; equal results mean no change."""
    try:
        folder = os.getcwd()  # noqa: PTH109  # only a string is needed
    except OSError:  # the directory has been removed
        folder = ""
    return command("", "", []), dict(os.environ), folder, _file(1), _file(2)


def _file(descriptor: int) -> tuple[int, int] | None:
    """Return the identity of the file that a descriptor refers to."""
    try:
        found = os.fstat(descriptor)
    except OSError:  # closed
        return None
    return found.st_dev, found.st_ino


class Launcher:
    """Starts and ends worker processes. Its process starts immediately and is ready a sixth of a second later.

    Args:
        modules: the modules that it imports once, before it forks a worker.
    """

    def __init__(self, modules: Sequence[str] = ()) -> None:
        self._lock = threading.Lock()  # one command at a time; never taken by code that the garbage collector calls
        with new_pair() as (self._control, descriptor):
            self._process = subprocess.Popen(
                command("dataset.runtime.processes.launcher_main", "main", [descriptor], modules),
                stdin=subprocess.DEVNULL,
                pass_fds=[descriptor],
                env={_THREADS: "1", **os.environ},  # the parallelism comes from the workers, not their libraries
                process_group=0,  # Ctrl-C in a terminal must reach only the user's process
            )

    def start(self, number: int, descriptors: Sequence[int]) -> None:
        """Start worker ``number`` with copies of its descriptors. A failure is visible at the worker's socket."""
        with self._lock, contextlib.suppress(EndedError):  # the worker's socket ends, too, and end() returns why
            self._control.send(pickle.dumps(("start", number)), descriptors)

    def end(self, number: int) -> int | str:
        """End worker ``number``; return its exit code (negative for a signal), or why there was no such process.

        Raises:
            EndedError: if the launcher itself has ended, or is killed because it hangs.
        """
        with self._lock:
            with contextlib.suppress(EndedError):  # it may have sent the reason before
                self._control.send(pickle.dumps(("end", number)))
            return self._receive_reply(number)

    def _receive_reply(self, number: int) -> int | str:
        while True:
            if not self._control.has_more(_REPLY_SECONDS):
                self._process.kill()
                raise EndedError
            message, _ = self._control.receive()
            about, answer = pickle.loads(message)
            if about in {number, None}:  # otherwise it is the reply to an interrupted call
                return answer  # type: ignore[no-any-return]  # see launcher_main.py

    def rest(self, seconds: float) -> None:
        """Make the launcher end after ``seconds``, unless another command arrives before: ``wake``. Does not wait."""
        with self._lock, contextlib.suppress(EndedError):  # it has already ended
            self._control.send(pickle.dumps(("rest", seconds)))

    def wake(self) -> bool:
        """Cancel the rest and return True; return False if the launcher has ended.

        Raises:
            EndedError: if the launcher is just ending, or is killed because it hangs.
        """
        with self._lock:
            if self.has_ended:
                return False
            self._receive_reply(0)  # the reply to the rest command
            self._control.send(pickle.dumps(("wake", 0)))
            self._receive_reply(0)
            return True

    @property
    def has_ended(self) -> bool:
        """Whether its process has ended."""
        return self._process.poll() is not None

    def stop(self) -> None:
        """Kill all workers and end the launcher. Does not wait; may be called from any thread."""
        self._control.shut_down()
        self._process.terminate()  # effective only before it starts workers: it need not finish its imports
        self._process.send_signal(signal.SIGCONT)  # otherwise it would not end if it is stopped

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the launcher and all its workers have ended.

        Raises:
            subprocess.TimeoutExpired: if that takes longer than ``timeout`` seconds.
        """
        self._process.wait(timeout)
        self._control.close()

    @property
    def exit_code(self) -> int:
        """The exit code of the launcher itself; waits for its end."""
        return self._process.wait()

    def forget(self) -> None:
        """In a forked child: ignore the process, which belongs to the parent."""
        self._process.returncode = 0  # otherwise Popen would warn about a running process
