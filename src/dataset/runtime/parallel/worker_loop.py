"""Worker loop: the workers of one operator, which take tasks until there are none, and how they are stopped.

The base class of the pools of parallel map and batch (pool.py) and of parallel interleave (reader_pool.py), and of
prefetch. A worker is a job of the coordinator, and each of its visits is in a set from before the submission until it
ends. So entering and leaving are counted exactly once, whatever is raised in between. A worker that the coordinator has
accepted always runs, and leaves at once if it is no longer needed.

A worker finds no task and leaves in one step, under the lock: a task that is added later calls another worker.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import partial

from dataset.plan.node import Node
from dataset.runtime.context import ExecutionContext
from dataset.runtime.metrics.background import Tunable
from dataset.world import threading
from dataset.world.interrupts import Condition


class WorkerLoop(ABC):
    """Base class of objects whose work several workers do.

    One lock guards all fields. ``_news`` wakes the consumer, and ``_stillness`` a thread that waits for the workers.

    Args:
        context: provides the worker threads.
        node: the node of the operator, for messages about faults.
        calls: the maximum number of workers that do the operator's work.
        counted: whether the workers count towards the coordinator's thread limit.
        spare: the number of elements that the memory account sets aside for urgent reservations.
    """

    def __init__(
        self, context: ExecutionContext, node: Node, calls: Tunable, *, counted: bool = True, spare: int = 0
    ) -> None:
        self.coordinator = context.iteration.coordinator
        self.counters = context.counters
        self.knob = calls
        self._counts_workers = counted
        self._account = context.iteration.limits.ledger.account(spare=spare)
        self._pulse = context.iteration.pulse
        self.lock = threading.RLock()  # reentrant: the garbage collector may call wake() in a thread that holds it
        self._works_for = node
        self._news = Condition(self.lock)
        self._stillness = Condition(self.lock)
        self._visits: set[object] = set()  # one for each worker that is active or was submitted
        self._paused = False
        self._stopped = False

    @abstractmethod
    def _missing_workers(self) -> int:
        """Return how many more workers have something to do. The lock is held."""

    @abstractmethod
    def _do_tasks(self, visit: object) -> None:
        """Do tasks until there are none. ``_leave`` is called in the same step in which this is found."""

    @property
    def counted(self) -> bool:
        """Whether the workers count towards the coordinator's thread limit."""
        return self._counts_workers

    @property
    def _active(self) -> int:
        """How many workers are active or were submitted."""
        return len(self._visits)

    @property
    def _is_busy(self) -> bool:
        """Whether a worker is still doing what it may no longer do, after a pause or a stop."""
        return bool(self._visits)

    def call_workers(self, *, needed: bool = False) -> None:
        """Submit the missing workers.

        Raises:
            RuntimeError, MemoryError: if no worker can be started, one is needed and none is active.
        """
        with self.lock:
            for _ in range(self._missing_workers()):
                visit = object()
                self._visits.add(visit)
                try:
                    self.coordinator.submit(partial(self._work, visit), counted=self.counted)
                except BaseException as error:
                    self._visits.discard(visit)
                    # Closed meanwhile, or no more threads are available: the existing workers do the work.
                    if not isinstance(error, RuntimeError | MemoryError) or (needed and not self._visits):
                        raise
                    return

    def _work(self, visit: object) -> None:
        """Run one visit of a worker."""
        try:
            with self.lock:
                if visit not in self._visits:  # the submitting call was interrupted after the submission
                    return
            self._do_tasks(visit)
        except BaseException as error:  # noqa: BLE001  # raised by the iterator
            self._report_fault(error)
            with self.lock:
                self._leave(visit)

    def _report_fault(self, error: BaseException) -> None:
        if not self._stopped:
            self.coordinator.fail(error, str(self._works_for))

    def _leave(self, visit: object) -> None:
        """End a visit. The lock is held."""
        self._visits.discard(visit)
        self._stillness.notify_all()

    @contextlib.contextmanager
    def still(self) -> Iterator[None]:
        """Keep the workers from all work."""
        try:
            with self.lock:
                self._paused = True
            self._wait_for_stillness()
            yield
        finally:
            self._paused = False
            self.call_workers()

    def _wait_for_stillness(self, *, held: bool = False) -> None:
        """Wait until no worker does what it may no longer do; if ``held``, without being interruptible.

        A worker may not begin such work any more. So if none does it, the caller may keep its place and its locks.
        """
        if not self._is_busy:
            return
        wait = self._stillness.wait_held if held else self._stillness.wait
        with self.coordinator.blocked(), self.lock:
            while self._is_busy and not self.coordinator.has_ended:
                wait()

    def wake(self) -> None:
        """Make all threads stop soon."""
        with self.lock:
            self._stopped = True
            self._news.notify_all()

    def end_workers(self) -> None:
        """Stop, wait until no worker is busy, and release the accounted memory."""
        self.wake()
        self._wait_for_stillness(held=True)
        self._account.close()
        self.coordinator.unregister(self)
