"""Counts the elements that an op left out because they were damaged or had failed, for ``iterator.stats()``."""

from __future__ import annotations

import threading


class DroppedCount:
    """How many elements were left out. Any thread may add: of several datasets that are read at once, all do.

    Attributes:
        total: so far.
    """

    __slots__ = ("_lock", "total")

    def __init__(self) -> None:
        self.total = 0
        self._lock = threading.Lock()

    def add(self, count: int) -> None:
        """So many more."""
        with self._lock:
            self.total += count
