"""Workers leave exactly once, whatever is raised while they are called, work, or are stopped."""

import threading
from collections import deque
from types import SimpleNamespace

import pytest

from dataset import Dataset
from dataset.errors import ClosedError
from dataset.runtime.metrics.background import Counters, Tunable
from dataset.runtime.parallel.worker_loop import WorkerLoop
from dataset.runtime.resources.coordinator import Coordinator
from dataset.runtime.resources.exceptions import NoThreadError
from dataset.runtime.resources.ledger import Ledger
from dataset.testing import no_leaks
from support.process_helpers import WAIT

NODE = Dataset.range(1).plan


class Tasks(WorkerLoop):
    """Functions that up to two workers call."""

    def __init__(self, coordinator, *functions):
        iteration = SimpleNamespace(coordinator=coordinator, limits=SimpleNamespace(ledger=Ledger()), pulse=None)
        super().__init__(SimpleNamespace(iteration=iteration, counters=Counters()), NODE, Tunable("calls", 2))
        self.tasks = deque(functions)
        self.waits = threading.Event()  # set when a thread is about to wait for the workers
        coordinator.register(self, self.wake)

    def _missing_workers(self):
        waiting = 0 if self._paused or self._stopped else len(self.tasks)
        return max(0, min(waiting, self.knob.value - self._active))

    def _do_tasks(self, visit):
        while True:
            with self.lock:
                if self._paused or self._stopped or not self.tasks:
                    self._leave(visit)
                    return
                task = self.tasks.popleft()
            task()

    def _wait_for_stillness(self, *, held=False):
        self.waits.set()
        super()._wait_for_stillness(held=held)

    def wait_until_left(self):
        with self.lock:
            assert self._stillness.wait_for(lambda: not self._active, WAIT)


class Gate:
    """Task that waits until it may go on."""

    def __init__(self):
        self.entered, self.opened, self.passed = (threading.Event() for _ in range(3))

    def __call__(self):
        self.entered.set()
        assert self.opened.wait(WAIT)
        self.passed.set()


@pytest.fixture
def coordinator():
    with no_leaks():
        made = Coordinator()
        yield made
        made.stop()
        made.join()


def test_all_tasks_are_done_and_the_workers_leave(coordinator):
    done = []
    loop = Tasks(coordinator, *[lambda number=number: done.append(number) for number in range(100)])
    loop.call_workers()
    loop.wait_until_left()
    assert sorted(done) == list(range(100))
    loop.call_workers(needed=True)  # there is nothing to do
    assert not loop._active


@pytest.mark.parametrize("error", [NoThreadError, MemoryError, ClosedError])
def test_a_refused_worker_is_an_error_only_if_it_is_needed_and_none_is_active(coordinator, monkeypatch, error):
    gate = Gate()
    loop = Tasks(coordinator, gate)
    loop.call_workers()
    assert gate.entered.wait(WAIT)
    loop.tasks.append(lambda: None)

    def refuse(job, *, counted):
        raise error

    monkeypatch.setattr(coordinator, "submit", refuse)
    loop.call_workers(needed=True)  # the active worker does the task
    assert loop._active == 1
    gate.opened.set()
    loop.wait_until_left()
    loop.tasks.append(lambda: None)
    loop.call_workers()
    with pytest.raises(error):
        loop.call_workers(needed=True)
    assert not loop._active


def test_nothing_runs_while_workers_are_kept_still_and_the_rest_is_done_later(coordinator):
    gate, done = Gate(), threading.Event()
    loop = Tasks(coordinator, gate, done.set)
    loop.knob.value = 1
    loop.call_workers()
    assert gate.entered.wait(WAIT)
    opener = threading.Thread(target=lambda: loop.waits.wait(WAIT) and gate.opened.set())
    opener.start()
    with loop.still():
        assert gate.passed.is_set()
        assert not loop._active
        loop.call_workers()
        assert not loop._active
        assert not done.is_set()
    assert done.wait(WAIT)
    opener.join()


def test_ending_waits_for_the_task_in_progress_and_begins_no_other(coordinator):
    gate = Gate()
    loop = Tasks(coordinator, gate, lambda: pytest.fail("a task began after the stop"))
    loop.knob.value = 1
    loop.call_workers()
    assert gate.entered.wait(WAIT)
    ending = threading.Thread(target=loop.end_workers)
    ending.start()
    assert loop.waits.wait(WAIT)
    assert not gate.passed.is_set()
    gate.opened.set()
    ending.join(WAIT)
    assert not ending.is_alive()
    assert gate.passed.is_set()
    assert not loop._active
    loop.call_workers(needed=True)
    assert len(loop.tasks) == 1


def test_a_fault_stops_the_iteration_and_the_worker_leaves(coordinator):
    def fail():
        raise ZeroDivisionError

    loop = Tasks(coordinator, fail)
    loop.call_workers()
    loop.wait_until_left()
    assert str(NODE) in coordinator.failed
    with pytest.raises(ZeroDivisionError):
        coordinator.raise_failure()
