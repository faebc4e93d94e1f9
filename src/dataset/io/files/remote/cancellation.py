"""Cancellation of threads that wait for a server.

Closing an iterator waits for its threads. A thread may be waiting for a stalled server or for its next try. So the code
that runs the reading creates a ``CancellationToken`` and reads inside its ``current()``. Remote files that are opened
there stop waiting at once when another thread sets the token.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

from dataset.options import FilesOptions
from dataset.world import threading

_current: ContextVar[CancellationToken | None] = ContextVar("interruption", default=None)


class CancellationToken:
    """Cancellation token: any thread sets it once, which wakes all waiting threads.

    Args:
        files: options for the files that are opened in its ``current()`` block.

    Attributes:
        files: the same.
    """

    def __init__(self, files: FilesOptions | None = None) -> None:
        self.files = files
        self._set = threading.Event()
        # Guards _cancels. Reentrant, because the garbage collector may close an iterator in a thread that holds it.
        self._lock = threading.RLock()
        self._cancels: list[Callable[[], object]] = []

    def set(self) -> None:
        """Cancel all current and future waits. Does not block."""
        with self._lock:
            self._set.set()
            cancels = list(self._cancels)
        for cancel in cancels:
            cancel()

    def is_set(self) -> bool:
        """Return whether the token was set."""
        return self._set.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait until the token is set or the time has passed; return whether it is set."""
        return self._set.wait(seconds)

    @contextlib.contextmanager
    def cancelling(self, cancel: Callable[[], object]) -> Iterator[None]:
        """Call ``cancel`` if the token is set during the block, or was set before."""
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
        """Make files that this thread opens during the block use this token for their lifetime."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)


def current_interruption() -> CancellationToken:
    """Return the token of the enclosing ``current()`` block; outside of one, a token that is never set."""
    return _current.get() or CancellationToken()
