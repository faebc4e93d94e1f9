"""Guard for file names: inside it, no source may use a name, because the name may come from a saved state.

A saved state is untrusted: a user's function that is called with a value from a state must not open the file that the
value names. ``io/files/opening.py`` calls ``check_name`` before it uses a name, and ``ops/interleave/subdatasets.py``
calls the user's functions inside ``watching_names``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

from dataset.errors import StateError


class _Watch:
    """Record of whether a name was used inside ``watching_names``."""

    is_used = False


_watch: ContextVar[_Watch | None] = ContextVar("_watch", default=None)


@contextlib.contextmanager
def watching_names() -> Iterator[_Watch]:
    """Refuse all names inside the block, and record whether one was used."""
    watch = _Watch()
    token = _watch.set(watch)
    try:
        yield watch
    finally:
        _watch.reset(token)


def check_name() -> None:
    """Check that a source may use a name; called before it does.

    Raises:
        StateError: if the name may come from a state. The caller of ``watching_names`` looks it up and tries again.
    """
    watch = _watch.get()
    if watch is not None:
        watch.is_used = True
        raise StateError("a name that may come from a saved state has not been looked up yet")
