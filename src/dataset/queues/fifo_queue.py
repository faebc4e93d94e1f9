"""First-in, first-out queues: FIFOQueue, and PaddingFIFOQueue for elements of different shapes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dataset.plan.spec import BYTES, TensorSpec
from dataset.queues.element_queue import ElementQueue
from dataset.runtime.chunks.batching import pad_column
from dataset.runtime.chunks.chunk import Column


class FIFOQueue(ElementQueue):
    """A queue that returns elements in the order in which they were enqueued, like ``tf.queue.FIFOQueue``.

    Elements are those of a dataset: a component, or a tuple, dict or class instance of components. They are converted
    as by ``Dataset.from_generator``, and copied. Any number of threads may enqueue and dequeue; they are served first
    come, first served.

    Args:
        capacity: how many elements the queue holds at most, at least 1.
        element_spec: the structure, dtypes and shapes of the elements. By default, the first element determines the
            structure of all.
        name: a name for error messages; default: that of the class.

    Raises:
        ValueError: if ``capacity`` is less than 1.

    Examples:
        >>> from dataset.queues import FIFOQueue
        >>> queue = FIFOQueue(capacity=10)
        >>> queue.enqueue((1, "one"))
        >>> queue.enqueue_many(([2, 3], ["two", "three"]))
        >>> queue.dequeue()
        (np.int64(1), b'one')
        >>> queue.close()
        >>> queue.dequeue_many(2)
        (array([2, 3]), array([b'two', b'three'], dtype=object))
        >>> queue.dequeue()
        Traceback (most recent call last):
        dataset.errors.OutOfRangeError: FIFOQueue: closed, with fewer than 1 elements left
    """

    def _put(self, row: Any) -> None:
        self._rows.append(row)

    def _take(self) -> Any:
        return self._rows.popleft()

    def _restore(self, rows: Iterable[Any]) -> None:
        self._rows.extendleft(reversed(list(rows)))


class PaddingFIFOQueue(FIFOQueue):
    """A FIFOQueue that pads the elements of a batch to the largest one, like ``tf.queue.PaddingFIFOQueue``.

    ``dequeue`` returns elements as they are. ``dequeue_many`` and ``dequeue_up_to`` pad each component at the end of
    every dimension whose size is None in ``element_spec``: numbers with 0, booleans with False, bytes with ``b""``.

    Args:
        capacity: how many elements the queue holds at most, at least 1.
        element_spec: TensorSpecs in the structure of an element, each with a shape of known rank.
        name: a name for error messages; default: that of the class.

    Raises:
        TypeError: if ``element_spec`` contains other specs.
        ValueError: if ``capacity`` is less than 1, or a rank is unknown.

    Examples:
        >>> from dataset import TensorSpec
        >>> from dataset.queues import PaddingFIFOQueue
        >>> queue = PaddingFIFOQueue(10, TensorSpec((None,), "int64"))
        >>> queue.enqueue([1])
        >>> queue.enqueue([2, 3])
        >>> queue.dequeue_many(2)
        array([[1, 0],
               [2, 3]])
    """

    def __init__(self, capacity: int, element_spec: Any, *, name: str | None = None) -> None:
        super().__init__(capacity, element_spec, name=name)
        for spec in self._specs:
            if not isinstance(spec, TensorSpec):
                raise TypeError(f"{self.name}: only arrays can be padded, got {spec!r} in element_spec")
            if spec.shape is None:
                raise ValueError(f"{self.name}: the rank of {spec!r} in element_spec must be known; use (None,)")

    def _stacked(self, index: int, column: Column) -> Any:
        spec = self._specs[index]
        return pad_column(column, spec.shape or (), b"" if spec.dtype == BYTES else 0)
