"""Queues: push elements into a pipeline from other threads and processes, with backpressure and a clean end.

The queues and their threads behave as those of TensorFlow 1 with the same names. New pipelines need them where elements
come from outside: from a simulator, a service, or user code that cannot be a generator. ``Dataset.from_queue`` reads
one.

    from dataset.queues import Coordinator, FIFOQueue, QueueRunner

    queue = FIFOQueue(capacity=1000)
    ... queue.enqueue(element)            # in any thread; waits while the queue is full
    ... queue.close()                     # no more elements

    for batch in Dataset.from_queue(queue).batch(32): ...
"""

from dataset.errors import CancelledError as CancelledError
from dataset.errors import OutOfRangeError as OutOfRangeError
from dataset.queues.element_queue import ElementQueue
from dataset.queues.fifo_queue import FIFOQueue, PaddingFIFOQueue
from dataset.queues.priority_queue import PriorityQueue
from dataset.queues.random_shuffle_queue import RandomShuffleQueue
from dataset.queues.serving import connect, serve
from dataset.queues.tf1.file_readers import FixedLengthRecordReader, TextLineReader, TFRecordReader, WholeFileReader
from dataset.queues.tf1.input_functions import (
    batch,
    batch_join,
    input_producer,
    range_input_producer,
    shuffle_batch,
    shuffle_batch_join,
    slice_input_producer,
    string_input_producer,
)
from dataset.queues.threads import Coordinator, QueueRunner, add_queue_runner, start_queue_runners

__all__ = [
    "Coordinator",
    "ElementQueue",
    "FIFOQueue",
    "FixedLengthRecordReader",
    "PaddingFIFOQueue",
    "PriorityQueue",
    "QueueRunner",
    "RandomShuffleQueue",
    "TFRecordReader",
    "TextLineReader",
    "WholeFileReader",
    "add_queue_runner",
    "batch",
    "batch_join",
    "connect",
    "input_producer",
    "range_input_producer",
    "serve",
    "shuffle_batch",
    "shuffle_batch_join",
    "slice_input_producer",
    "start_queue_runners",
    "string_input_producer",
]
