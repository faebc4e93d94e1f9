"""Cancellation of a thread that waits for a server.

An iterator that is closed waits for its threads. One of them may be waiting for a server that stalls, or for the time
of its next try. So the code that runs the reading makes a ``CancellationToken``, and reads inside its ``current()``.
Remote files that are opened there give up at once when another thread sets the token.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar

__all__ = ["CancellationToken", "current_interruption"]

_current: ContextVar[CancellationToken | None] = ContextVar("interruption", default=None)


class CancellationToken:
    """Is set once, by any thread, and wakes all who wait."""

    def __init__(self) -> None:
        self._set = threading.Event()
        # Guards _cancels. Reentrant, because the garbage collector may end an iterator in a thread that holds it.
        self._lock = threading.RLock()
        self._cancels: list[Callable[[], object]] = []

    def set(self) -> None:
        """Wake all who wait, and those who are going to. Does not wait for anybody."""
        with self._lock:
            self._set.set()
            cancels = list(self._cancels)
        for cancel in cancels:
            cancel()

    def is_set(self) -> bool:
        """Whether nobody needs the answer any more."""
        return self._set.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait for so long, or until it is set; whether it is."""
        return self._set.wait(seconds)

    @contextlib.contextmanager
    def cancelling(self, cancel: Callable[[], object]) -> Iterator[None]:
        """Have ``cancel`` called if it is set during the block, or was before."""
        with self._lock:
            self._cancels.append(cancel)
            late = self._set.is_set()
        try:
            if late:
                cancel()
            yield
        finally:
            with self._lock:
                self._cancels.remove(cancel)

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """Files that this thread opens during the block obey it, as long as they live."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)


def current_interruption() -> CancellationToken:
    """That of the block around; outside of any, one that is never set."""
    return _current.get() or CancellationToken()
