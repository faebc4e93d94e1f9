"""Counter of elements that an op dropped because they were damaged or had failed, for ``iterator.stats()``."""

from __future__ import annotations

from dataset.world import threading


class DroppedCount:
    """Thread-safe counter of dropped elements; several datasets that are read concurrently may share it.

    Attributes:
        total: the count so far.
    """

    __slots__ = ("_lock", "total")

    def __init__(self) -> None:
        self.total = 0
        self._lock = threading.Lock()

    def add(self, count: int) -> None:
        """Add ``count`` elements."""
        with self._lock:
            self.total += count
