"""Queue readers: take elements from queues of several kinds, and can be closed while they wait."""

from __future__ import annotations

import asyncio
import os
import weakref
from abc import ABC, abstractmethod
from typing import Any, ClassVar

from dataset.amounts import PIECE_BYTES
from dataset.errors import CancelledError, ClosedError
from dataset.world import multiprocessing, selectors, threading
from dataset.world import queue as thread_queues
from dataset.world.futures import CancelledError as FutureCancelledError
from dataset.world.interrupts import interruptible

_SHUT_DOWN: tuple[type[Exception], ...] = tuple(
    getattr(module, name)
    for module, name in ((thread_queues, "ShutDown"), (asyncio, "QueueShutDown"))
    if hasattr(module, name)  # since Python 3.13
)

_CONTENDED_SECONDS = 0.05  # how long to wait for another process that reads the same queue


class QueueReader(ABC):
    """Takes elements from a queue for one iteration."""

    def __init__(self, queue: Any) -> None:
        self.queue = queue
        self.is_closed = False

    hands_over: ClassVar[bool] = False
    """Whether nothing else refers to the memory of the elements."""

    def take(self, n: int) -> list[Any]:
        """Wait for an element; return it, and up to ``n - 1`` more if they need no waiting.

        Raises:
            ClosedError: if the reader was closed meanwhile.
            EOFError: if the queue is closed or shut down, and empty.
        """
        try:
            rows = self._waited(n)
        except _SHUT_DOWN:
            raise EOFError from None
        except (CancelledError, FutureCancelledError):
            rows = None
        if not rows:
            raise ClosedError("the iterator was closed while it waited for an element of the queue")
        return rows

    @abstractmethod
    def _waited(self, n: int) -> list[Any] | None:
        """Implement ``take``; None if the reader was closed."""

    def close(self) -> None:
        """End a waiting ``take`` of another thread, without taking an element."""
        self.is_closed = True


class ElementQueueReader(QueueReader):
    """Reader of a queue of dataset.queues."""

    hands_over = True

    def _waited(self, n: int) -> list[Any] | None:
        with self.queue.calling_as(self):
            rows: list[Any] = self.queue.take_available(n)
        return rows

    def close(self) -> None:
        super().close()
        self.queue.cancel(self)


def _is_plain(kind: Any) -> bool:
    """Return whether a subclass of queue.Queue overrides at most what is for subclasses to override."""
    return all(getattr(kind, name) is getattr(thread_queues.Queue, name) for name in ("get", "get_nowait", "task_done"))


class ThreadQueueReader(QueueReader):
    """Reader of a queue.Queue, LifoQueue or PriorityQueue, which waits on the queue's own condition."""

    def _waited(self, n: int) -> list[Any] | None:
        rows: list[Any] = []
        while not self.is_closed:
            try:
                if _is_plain(type(self.queue)):
                    rows = self._taken(n)
                while len(rows) < n:
                    rows.append(self.queue.get_nowait())
                    self.queue.task_done()
            except thread_queues.Empty:
                pass
            except _SHUT_DOWN:
                if not rows:
                    raise
            if rows:
                return rows
            self._wait()
        return None

    def _taken(self, n: int) -> list[Any]:
        """Do as ``get_nowait`` and ``task_done`` for up to ``n`` elements, with one use of the lock."""
        queue = self.queue
        with queue.mutex:
            rows = [queue._get() for _ in range(min(n, queue._qsize()))]  # noqa: SLF001  # for subclasses to override
            queue.not_full.notify(len(rows))
            queue.unfinished_tasks = max(0, queue.unfinished_tasks - len(rows))
            if not queue.unfinished_tasks:
                queue.all_tasks_done.notify_all()
        return rows

    @interruptible
    def _wait(self) -> None:
        with self.queue.not_empty:
            while not (self.is_closed or self.queue._qsize() or getattr(self.queue, "is_shutdown", False)):  # noqa: SLF001
                self.queue.not_empty.wait()

    def close(self) -> None:
        super().close()
        with self.queue.not_empty:
            self.queue.not_empty.notify_all()


class _WakeUp:
    """What a closed reader puts into a queue that offers no other way to end a wait. Readers ignore it."""


class SimpleQueueReader(QueueReader):
    """Reader of a queue.SimpleQueue."""

    _waits = False

    def _waited(self, n: int) -> list[Any] | None:
        rows: list[Any] = []
        while not (rows or self.is_closed):
            self._waits = True
            try:
                rows = [] if self.is_closed else [self._first()]
            finally:
                self._waits = False
            try:
                while rows and len(rows) < n:
                    rows.append(self.queue.get_nowait())
            except thread_queues.Empty:
                pass
            rows = [row for row in rows if not isinstance(row, _WakeUp)]
        return rows

    @interruptible
    def _first(self) -> Any:
        return self.queue.get()

    def close(self) -> None:
        super().close()
        if self._waits:
            self.queue.put(_WakeUp())


class ProcessQueueReader(QueueReader):
    """Reader of a queue of multiprocessing. It reads the messages in the queue's pipe itself, as their bytes arrive.

    ``Queue.get`` waits without end for the rest of a message whose producer was killed while it wrote. This reader can
    then be interrupted and closed, as at any other time. It takes no part of an element: the bytes that have arrived
    are kept for the next reader of the queue in this process.
    """

    def __init__(self, queue: Any) -> None:
        super().__init__(queue)
        # There is no public way to wait for two things, or to read a part.
        self._pipe, self._pipe_lock = queue._reader, queue._rlock  # noqa: SLF001
        self._semaphore = getattr(queue, "_sem", None)  # counts the free places; a SimpleQueue has none
        self._message = _partial_messages.setdefault(queue, bytearray())
        self._is_reading = False  # whether this reader holds the lock of the pipe
        self._closing, self._closed = multiprocessing.connection.Pipe(duplex=False)
        self._selector = selectors.PollSelector()
        for end in (self._pipe, self._closing):
            self._selector.register(end, selectors.EVENT_READ)
        self._lock = threading.Lock()
        self._waits = False

    def _waited(self, n: int) -> list[Any] | None:  # noqa: ARG002  # a second message may be incomplete
        with self._lock:
            self._waits = not self.is_closed
        try:
            while not self.is_closed:
                if self._wait() and self._read_on():
                    return [self._taken()]
            return None
        finally:
            with self._lock:
                self._waits = False
                if self.is_closed:
                    self._let_go()

    @interruptible
    def _wait(self) -> bool:
        """Wait until the queue's pipe can be read, or the reader is closed; return whether it is not closed."""
        return all(key.fileobj is not self._closing for key, _ in self._selector.select())

    def _read_on(self) -> bool:
        """Read what has arrived of a message; return whether it is complete."""
        if not self._is_reading:
            self._is_reading = self._pipe_lock.acquire(True, _CONTENDED_SECONDS)
            if not self._is_reading:
                return False
            if not self._pipe.poll():  # another process was faster
                self._stop_reading()
                return False
        piece = os.read(self._pipe.fileno(), min(_missing(self._message), PIECE_BYTES))
        if not piece:
            raise EOFError
        self._message += piece
        return not _missing(self._message)

    def _taken(self) -> Any:
        """Return the element of the message, which is complete."""
        pickled = memoryview(self._message)[_head_bytes(self._message) :]
        try:
            return multiprocessing.ForkingPickler.loads(pickled)
        finally:
            pickled.release()
            self._message.clear()
            self._stop_reading()
            if self._semaphore is not None:
                self._semaphore.release()
            if hasattr(self.queue, "task_done"):  # a JoinableQueue
                self.queue.task_done()

    def _stop_reading(self) -> None:
        if self._is_reading:
            self._is_reading = False
            self._pipe_lock.release()

    def _let_go(self) -> None:
        self._stop_reading()
        self._selector.close()
        self._closing.close()

    def close(self) -> None:
        with self._lock:
            super().close()
            self._closed.close()  # makes the other end readable
            if not self._waits:
                self._let_go()


_partial_messages: weakref.WeakKeyDictionary[Any, bytearray] = weakref.WeakKeyDictionary()
"""For each queue, what has been read of a message that is not complete."""


def _head_bytes(message: bytearray) -> int:
    """Return where the pickled element begins, after 4 bytes for its length, or 8 more if they hold -1.

    Source: multiprocessing/connection.py.
    """
    return 12 if message.startswith(b"\xff\xff\xff\xff") else 4


def _missing(message: bytearray) -> int:
    """Return how many bytes of the length are missing, or else how many of the message."""
    head = _head_bytes(message)
    if len(message) < head:
        return head - len(message)
    return head + int.from_bytes(message[-8 % head : head], "big") - len(message)


class AsyncQueueReader(QueueReader):
    """Reader of an asyncio.Queue, in another thread than that of its event loop."""

    def __init__(self, queue: Any, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(queue)
        self._loop = loop
        self._future: Any = None

    def _waited(self, n: int) -> list[Any] | None:
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is self._loop:
            raise RuntimeError(
                "from_queue(): the iterator would block the event loop that fills its asyncio.Queue; use `async for` "
                "over the dataset, or iterate in another thread"
            )
        if self.is_closed:
            return None
        self._future = asyncio.run_coroutine_threadsafe(self._get(n), self._loop)
        if self.is_closed:
            self._future.cancel()
        rows: list[Any] = self._result()
        return rows

    async def _get(self, n: int) -> list[Any]:
        if self.is_closed:  # a cancelled future cancels this task only after its first step
            return []
        rows = [await self.queue.get()]
        self.queue.task_done()
        while len(rows) < n and not self.queue.empty():
            rows.append(self.queue.get_nowait())
            self.queue.task_done()
        return rows

    @interruptible
    def _result(self) -> Any:
        return self._future.result()

    def close(self) -> None:
        super().close()
        if self._future is not None:
            self._future.cancel()


def running_loop() -> asyncio.AbstractEventLoop:
    """Return the running event loop.

    Raises:
        RuntimeError: if there is none.
    """
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            "from_queue(): for an asyncio.Queue, create the dataset in a coroutine of the event loop of the queue"
        ) from None
