"""Who owns the background threads of an iterator, and how they end.

Every iterator has one Coordinator. Operators start threads through it, and nowhere else. A thread ends when its work
is done or when the coordinator tells it to stop; the last thing to happen, by whichever thread is last, is that the
operators are closed. There are five ways to the end:

- ``close()``: stop, wait for the threads, close the operators.
- The end of the data: the same, but wait a bounded time only.
- The iterator is dropped: stop, do not wait (the collector may be running in the very thread that has to end);
  the last thread closes the operators.
- The interpreter exits: stop all, wait a bounded time. A thread that is blocked in user code is left behind; threads
  are daemons, so it does not hold up the exit.
- ``fork``: the child has no threads and shares file offsets with its parent, so its copies of iterators refuse to work.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections.abc import Callable

from dataset.errors import ClosedError

PATIENCE_SECONDS = 2.0
"""How long the end of the data, or of the program, waits for threads that may be blocked in user code."""

_live: weakref.WeakSet[Coordinator] = weakref.WeakSet()


class Coordinator:
    """Starts, stops and outlives the background threads of one iterator."""

    def __init__(self) -> None:
        # Reentrant, because the garbage collector may call stop() in a thread that is inside start().
        self._lock = threading.RLock()  # guards all fields below
        self._threads: dict[threading.Thread, Callable[[], None]] = {}
        self._finish: Callable[[], None] | None = None
        self.stopped = False
        self.forked = False
        _live.add(self)

    def check_usable(self) -> None:
        """Raise ClosedError where no work can be done any more."""
        if self.forked:
            raise ClosedError("this iterator belongs to the parent process; call iter() in the child")
        if self.stopped:
            raise ClosedError("this iterator is closed; call iter() for a new one")

    def start(self, run: Callable[[], None], wake: Callable[[], None], name: str) -> threading.Thread:
        """Run ``run`` in a thread; ``wake`` must make it return soon, from wherever it waits."""
        thread = threading.Thread(target=self._run, args=(run,), name=f"dataset-{name}", daemon=True)
        with self._lock:
            self.check_usable()
            self._threads[thread] = wake
            try:
                thread.start()
            except RuntimeError:  # the system gives no more threads
                del self._threads[thread]
                raise
        return thread

    def _run(self, run: Callable[[], None]) -> None:
        try:
            run()
        finally:
            with self._lock:
                del self._threads[threading.current_thread()]
            self._finish_if_last()

    def stop(self) -> None:
        """Tell all threads to end, without waiting for them."""
        if self.forked:
            return
        with self._lock:
            self.stopped = True
            wakes = list(self._threads.values())
        for wake in wakes:
            wake()

    def join(self, timeout: float | None = None) -> None:
        """Wait until the threads have ended; from one of them, for the others."""
        if self.forked:
            return
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._lock:
            threads = [t for t in self._threads if t is not threading.current_thread()]
        for thread in threads:
            thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))

    def shut_down(self, finish: Callable[[], None], *, wait: bool) -> None:
        """Stop; ``finish`` is called once, after the last thread has ended."""
        if self.forked:
            return
        with self._lock:
            self._finish = finish
        self.stop()
        if wait:
            self.join()
        self._finish_if_last()

    def _finish_if_last(self) -> None:
        with self._lock:
            if self._threads or self._finish is None:
                return
            finish, self._finish = self._finish, None
        finish()


def _stop_all() -> None:
    coordinators = list(_live)
    for coordinator in coordinators:
        coordinator.stop()
    deadline = time.monotonic() + PATIENCE_SECONDS
    for coordinator in coordinators:
        coordinator.join(max(0.0, deadline - time.monotonic()))


def _mark_forked() -> None:
    for coordinator in list(_live):
        coordinator.forked = True


atexit.register(_stop_all)
if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_mark_forked)
