"""Input functions of TensorFlow 1: producers of rows and file names, and queues of batches, each filled by threads.

In TensorFlow they return tensors, which are computed in each step. Here they return functions: each call returns the
next value. The threads begin with ``start_queue_runners``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dataset.errors import OutOfRangeError
from dataset.plan.checks import require_callable, require_int
from dataset.queues.element_queue import ElementQueue
from dataset.queues.fifo_queue import FIFOQueue, PaddingFIFOQueue
from dataset.queues.random_shuffle_queue import RandomShuffleQueue
from dataset.queues.threads import QueueRunner, add_queue_runner


def input_producer(
    input_tensor: Any,
    *,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    name: str = "input_producer",
) -> FIFOQueue:
    """Return a queue of the rows of an array, epoch after epoch, like ``tf.train.input_producer``.

    With a Dataset: ``Dataset.from_tensor_slices(rows).shuffle(None, seed=seed).repeat(num_epochs)``.

    Args:
        input_tensor: components with a leading axis, in the structure of an element.
        num_epochs: how often to enqueue all rows, before the queue is closed; default: without end.
        shuffle: whether each epoch has another random order.
        seed: an int for repeatable orders.
        capacity: that of the queue.
        name: a name for error messages.

    Raises:
        ValueError: if there are no rows, or a number is out of range.

    Examples:
        >>> from dataset import queues
        >>> rows = queues.input_producer([10, 20, 30], num_epochs=2, shuffle=False)
        >>> with queues.start_queue_runners():
        ...     rows.dequeue_many(6)
        array([10, 20, 30, 10, 20, 30])
    """
    if num_epochs is not None:
        require_int(name, "num_epochs", num_epochs, minimum=1)
    queue = FIFOQueue(capacity, name=name)
    rows = queue.rows_of_batch(input_tensor)
    if not rows:
        raise ValueError(f"{name}(): there are no rows")
    generator = random.Random(seed)  # noqa: S311  # not for secrets

    def epochs() -> Iterator[Any]:
        order, left = list(range(len(rows))), num_epochs
        while left is None or left > 0:
            if shuffle:
                generator.shuffle(order)
            for index in order:
                yield rows[index]
            left = None if left is None else left - 1

    values = epochs()
    add_queue_runner(QueueRunner(queue, [lambda: queue.enqueue(next(values))]))
    return queue


def string_input_producer(
    string_tensor: Sequence[str | bytes],
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    name: str = "string_input_producer",
) -> FIFOQueue:
    """Return a queue of strings, such as file names, like ``tf.train.string_input_producer``.

    With a Dataset: ``Dataset.list_files(pattern, shuffle=shuffle, seed=seed).repeat(num_epochs)``.

    Args:
        string_tensor: the strings.
        num_epochs: as for ``input_producer``.
        shuffle: as for ``input_producer``.
        seed: as for ``input_producer``.
        capacity: as for ``input_producer``.
        name: as for ``input_producer``.

    Raises:
        ValueError: if there are no strings, or a number is out of range.

    Examples:
        >>> from dataset import queues
        >>> names = queues.string_input_producer(["a.txt", "b.txt"], num_epochs=1, shuffle=False)
        >>> with queues.start_queue_runners():
        ...     names.dequeue()
        b'a.txt'
    """
    strings = np.array([value if isinstance(value, bytes) else str(value).encode() for value in string_tensor], object)
    return input_producer(strings, num_epochs=num_epochs, shuffle=shuffle, seed=seed, capacity=capacity, name=name)


def range_input_producer(
    limit: int,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    name: str = "range_input_producer",
) -> FIFOQueue:
    """Return a queue of the numbers from 0 to ``limit - 1``, like ``tf.train.range_input_producer``.

    With a Dataset: ``Dataset.range(limit).shuffle(None, seed=seed).repeat(num_epochs)``.

    Args:
        limit: how many numbers, at least 1.
        num_epochs: as for ``input_producer``.
        shuffle: as for ``input_producer``.
        seed: as for ``input_producer``.
        capacity: as for ``input_producer``.
        name: as for ``input_producer``.

    Raises:
        ValueError: if a number is out of range.
    """
    numbers = np.arange(require_int(name, "limit", limit, minimum=1))
    return input_producer(numbers, num_epochs=num_epochs, shuffle=shuffle, seed=seed, capacity=capacity, name=name)


def slice_input_producer(
    tensor_list: Sequence[Any],
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    name: str = "slice_input_producer",
) -> Callable[[], Any]:
    """Return a function that returns one row of each of several arrays, like ``tf.train.slice_input_producer``.

    With a Dataset: ``Dataset.from_tensor_slices(tuple(tensor_list)).shuffle(None, seed=seed).repeat(num_epochs)``.

    Args:
        tensor_list: arrays with a leading axis of the same length.
        num_epochs: as for ``input_producer``.
        shuffle: as for ``input_producer``.
        seed: as for ``input_producer``.
        capacity: as for ``input_producer``.
        name: as for ``input_producer``.

    Raises:
        ValueError: if there are no rows, or a number is out of range.

    Examples:
        >>> from dataset import queues
        >>> row = queues.slice_input_producer([[1, 2], ["one", "two"]], num_epochs=1, shuffle=False)
        >>> with queues.start_queue_runners():
        ...     row()
        (np.int64(1), b'one')
    """
    rows = input_producer(
        tuple(tensor_list), num_epochs=num_epochs, shuffle=shuffle, seed=seed, capacity=capacity, name=name
    )
    return rows.dequeue


class QueuedBatches:
    """Batches from a queue that threads fill. Calling it returns the next batch; iterating it ends at the end.

    Attributes:
        queue: the queue of elements.
    """

    def __init__(self, queue: ElementQueue, batch_size: int, *, allow_smaller_final_batch: bool) -> None:
        self.queue = queue
        self._size = require_int("batch", "batch_size", batch_size, minimum=1)
        self._dequeue = queue.dequeue_up_to if allow_smaller_final_batch else queue.dequeue_many

    def __call__(self) -> Any:
        """Return the next batch.

        Raises:
            OutOfRangeError: at the end.
        """
        return self._dequeue(self._size)

    def __iter__(self) -> Iterator[Any]:
        while True:
            try:
                batch = self()
            except OutOfRangeError:
                return
            yield batch


def batch(
    tensors: Callable[[], Any],
    batch_size: int,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    element_spec: Any = None,
    name: str = "batch",
) -> QueuedBatches:
    """Return batches of what a function returns, called in threads, like ``tf.train.batch``.

    With a Dataset: ``dataset.batch(batch_size)``, or ``padded_batch``, and ``prefetch``.

    Args:
        tensors: a function that returns the next element, and raises OutOfRangeError or StopIteration at the end.
        batch_size: elements per batch.
        num_threads: how many threads call the function. With several, the order is not determined.
        capacity: that of the queue of elements.
        enqueue_many: whether the function returns several elements, as components with a leading axis.
        dynamic_pad: whether to pad the elements of a batch to its largest one; needs ``element_spec``.
        allow_smaller_final_batch: whether the last elements, if they are fewer, are a batch. Otherwise they are
            dropped.
        element_spec: that of the queue; see PaddingFIFOQueue.
        name: a name for error messages.

    Returns:
        An object to call for each batch, or to iterate.

    Raises:
        TypeError: if ``tensors`` is not a function.
        ValueError: if a number is out of range, or ``dynamic_pad`` has no ``element_spec``.

    Examples:
        >>> from dataset import queues
        >>> numbers = queues.range_input_producer(5, num_epochs=1, shuffle=False)
        >>> batches = queues.batch(numbers.dequeue, 2, allow_smaller_final_batch=True)
        >>> with queues.start_queue_runners():
        ...     list(batches)
        [array([0, 1]), array([2, 3]), array([4])]
    """
    functions = [tensors] * require_int(name, "num_threads", num_threads, minimum=1)
    return batch_join(
        functions, batch_size, capacity, enqueue_many, dynamic_pad, allow_smaller_final_batch, element_spec, name
    )


def batch_join(
    tensors_list: Sequence[Callable[[], Any]],
    batch_size: int,
    capacity: int = 32,
    enqueue_many: bool = False,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    element_spec: Any = None,
    name: str = "batch_join",
) -> QueuedBatches:
    """Return batches of what several functions return, each called in its own thread, like ``tf.train.batch_join``.

    With a Dataset: ``files.interleave(read, num_parallel_calls=n).batch(batch_size)``.

    Args:
        tensors_list: functions like that of ``batch``, usually each with a reader of its own.
        batch_size: as for ``batch``.
        capacity: as for ``batch``.
        enqueue_many: as for ``batch``.
        dynamic_pad: as for ``batch``.
        allow_smaller_final_batch: as for ``batch``.
        element_spec: as for ``batch``.
        name: as for ``batch``.

    Raises:
        TypeError: as for ``batch``.
        ValueError: as for ``batch``.
    """
    if dynamic_pad and element_spec is None:
        raise ValueError(f"{name}(): dynamic_pad=True needs element_spec, which says what may have different sizes")
    queue: ElementQueue = (PaddingFIFOQueue if dynamic_pad else FIFOQueue)(capacity, element_spec, name=name)
    return _filled(queue, tensors_list, batch_size, enqueue_many, allow_smaller_final_batch)


def shuffle_batch(
    tensors: Callable[[], Any],
    batch_size: int,
    capacity: int,
    min_after_dequeue: int,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    allow_smaller_final_batch: bool = False,
    element_spec: Any = None,
    name: str = "shuffle_batch",
) -> QueuedBatches:
    """Return batches of random elements from a RandomShuffleQueue, like ``tf.train.shuffle_batch``.

    With a Dataset: ``dataset.shuffle(buffer_size, seed=seed).batch(batch_size)``. Its order does not depend on threads,
    and resumes exactly.

    Args:
        tensors: as for ``batch``.
        batch_size: as for ``batch``.
        num_threads: as for ``batch``.
        enqueue_many: as for ``batch``.
        allow_smaller_final_batch: as for ``batch``.
        name: as for ``batch``.
        capacity: that of the queue, above ``min_after_dequeue``.
        min_after_dequeue: how many elements there are to choose from, at least.
        seed: as for RandomShuffleQueue.
        element_spec: as for RandomShuffleQueue.

    Raises:
        TypeError: as for ``batch``.
        ValueError: as for ``batch``.

    Examples:
        >>> from dataset import queues
        >>> numbers = queues.range_input_producer(6, num_epochs=1, shuffle=False)
        >>> batches = queues.shuffle_batch(numbers.dequeue, 3, capacity=8, min_after_dequeue=4)
        >>> with queues.start_queue_runners():
        ...     sorted(int(number) for one in batches for number in one)
        [0, 1, 2, 3, 4, 5]
    """
    functions = [tensors] * require_int(name, "num_threads", num_threads, minimum=1)
    queue = RandomShuffleQueue(capacity, min_after_dequeue, element_spec, seed=seed, name=name)
    return _filled(queue, functions, batch_size, enqueue_many, allow_smaller_final_batch)


def shuffle_batch_join(
    tensors_list: Sequence[Callable[[], Any]],
    batch_size: int,
    capacity: int,
    min_after_dequeue: int,
    seed: int | None = None,
    enqueue_many: bool = False,
    allow_smaller_final_batch: bool = False,
    element_spec: Any = None,
    name: str = "shuffle_batch_join",
) -> QueuedBatches:
    """Return batches of random elements of several functions, like ``tf.train.shuffle_batch_join``.

    With a Dataset: ``files.interleave(read, num_parallel_calls=n).shuffle(buffer_size).batch(batch_size)``.

    Args:
        tensors_list: as for ``batch_join``.
        batch_size: as for ``shuffle_batch``.
        capacity: as for ``shuffle_batch``.
        min_after_dequeue: as for ``shuffle_batch``.
        seed: as for ``shuffle_batch``.
        enqueue_many: as for ``shuffle_batch``.
        allow_smaller_final_batch: as for ``shuffle_batch``.
        element_spec: as for ``shuffle_batch``.
        name: as for ``shuffle_batch``.

    Raises:
        TypeError: as for ``batch``.
        ValueError: as for ``batch``.
    """
    queue = RandomShuffleQueue(capacity, min_after_dequeue, element_spec, seed=seed, name=name)
    return _filled(queue, tensors_list, batch_size, enqueue_many, allow_smaller_final_batch)


def _filled(
    queue: ElementQueue,
    functions: Sequence[Callable[[], Any]],
    batch_size: int,
    enqueue_many: bool,
    allow_smaller_final_batch: bool,
) -> QueuedBatches:
    for function in functions:
        require_callable(queue.name, "tensors", function)
    enqueue = queue.enqueue_many if enqueue_many else queue.enqueue
    batches = QueuedBatches(queue, batch_size, allow_smaller_final_batch=allow_smaller_final_batch)
    add_queue_runner(QueueRunner(queue, [_step(enqueue, function) for function in functions]))
    return batches


def _step(enqueue: Callable[[Any], None], function: Callable[[], Any]) -> Callable[[], None]:
    return lambda: enqueue(function())
