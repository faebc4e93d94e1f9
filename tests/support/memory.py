"""Limits of Python's memory."""

from __future__ import annotations

import contextlib
import tracemalloc
from collections.abc import Iterator


@contextlib.contextmanager
def memory_below(limit: float) -> Iterator[None]:
    """Check that the block never holds more than this many bytes of new memory."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()
