"""Coordinator: owns the background threads of an iterator, and controls how they end.

Every iterator has one Coordinator. Operators get all their threads through it: a thread of their own, or temporarily
one of the shared workers. A thread ends when its work is done or when the coordinator stops it. Finally, the last
thread closes the operators. There are six ways to end:

- ``close()``: stop, wait for the threads, close the operators.
- End of the data: the same, but the wait is bounded.
- A fault of the library in one of the threads: ``fail`` stores the first fault, and stops. The iterator raises it and
  cannot continue, because the elements that the thread held are lost.
- The iterator is dropped: stop without waiting, because the garbage collector may run in the very thread that must end.
  The last thread closes the operators.
- The interpreter exits: stop all iterators, with a bounded wait. A thread that is blocked in user code is abandoned;
  threads are daemons, so it does not delay the exit.
- ``fork``: the child has no threads and shares file offsets with its parent, so its copies of iterators refuse to work.
"""

from __future__ import annotations

import atexit
import contextlib
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from dataset.errors import ClosedError
from dataset.runtime.random.streams import seed_sequence, share_seed_sequence
from dataset.runtime.resources.exceptions import CANNOT_CONTINUE, NoThreadError
from dataset.world import interrupts, register_at_fork, threading, time

PATIENCE_SECONDS = 2.0
"""How long the end of the data, or of the program, waits for threads that may be blocked in user code."""


_DEPTH_MAX = 2
_THREADS_MAX = 128
"""Above these, an iterator that a function creates in a thread of another iterator starts no threads.

Otherwise, a map that calls itself would start threads without end. In one thread, it ends with a RecursionError.
"""


_nesting = threading.local()  # depth: the number of iterators around the code in a thread that have started threads


class _ThreadJob(NamedTuple):
    run: Callable[[], None]
    counted: bool


_live: weakref.WeakSet[Coordinator] = weakref.WeakSet()


class Coordinator:
    """Starts, stops and outlives the background threads of one iterator.

    The work of operators is given to worker threads, which all of them share: ``submit``. A worker is started if there
    is work and none is idle. What blocks for long, such as a connection to a process, has a thread of its own:
    ``start``.

    Args:
        workers_max: the maximum number of running workers; None for no common limit besides those of the operators. A
            worker that waits for another, inside ``blocked``, does not count; otherwise all could wait for each other.
    """

    def __init__(self, workers_max: int | None = None) -> None:
        # Reentrant: the garbage collector may call stop() in a thread that is inside start().
        self._lock = threading.RLock()  # guards all fields below; held only briefly, never while waiting
        self._depth: int = getattr(_nesting, "depth", 0)
        self.may_start = self._depth <= _DEPTH_MAX or threading.active_count() <= _THREADS_MAX
        self._threads: set[threading.Thread] = set()
        self._closing: set[threading.Thread] = set()  # have done their work, and may be closing the operators
        self._leaving: set[threading.Thread] = set()  # threads that run no code of this object any more
        self._wakes: dict[object, Callable[[], None]] = {}
        self._seeds = seed_sequence()  # user code that builds datasets in our threads uses this thread's seeds
        self._finish: Callable[[], None] | None = None
        self.stopped = False
        self.failed = ""  # describes the failure of the library, if any
        self._failure: BaseException | None = None  # the failure until it is raised
        self.forked = False
        self._workers_max = workers_max
        self._running = 0  # workers that count towards workers_max
        self._counted: set[int] = set()  # their identifiers
        self._jobs: deque[_ThreadJob] = deque()  # each of these has a worker that will take it
        self._crowded: deque[_ThreadJob] = deque()  # jobs that wait for another to finish
        self._returning = 0  # workers returning from blocked(), which take precedence
        self._idle = 0  # waiting workers without an assigned job
        self._job_came = threading.Condition(self._lock)  # wakes a worker for a job or for the stop
        self._place_freed = threading.Condition(self._lock)  # wakes workers returning from blocked()
        self._thread_left = interrupts.Condition(self._lock)  # wakes threads in join()
        _live.add(self)

    def check_usable(self) -> None:
        """Raise ClosedError if no work can be done any more."""
        if self.forked:
            raise ClosedError("this iterator belongs to the parent process; call iter() in the child")
        if self.failed:
            raise ClosedError(
                f"this iterator cannot continue after {self.failed}; create a new one with iter(), which can load an "
                "earlier state"
            )
        if self.stopped:
            raise ClosedError("this iterator is closed; call iter() for a new one")

    def fail(self, error: BaseException, where: str) -> None:
        """Record a fault of the library itself, which the iterator then raises, and stop. Only the first one is kept.

        Args:
            error: the exception, which was not raised for a single element.
            where: the operation that raised it.
        """
        with self._lock:
            if not (self.failed or self.stopped):
                self._failure, self.failed = error, where  # in this order: other threads read failed without lock
                with contextlib.suppress(MemoryError):
                    self.failed = f"{type(error).__name__} in {where}"
                    error.add_note(f"raised by the library in {where}, not by an element: {CANNOT_CONTINUE}")
        self.stop()

    def raise_failure(self) -> None:
        """Raise the fault that has stopped the iteration, if any; after the first time, raise ClosedError."""
        failure, self._failure = self._failure, None
        if failure is not None:
            try:
                raise failure
            finally:
                del failure  # see runtime/contract.py on exceptions that are kept
        if self.failed:
            self.check_usable()

    def register(self, owner: object, wake: Callable[[], None]) -> None:
        """Register ``wake``, called on stop; it must make the work of ``owner`` end soon."""
        with self._lock:
            self.check_usable()
            self._wakes[owner] = wake

    def unregister(self, owner: object) -> None:
        """Unregister ``owner``, which has no work in progress any more."""
        with self._lock:
            self._wakes.pop(owner, None)

    def start(self, run: Callable[[], None], wake: Callable[[], None], name: str) -> threading.Thread:
        """Run ``run`` in a thread of its own; ``wake`` must make it return soon, wherever it waits.

        Raises:
            ClosedError: if the iterator has been closed.
            NoThreadError: if the system cannot start more threads.
        """
        with self._lock:
            self.check_usable()
            thread = self._start(run, name)
            self._wakes[thread] = wake
        return thread

    def _start(self, run: Callable[[], None], name: str) -> threading.Thread:
        thread = threading.Thread(target=self._run, args=(run,), name=f"dataset-{name}", daemon=True)
        self._leaving = {other for other in self._leaving if other.is_alive()}
        self._threads.add(thread)
        try:
            thread.start()
        except BaseException as error:
            self._threads.discard(thread)  # if it runs nevertheless, it leaves at once
            if isinstance(error, RuntimeError):
                raise NoThreadError(*error.args) from error
            raise
        return thread

    def _run(self, run: Callable[[], None]) -> None:
        thread = threading.current_thread()
        with self._lock:  # held by the starting thread until this one has started
            if thread not in self._threads:
                return
        try:
            try:
                share_seed_sequence(self._seeds)
                _nesting.depth = self._depth + 1
                run()
            except BaseException as error:  # noqa: BLE001  # raised by the iterator
                self.fail(error, f"the thread {threading.current_thread().name}")
                run()  # returns soon after the stop; a worker first runs the accepted jobs
        finally:
            with self._lock:
                self._threads.remove(thread)
                self._closing.add(thread)
                self._wakes.pop(thread, None)
            try:
                self._finish_if_last()
            finally:
                with self._lock:
                    self._closing.remove(thread)
                    self._leaving.add(thread)
                    self._thread_left.notify_all()

    def submit(self, job: Callable[[], None], *, counted: bool = True) -> None:
        """Run ``job`` on a worker. Every accepted job is run, also after a stop; if it raises, it is run twice.

        Args:
            job: what to run.
            counted: whether it counts towards ``workers_max``.

        Raises:
            ClosedError: if the iterator has been closed.
            NoThreadError: if the system cannot start more threads.
        """
        with self._lock:
            self.check_usable()
            if counted and self._workers_max is not None and self._running >= self._workers_max:
                self._crowded.append(_ThreadJob(job, counted))
            else:
                self._running += counted
                self._hand_out(_ThreadJob(job, counted))

    def _hand_out(self, job: _ThreadJob) -> None:
        self._jobs.append(job)
        if self._idle:
            self._idle -= 1
            self._job_came.notify()
            return
        try:
            self._start(self._work, "worker")
        except BaseException:
            self._jobs.pop()
            self._running -= job.counted
            raise

    def _work(self) -> None:
        job: _ThreadJob | None = None
        while True:
            try:
                job = self._next_job()
                if job is None:
                    return
                if not job.counted:
                    job.run()
                else:
                    self._run_counted(job)
            except BaseException as error:  # noqa: BLE001  # raised by the iterator
                self.fail(error, "a worker thread")
                if job is not None:
                    with contextlib.suppress(BaseException):
                        job.run()  # a job may be run twice: after the stop, it only releases what it has taken
            job = None  # otherwise an idle worker would keep the job's objects alive

    def _next_job(self) -> _ThreadJob | None:
        with self._lock:
            while not self._jobs:
                if self.stopped:
                    return None
                self._idle += 1
                self._job_came.wait()
            return self._jobs.popleft()

    def _run_counted(self, job: _ThreadJob) -> None:
        ident = threading.get_ident()
        self._counted.add(ident)
        try:
            job.run()
        finally:
            self._counted.discard(ident)
            with self._lock:
                if self._crowded and not self._returning:
                    self._jobs.append(self._crowded.popleft())  # for this worker, which keeps its place
                else:
                    self._running -= 1
                    self._place_freed.notify()

    @contextlib.contextmanager
    def blocked(self) -> Iterator[None]:
        """Surround a wait for other workers: meanwhile, another worker may run in this one's place.

        On exit, this waits until a place is free. No lock that other workers need may be held then.
        """
        ident = threading.get_ident()
        if self._workers_max is None or ident not in self._counted:
            yield
            return
        self._counted.discard(ident)
        self._lend_place()
        try:
            yield
        finally:
            with self._lock:
                self._returning += 1
                while self._running >= self._workers_max:
                    self._place_freed.wait()
                self._returning -= 1
                self._running += 1
            self._counted.add(ident)

    def _lend_place(self) -> None:
        with self._lock:
            self._running -= 1
            if not self._crowded:
                self._place_freed.notify()
                return
            job = self._crowded.popleft()
            self._running += 1
            try:
                self._hand_out(job)
            except (RuntimeError, MemoryError):  # no more threads: the job waits for an existing worker
                self._crowded.appendleft(job)

    def stop(self) -> None:
        """Tell all threads to end, without waiting for them."""
        if self.forked:
            return
        with self._lock:
            self.stopped = True
            wakes = list(self._wakes.values())
            self._wakes.clear()
            self._idle = 0  # idle workers leave: a later job needs a new worker
            self._job_came.notify_all()
        for wake in wakes:
            wake()

    def join(self, timeout: float | None = None) -> None:
        """Wait until the threads have ended; if called in one of them, wait for the others."""
        if self.forked:
            return
        deadline = None if timeout is None else time.monotonic() + timeout
        myself = {threading.current_thread()}
        with self._lock:
            while self._threads - myself or self._closing - myself:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    return
                self._thread_left.wait(left)
            self._leaving = {thread for thread in self._leaving if thread.is_alive()}
            leaving = self._leaving - myself
        for thread in leaving:
            thread.join()  # the thread is just ending

    @property
    def has_ended(self) -> bool:
        """Whether all threads have been stopped and have done their work."""
        return self.stopped and not self._threads

    def shut_down(self, finish: Callable[[], None], *, wait: bool) -> None:
        """Stop; ``finish`` is called once, after the last thread has ended.

        An interrupt ends only the wait.
        """
        if self.forked:
            return
        with self._lock:
            self._finish = finish
        self.stop()
        if wait:
            self.join()
        self._finish_if_last()

    def _finish_if_last(self) -> None:
        with self._lock:
            if self._threads or self._finish is None:
                return
            finish, self._finish = self._finish, None
        finish()


def _stop_all() -> None:
    coordinators = list(_live)
    for coordinator in coordinators:
        coordinator.stop()
    deadline = time.monotonic() + PATIENCE_SECONDS
    for coordinator in coordinators:
        coordinator.join(max(0.0, deadline - time.monotonic()))


def _mark_forked() -> None:
    for coordinator in list(_live):
        coordinator.forked = True


atexit.register(_stop_all)
register_at_fork(after_in_child=_mark_forked)
