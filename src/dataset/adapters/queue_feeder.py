"""Queue feeder: a thread that runs a dataset into a queue."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

from dataset.closing import Closing
from dataset.errors import CancelledError, ClosedError
from dataset.world import queue as thread_queues
from dataset.world import threading


class QueueFeeder(Closing):
    """Puts the elements of a dataset into a queue, in a background thread. ``Dataset.to_queue`` returns one.

    At the end of the data it closes the queue. An exception is put into the queue and is the last that comes. Use it as
    a context manager, or call ``close``, to stop earlier.

    Args:
        dataset: the dataset.
        queue: a queue of dataset.queues, or a queue.Queue.

    Raises:
        TypeError: if ``queue`` is of another kind.
    """

    def __init__(self, dataset: Iterable[Any], queue: Any) -> None:
        if not (hasattr(queue, "enqueue") or isinstance(queue, thread_queues.Queue)):
            raise TypeError(
                "to_queue(): queue must be one of dataset.queues, or a queue.Queue, got "
                f"{queue!r:.100} of type {type(queue).__name__}"
            )
        self._queue = queue
        self._is_closed = False
        self._iterator: Any = iter(dataset)
        self._thread = threading.Thread(target=self._run, name="dataset-to-queue", daemon=True)
        self._thread.start()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until everything is in the queue, at most ``timeout`` seconds; return whether it is."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def close(self) -> None:
        """Stop, and wait for the thread. Elements in the queue stay there; the queue is closed."""
        self._is_closed = True
        self._iterator.close()
        if hasattr(self._queue, "enqueue"):
            self._queue.close(cancel_pending_enqueues=True)
        else:
            with self._queue.not_full:
                self._queue.not_full.notify_all()
        self._thread.join()

    def _run(self) -> None:
        try:
            with self._iterator:
                for element in self._iterator:
                    self._put(element)
        except (CancelledError, ClosedError):  # closed here, or the queue was closed by its consumer
            pass
        except Exception as error:  # noqa: BLE001  # raised where the queue is read
            with contextlib.suppress(CancelledError):
                self._put(error)
        finally:
            with contextlib.suppress(CancelledError):
                self._end()

    def _put(self, element: Any) -> None:
        if hasattr(self._queue, "enqueue"):
            self._queue.enqueue(element)
            return
        while not self._is_closed:
            with self._queue.not_full:
                while 0 < self._queue.maxsize <= self._queue._qsize() and not self._is_closed:  # noqa: SLF001
                    self._queue.not_full.wait()
            with contextlib.suppress(thread_queues.Full):  # another producer was faster
                self._queue.put_nowait(element)
                return
        raise CancelledError

    def _end(self) -> None:
        if hasattr(self._queue, "enqueue"):
            self._queue.close()
        elif hasattr(self._queue, "shutdown"):  # since Python 3.13
            self._queue.shutdown()
        else:
            self._put(StopIteration())
