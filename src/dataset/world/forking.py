"""Fork handling: a lock that keeps forks out of critical sections.

``whole`` is held by code that creates something a forked child must know about, from the first step to the last; a fork
waits for it. It is reentrant, because a fork may also happen in the garbage collector.
"""

from __future__ import annotations

from collections.abc import Callable

from dataset.world import register_at_fork, threading

whole = threading.RLock()


def at_fork(*, before: Callable[[], None] | None = None, in_child: Callable[[], None] | None = None) -> None:
    """Call ``before`` before each fork and ``in_child`` in the child, outside of critical sections."""

    def acquire() -> None:
        whole.acquire()
        if before is not None:
            before()

    def release_in_child() -> None:
        if in_child is not None:
            in_child()
        whole.release()

    register_at_fork(before=acquire, after_in_parent=whole.release, after_in_child=release_in_child)
