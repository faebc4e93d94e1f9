"""Threads that fill queues: Coordinator, QueueRunner and start_queue_runners."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from dataset.errors import CancelledError, OutOfRangeError
from dataset.plan.checks import require_callable
from dataset.queues.element_queue import ElementQueue
from dataset.world import threading, time


class Coordinator:
    """Ends a group of threads together, and raises the exception of one of them where they are joined.

    Each thread asks ``should_stop()`` between its steps. Any of them ends all by ``request_stop()``, with an exception
    if it has failed. As ``tf.train.Coordinator``.

    Args:
        clean_stop_exception_types: exceptions that are a normal end: ``request_stop`` does not keep them.

    Examples:
        >>> import threading
        >>> from dataset.queues import Coordinator
        >>> coordinator = Coordinator()
        >>> def work():
        ...     with coordinator.stop_on_exception():
        ...         while not coordinator.should_stop():
        ...             raise ValueError("bad input")
        >>> thread = threading.Thread(target=work)
        >>> thread.start()
        >>> coordinator.join([thread])
        Traceback (most recent call last):
        ValueError: bad input
    """

    def __init__(self, clean_stop_exception_types: Sequence[type[BaseException]] = (OutOfRangeError,)) -> None:
        self._clean = tuple(clean_stop_exception_types)
        self._changed = threading.Condition()
        self._is_stopped = False
        self._error: BaseException | None = None
        self._threads: list[threading.Thread] = []
        self._joined = False

    @property
    def joined(self) -> bool:
        """Whether ``join`` has returned."""
        return self._joined

    def should_stop(self) -> bool:
        """Return whether a stop was requested."""
        return self._is_stopped

    def request_stop(self, ex: BaseException | None = None) -> None:
        """Request that all threads stop. The exception of the first request that has one is raised by ``join``.

        Args:
            ex: why; None, or one of the clean types, for a normal end.
        """
        with self._changed:
            if self._error is None and ex is not None and not isinstance(ex, self._clean):
                self._error = ex
            self._is_stopped = True
            self._changed.notify_all()

    def clear_stop(self) -> None:
        """Forget the request and its exception, so that the coordinator can be used again."""
        with self._changed:
            self._is_stopped, self._error, self._joined = False, None, False

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Wait until a stop is requested, at most ``timeout`` seconds; return whether it was."""
        with self._changed:
            return self._changed.wait_for(self.should_stop, timeout)

    def register_thread(self, thread: threading.Thread) -> None:
        """Add a thread for which ``join`` waits."""
        with self._changed:
            self._threads.append(thread)

    @contextlib.contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """Return a context manager that passes an exception of its block to ``request_stop``, and raises nothing."""
        try:
            yield
        except BaseException as error:  # noqa: BLE001  # raised by join
            self.request_stop(error)

    def join(
        self,
        threads: Iterable[threading.Thread] | None = None,
        stop_grace_period_secs: float = 120.0,
        ignore_live_threads: bool = False,
    ) -> None:
        """Wait until all threads have ended, or a stop was requested and the grace period is over.

        Args:
            threads: threads to wait for, in addition to the registered ones.
            stop_grace_period_secs: how long to wait for threads after a stop was requested, in seconds.
            ignore_live_threads: whether to return normally if threads are still running then.

        Raises:
            BaseException: that of ``request_stop``.
            RuntimeError: if threads are still running, and no exception was given.
        """
        with self._changed:
            waited = [*self._threads, *(threads or ())]
        waited = [thread for thread in waited if thread is not threading.current_thread() and thread.is_alive()]
        if waited and not self._is_stopped:
            self._wait_for_end_or_stop(waited)
        deadline = time.monotonic() + stop_grace_period_secs
        for thread in waited:
            thread.join(max(0.0, deadline - time.monotonic()))
        live = [thread.name for thread in waited if thread.is_alive()]
        with self._changed:
            self._joined, self._threads = True, []
        self.raise_requested_exception()
        if live and not ignore_live_threads:
            raise RuntimeError(
                f"Coordinator.join(): these threads still run {stop_grace_period_secs} s after the stop was requested: "
                f"{', '.join(live)}; close the queues on which they wait"
            )

    def _wait_for_end_or_stop(self, threads: list[threading.Thread]) -> None:
        """Wait for either event. The end of a thread notifies nothing, so a helper thread waits for it."""
        ended = False

        def watch() -> None:
            nonlocal ended
            for thread in threads:
                thread.join()
            with self._changed:
                ended = True
                self._changed.notify_all()

        threading.Thread(target=watch, name="dataset-coordinator", daemon=True).start()
        with self._changed:
            self._changed.wait_for(lambda: ended or self._is_stopped)

    def raise_requested_exception(self) -> None:
        """Raise the exception of ``request_stop``, if there was one."""
        if self._error is not None:
            raise self._error


class QueueRunner:
    """Fills a queue from threads, each calling one function repeatedly, like ``tf.train.QueueRunner``.

    A thread ends when its function raises one of ``queue_closed_exception_types``, or when its coordinator stops. When
    the last thread has ended, the queue is closed. Any other exception stops the coordinator; without one, it is put
    into the queue, so that the consumer meets it.

    Args:
        queue: the queue to fill.
        enqueue_functions: functions without arguments, one thread each; each call enqueues something.
        queue_closed_exception_types: exceptions that mean the normal end of a function. StopIteration is that of
            ``next``.

    Raises:
        TypeError: if a function is not callable.
        ValueError: if ``enqueue_functions`` is empty.

    Examples:
        >>> from dataset.queues import Coordinator, FIFOQueue, QueueRunner
        >>> queue = FIFOQueue(capacity=2)
        >>> numbers = iter(range(5))
        >>> runner = QueueRunner(queue, [lambda: queue.enqueue(next(numbers))])
        >>> coordinator = Coordinator()
        >>> threads = runner.create_threads(coordinator, start=True)
        >>> queue.dequeue_many(5)
        array([0, 1, 2, 3, 4])
        >>> coordinator.request_stop()
        >>> coordinator.join(threads)
    """

    def __init__(
        self,
        queue: ElementQueue,
        enqueue_functions: Iterable[Callable[[], Any]],
        queue_closed_exception_types: Sequence[type[BaseException]] = (OutOfRangeError, CancelledError, StopIteration),
    ) -> None:
        self.queue = queue
        self.enqueue_functions = tuple(enqueue_functions)
        for function in self.enqueue_functions:
            require_callable("QueueRunner", "enqueue_functions", function)
        if not self.enqueue_functions:
            raise ValueError("QueueRunner(): enqueue_functions is empty; pass at least one function")
        self.exceptions_raised: list[BaseException] = []
        """The exceptions of threads without a coordinator."""
        self._ends = tuple(queue_closed_exception_types)
        self._lock = threading.Lock()
        self._running = 0

    def create_threads(
        self, coordinator: Coordinator | None = None, *, daemon: bool = False, start: bool = False
    ) -> list[threading.Thread]:
        """Return one thread for each function; with a coordinator, also one that closes the queue at a stop.

        Args:
            coordinator: ends the threads; they are registered with it.
            daemon: whether they are daemon threads, for which the interpreter does not wait at its exit.
            start: whether to start them.

        Raises:
            RuntimeError: if threads of an earlier call still run.
        """
        with self._lock:
            if self._running:
                raise RuntimeError(
                    f"QueueRunner.create_threads(): {self._running} threads of an earlier call still run"
                )
            self._running = len(self.enqueue_functions)
            self.exceptions_raised = []
        targets = [partial(self._run, function, coordinator) for function in self.enqueue_functions]
        if coordinator is not None:
            targets.append(partial(self._close_on_stop, coordinator))
        threads = [
            threading.Thread(target=target, daemon=daemon, name=f"{self.queue.name}-{number}")
            for number, target in enumerate(targets)
        ]
        for thread in threads:
            if coordinator is not None:
                coordinator.register_thread(thread)
            if start:
                thread.start()
        return threads

    def _run(self, function: Callable[[], Any], coordinator: Coordinator | None) -> None:
        try:
            while coordinator is None or not coordinator.should_stop():
                function()
        except self._ends:
            pass
        except Exception as error:  # noqa: BLE001  # raised by join or dequeue
            if coordinator is not None:
                coordinator.request_stop(error)
            else:
                self.exceptions_raised.append(error)
                with contextlib.suppress(CancelledError):
                    self.queue.enqueue(error)
        finally:
            with self._lock:
                self._running -= 1
                is_last = not self._running
            if is_last:
                self.queue.close()

    def _close_on_stop(self, coordinator: Coordinator) -> None:
        coordinator.wait_for_stop()
        self.queue.close(cancel_pending_enqueues=True)


_runners: list[QueueRunner] = []


def add_queue_runner(runner: QueueRunner) -> None:
    """Add a runner to those that ``start_queue_runners`` starts. The functions that return a queue call it.

    Args:
        runner: the runner.
    """
    _runners.append(runner)


@contextlib.contextmanager
def start_queue_runners(
    coordinator: Coordinator | None = None, runners: Iterable[QueueRunner] | None = None
) -> Iterator[Coordinator]:
    """Start the threads of queue runners for the time of a ``with`` block; stop and join them at its end.

    Args:
        coordinator: ends the threads; default: a new one.
        runners: the runners; default: those that were added with ``add_queue_runner`` and not started yet.

    Yields:
        The coordinator.

    Raises:
        BaseException: at the end of the block, that of a thread.

    Examples:
        >>> from dataset import queues
        >>> queue = queues.FIFOQueue(capacity=2)
        >>> numbers = iter(range(5))
        >>> queues.add_queue_runner(queues.QueueRunner(queue, [lambda: queue.enqueue(next(numbers))]))
        >>> with queues.start_queue_runners() as coordinator:
        ...     print(queue.dequeue_many(3))
        [0 1 2]
    """
    coordinator = Coordinator() if coordinator is None else coordinator
    if runners is None:
        started, _runners[:] = list(_runners), []
    else:
        started = list(runners)
    try:
        for runner in started:
            runner.create_threads(coordinator, daemon=True, start=True)
        with coordinator.stop_on_exception():
            yield coordinator
    finally:
        coordinator.request_stop()
        coordinator.join()
