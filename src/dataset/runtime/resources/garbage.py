"""Garbage collection at fixed steps, instead of whenever Python decides, for ``options.garbage_collection``.

A collection of a large program takes tens to hundreds of milliseconds. In training over several processes, each step
takes as long as the slowest process, so collections at different steps delay all of them. Here every process collects
at the same steps. What exists at the first step, such as modules and the model, is frozen: it is not searched again.
"""

from __future__ import annotations

import gc

from dataset.world import register_at_fork, threading, time

_lock = threading.RLock()  # guards the following: a finalizer may end an iteration inside of any other
_users = 0
_was_enabled = _has_frozen = False


class ScheduledCollection:
    """Collects each time the consumer has requested ``every`` elements, from ``begin`` to ``end``.

    Attributes:
        collections: how often it has collected.
        seconds: how long that took.
    """

    def __init__(self, every: int) -> None:
        self._every = every
        self._next = every
        self._is_active = False
        self.collections = 0
        self.seconds = 0.0

    def begin(self) -> None:
        """Collect and freeze what exists, and switch automatic collection off, unless another iteration has."""
        global _users, _was_enabled, _has_frozen  # noqa: PLW0603  # the collector belongs to the process
        with _lock:
            self._is_active = True
            _users += 1
            if _users > 1:
                return
            _was_enabled, _has_frozen = gc.isenabled(), not gc.get_freeze_count()
            gc.collect()
            if _has_frozen:  # otherwise the program has done it, and decides when to end it
                gc.freeze()
            gc.disable()

    def look(self, elements: int) -> int:
        """Collect if ``elements`` have been requested that are enough; return after how many more to look again."""
        if elements >= self._next:
            self._next = elements - elements % self._every + self._every
            began = time.perf_counter()
            gc.collect()
            self.seconds += time.perf_counter() - began
            self.collections += 1
        return self._next - elements

    def end(self) -> None:
        """Restore the collector, unless another iteration needs it so."""
        global _users  # noqa: PLW0603  # as above
        with _lock:
            if not self._is_active:
                return
            self._is_active = False
            _users -= 1
            if not _users:
                _restore()


def _restore() -> None:
    if _has_frozen:
        gc.unfreeze()
    if _was_enabled:
        gc.enable()


def _restore_in_child() -> None:
    """In a child process: the iterations belong to the parent."""
    global _users, _lock  # noqa: PLW0603  # as above
    _lock = threading.RLock()
    if _users:
        _users = 0
        if _was_enabled:
            gc.enable()  # what is frozen stays so, which keeps its memory shared with the parent


register_at_fork(after_in_child=_restore_in_child)
