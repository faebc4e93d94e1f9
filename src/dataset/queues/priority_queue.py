"""PriorityQueue: a queue that returns the element with the lowest priority number first."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from dataset.errors import SpecError
from dataset.queues.element_queue import ElementQueue, FailedElement


class PriorityQueue(ElementQueue):
    """A queue whose elements begin with a priority; the lowest comes first, like ``tf.queue.PriorityQueue``.

    Elements are tuples ``(priority, component, ...)``. Elements of the same priority come in the order in which they
    were enqueued, which TensorFlow does not promise.

    Args:
        capacity: how many elements the queue holds at most, at least 1.
        element_spec: as for FIFOQueue, including the priority, an int64.
        name: a name for error messages; default: that of the class.

    Raises:
        ValueError: if ``capacity`` is less than 1.

    Examples:
        >>> from dataset.queues import PriorityQueue
        >>> queue = PriorityQueue(capacity=10)
        >>> queue.enqueue((3, "later"))
        >>> queue.enqueue((1, "first"))
        >>> queue.dequeue()
        (np.int64(1), b'first')
    """

    def __init__(self, capacity: int, element_spec: Any = None, *, name: str | None = None) -> None:
        super().__init__(capacity, element_spec, name=name)
        self._rows: list[tuple[float, int, Any]] = []  # a heap
        self._numbers = itertools.count()
        self._restored = itertools.count(-1, -1)

    def _put(self, row: Any) -> None:
        heapq.heappush(self._rows, (_priority(row), next(self._numbers), row))

    def _take(self) -> Any:
        return heapq.heappop(self._rows)[2]

    def _restore(self, rows: Iterable[Any]) -> None:
        for row in reversed(list(rows)):
            heapq.heappush(self._rows, (_priority(row), next(self._restored), row))

    def _converted(self, rows: list[Any]) -> list[Any]:
        converted = super()._converted(rows)
        for row in converted:
            if not (isinstance(row, tuple) and len(row) > 1 and isinstance(row[0], np.integer)):
                raise SpecError(
                    f"{self.name}: an element must be a tuple (priority, component, ...) with an integer first, got "
                    f"{row!r:.100}"
                )
        return converted


def _priority(row: Any) -> float:
    return -math.inf if isinstance(row, FailedElement) else int(row[0])
