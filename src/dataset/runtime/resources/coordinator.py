"""Who owns the background threads of an iterator, and how they end.

Every iterator has one Coordinator. Operators get threads through it, and nowhere else: one of their own, or now and
then one of the workers that all of them share. A thread ends when its work is done or when the coordinator tells it to
stop; the last thing to happen, by whichever thread is last, is that the operators are closed. There are six ways to
the end:

- ``close()``: stop, wait for the threads, close the operators.
- The end of the data: the same, but wait a bounded time only.
- A fault of the library in one of the threads: ``fail`` keeps the first, and stops. The iterator raises it, and
  cannot continue: what the thread had in hand is lost.
- The iterator is dropped: stop, do not wait (the collector may be running in the very thread that has to end);
  the last thread closes the operators.
- The interpreter exits: stop all, wait a bounded time. A thread that is blocked in user code is left behind; threads
  are daemons, so it does not hold up the exit.
- ``fork``: the child has no threads and shares file offsets with its parent, so its copies of iterators refuse to work.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from dataset.errors import ClosedError
from dataset.runtime.random.streams import seed_sequence, share_seed_sequence
from dataset.runtime.resources import interrupts
from dataset.runtime.resources.exceptions import CANNOT_CONTINUE, NoThreadError

PATIENCE_SECONDS = 2.0
"""How long the end of the data, or of the program, waits for threads that may be blocked in user code."""


class _ThreadJob(NamedTuple):
    run: Callable[[], None]
    counted: bool


_live: weakref.WeakSet[Coordinator] = weakref.WeakSet()


class Coordinator:
    """Starts, stops and outlives the background threads of one iterator.

    A thread of its own has who works all the time, such as ``prefetch``: ``start``. Work that comes and goes is given
    to worker threads, which all operators share: ``submit``. A worker is started when there is work and none is idle.

    Args:
        workers_max: the most workers that run at a time; None for no common bound beside those that operators keep. A
            worker that waits for another, inside ``blocked``, does not count, or they could all wait for each other.
    """

    def __init__(self, workers_max: int | None = None) -> None:
        # Reentrant, because the garbage collector may call stop() in a thread that is inside start().
        self._lock = threading.RLock()  # guards all fields below; held for a few steps only, never while waiting
        self._threads: set[threading.Thread] = set()
        self._closing: set[threading.Thread] = set()  # have done their work, and may be closing the operators
        self._leaving: set[threading.Thread] = set()  # run nothing of this any more
        self._wakes: dict[object, Callable[[], None]] = {}
        self._seeds = seed_sequence()  # datasets that user code makes in our threads are those of this one
        self._finish: Callable[[], None] | None = None
        self.stopped = False
        self.failed = ""  # what has failed, in words, once the library has
        self._failure: BaseException | None = None  # until it is raised
        self.forked = False
        self._workers_max = workers_max
        self._running = 0  # workers that count against workers_max
        self._counted: set[int] = set()  # their identifiers
        self._jobs: deque[_ThreadJob] = deque()  # for each there is a worker, on its way here
        self._crowded: deque[_ThreadJob] = deque()  # wait for one of the others to finish
        self._returning = 0  # workers that come out of blocked(), before the others
        self._idle = 0  # workers that wait for a job, and have not been promised one
        self._job_came = threading.Condition(self._lock)  # wakes a worker: there is a job, or it must stop
        self._place_freed = threading.Condition(self._lock)  # wakes who comes out of blocked()
        self._thread_left = interrupts.Condition(self._lock)  # wakes who waits in join()
        _live.add(self)

    def check_usable(self) -> None:
        """Raise ClosedError where no work can be done any more."""
        if self.forked:
            raise ClosedError("this iterator belongs to the parent process; call iter() in the child")
        if self.failed:
            raise ClosedError(
                f"this iterator cannot continue after {self.failed}; call iter() for a new one, which can load a state "
                "that was saved before"
            )
        if self.stopped:
            raise ClosedError("this iterator is closed; call iter() for a new one")

    def fail(self, error: BaseException, where: str) -> None:
        """Record a fault of the library itself, which the iterator then raises, and stop. The first one counts.

        Args:
            error: what was raised, outside of all work on a single element.
            where: the operation that it came through.
        """
        with self._lock:
            if not (self.failed or self.stopped):
                self._failure, self.failed = error, where  # in this order: others look at the words without the lock
                with contextlib.suppress(MemoryError):
                    self.failed = f"{type(error).__name__} in {where}"
                    error.add_note(f"raised by the library in {where}, not by an element: {CANNOT_CONTINUE}")
        self.stop()

    def raise_failure(self) -> None:
        """Raise the fault that has stopped the iteration: itself the first time, then ClosedError. If there is one."""
        failure, self._failure = self._failure, None
        if failure is not None:
            try:
                raise failure
            finally:
                del failure  # see runtime/contract.py on exceptions that are kept
        if self.failed:
            self.check_usable()

    def register(self, owner: object, wake: Callable[[], None]) -> None:
        """Have ``wake`` called when all must stop; it must make whatever ``owner`` has under way end soon."""
        with self._lock:
            self.check_usable()
            self._wakes[owner] = wake

    def unregister(self, owner: object) -> None:
        """``owner`` has nothing under way any more."""
        with self._lock:
            self._wakes.pop(owner, None)

    def start(self, run: Callable[[], None], wake: Callable[[], None], name: str) -> threading.Thread:
        """Run ``run`` in a thread of its own; ``wake`` must make it return soon, from wherever it waits.

        Raises:
            ClosedError: the iterator has been closed.
            NoThreadError: the system gives no more threads.
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
            self._threads.discard(thread)  # should it run all the same, it leaves at once
            if isinstance(error, RuntimeError):
                raise NoThreadError(*error.args) from error
            raise
        return thread

    def _run(self, run: Callable[[], None]) -> None:
        thread = threading.current_thread()
        with self._lock:  # which the thread that starts this one holds until it has started
            if thread not in self._threads:
                return
        try:
            try:
                share_seed_sequence(self._seeds)
                run()
            except BaseException as error:  # noqa: BLE001  # raised by the iterator
                self.fail(error, f"the thread {threading.current_thread().name}")
                run()  # returns soon after the stop; a worker first runs the jobs that were taken here
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
        """Have a worker run ``job``. Every job that is taken here is run, also after a stop; twice, if it raises.

        Args:
            job: what to run.
            counted: whether it counts against ``workers_max``.

        Raises:
            ClosedError: the iterator has been closed.
            NoThreadError: the system gives no more threads.
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
                        job.run()  # a job may be run twice: after the stop, it only lets go of what it has taken
            job = None  # or an idle worker would keep what it worked for

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
                    self._jobs.append(self._crowded.popleft())  # for this worker, in the place that it had
                else:
                    self._running -= 1
                    self._place_freed.notify()

    @contextlib.contextmanager
    def blocked(self) -> Iterator[None]:
        """Around a wait for other workers: in the place of the one that waits, another may run.

        No lock that others need may be held on the way out, where this waits until there is a place again.
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
            except (RuntimeError, MemoryError):  # no more threads: it waits for one that is there
                self._crowded.appendleft(job)

    def stop(self) -> None:
        """Tell all threads to end, without waiting for them."""
        if self.forked:
            return
        with self._lock:
            self.stopped = True
            wakes = list(self._wakes.values())
            self._wakes.clear()
            self._idle = 0  # they leave: a job that still comes needs a worker of its own
            self._job_came.notify_all()
        for wake in wakes:
            wake()

    def join(self, timeout: float | None = None) -> None:
        """Wait until the threads have ended; from one of them, for the others."""
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
            thread.join()  # it has nothing left to do but to end

    @property
    def has_ended(self) -> bool:
        """Whether all threads have been stopped, and have done their work."""
        return self.stopped and not self._threads

    def shut_down(self, finish: Callable[[], None], *, wait: bool) -> None:
        """Stop; ``finish`` is called once, after the last thread has ended.

        An interrupt ends the wait; the rest happens all the same.
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
if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_mark_forked)
