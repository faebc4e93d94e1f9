"""RandomShuffleQueue: a queue that returns elements in a random order."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from dataset.plan.checks import require_int
from dataset.queues.element_queue import ElementQueue


class RandomShuffleQueue(ElementQueue):
    """A queue that returns a random one of its elements, like ``tf.queue.RandomShuffleQueue``.

    While the queue is open, ``min_after_dequeue`` elements stay in it, so that there is always a choice: a call that
    would leave fewer waits. After ``close()``, all can be dequeued.

    Args:
        capacity: how many elements the queue holds at most, at least 1.
        min_after_dequeue: how many elements stay in the queue while it is open; less than ``capacity``.
        element_spec: as for FIFOQueue.
        seed: an int for a repeatable order, if a single thread dequeues and the elements come in the same order and at
            the same times; default: different in each queue.
        name: a name for error messages; default: that of the class.

    Raises:
        ValueError: if ``capacity`` or ``min_after_dequeue`` is out of range.

    Examples:
        >>> from dataset.queues import RandomShuffleQueue
        >>> queue = RandomShuffleQueue(capacity=10, min_after_dequeue=4, seed=1)
        >>> queue.enqueue_many(range(6))
        >>> first = queue.dequeue_many(2)
        >>> queue.dequeue(timeout=0)
        Traceback (most recent call last):
        TimeoutError: RandomShuffleQueue: 0 of 1 elements came in 0 s
        >>> queue.close()
        >>> rest = queue.dequeue_many(4)
        >>> sorted([*first.tolist(), *rest.tolist()])
        [0, 1, 2, 3, 4, 5]
    """

    def __init__(
        self,
        capacity: int,
        min_after_dequeue: int,
        element_spec: Any = None,
        *,
        seed: int | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(capacity, element_spec, name=name)
        self.min_after_dequeue = require_int(
            type(self).__name__, "min_after_dequeue", min_after_dequeue, minimum=0, maximum=self.capacity - 1
        )
        self._rows = []
        self._random = random.Random(seed)  # noqa: S311  # not for secrets

    def _put(self, row: Any) -> None:
        self._rows.append(row)

    def _take(self) -> Any:
        rows = self._rows
        index = self._random.randrange(len(rows))
        rows[index], rows[-1] = rows[-1], rows[index]
        return rows.pop()

    def _restore(self, rows: Iterable[Any]) -> None:
        self._rows.extend(rows)

    def _available(self) -> int:
        return len(self) if self._is_at_end else max(0, len(self) - self.min_after_dequeue)
