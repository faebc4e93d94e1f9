"""Tests of the ownership and the shutdown of background threads."""

import threading

import pytest

from dataset import ClosedError
from dataset.runtime.resources.coordinator import Coordinator
from dataset.testing import no_leaks
from support.process_helpers import WAIT


class Worker:
    """Job that waits until it is woken, and then until it may leave."""

    def __init__(self, *, stays=False):
        self.started, self.woken, self.may_leave, self.ended = (threading.Event() for _ in range(4))
        if not stays:
            self.may_leave.set()

    def __call__(self):
        self.started.set()
        self.woken.wait(WAIT)
        self.may_leave.wait(WAIT)
        self.ended.set()

    def start(self, coordinator):
        thread = coordinator.start(self, self.woken.set, "test")
        assert self.started.wait(WAIT)
        return thread


@pytest.fixture
def coordinator():
    """A coordinator that is stopped at the end and leaves no thread."""
    with no_leaks():
        made = Coordinator()
        yield made
        made.stop()
        made.join()


def test_stopping_wakes_every_thread_and_joining_waits_for_them(coordinator):
    threads = [Worker().start(coordinator) for _ in range(2)]
    assert all(thread.daemon and thread.name == "dataset-test" for thread in threads)
    coordinator.stop()
    coordinator.join()
    assert not any(thread.is_alive() for thread in threads)


@pytest.mark.parametrize("wait", [True, False])
def test_shutting_down_finishes_once_after_the_last_thread(coordinator, wait):
    thread, finished = Worker().start(coordinator), []
    if not wait:
        coordinator.stop()
        coordinator.join()
    coordinator.shut_down(lambda: finished.append(1), wait=wait)
    assert finished == [1]
    assert not thread.is_alive()


def test_shutting_down_without_waiting_leaves_the_finish_to_the_last_thread_and_joining_waits_for_it(coordinator):
    workers, finished, gate = [Worker(stays=True), Worker(stays=True)], [], threading.Event()

    def finish():
        gate.wait(WAIT)
        finished.append(threading.current_thread())

    first, last = [worker.start(coordinator) for worker in workers]
    coordinator.shut_down(finish, wait=False)
    workers[0].may_leave.set()
    first.join()
    assert not finished
    workers[1].may_leave.set()
    waiter = threading.Thread(target=coordinator.join)
    waiter.start()
    gate.set()
    waiter.join()
    assert finished == [last]
    last.join()


def test_a_stop_wakes_who_has_registered_and_not_who_has_left_and_nothing_starts_after_it(coordinator):
    woken = []
    coordinator.register("here", lambda: woken.append("here"))
    coordinator.register("gone", lambda: woken.append("gone"))
    coordinator.unregister("gone")
    coordinator.stop()
    coordinator.stop()
    assert woken == ["here"]
    with pytest.raises(ClosedError):
        coordinator.register("late", lambda: None)
    with pytest.raises(ClosedError, match="closed"):
        coordinator.start(lambda: None, lambda: None, "late")


def test_a_thread_may_join_the_others_from_within(coordinator):
    worker, done = Worker(), threading.Event()
    worker.start(coordinator)

    def join_from_within():
        worker.woken.set()
        coordinator.join()
        done.set()

    coordinator.start(join_from_within, lambda: None, "joiner")
    assert done.wait(WAIT)


def test_a_forked_coordinator_refuses_and_does_nothing():
    coordinator, finished = Coordinator(), []
    coordinator.forked = True
    with pytest.raises(ClosedError, match="parent process"):
        coordinator.check_usable()
    coordinator.shut_down(lambda: finished.append(1), wait=True)
    assert finished == []


def submitted(coordinator, count, **kwargs):
    jobs = [Worker() for _ in range(count)]
    for job in jobs:
        coordinator.submit(job, **kwargs)
    return jobs


def test_no_more_counted_jobs_run_than_there_may_be_and_all_are_run_also_after_a_stop():
    with no_leaks():
        coordinator = Coordinator(workers_max=2)
        jobs = submitted(coordinator, 4)
        free = submitted(coordinator, 1, counted=False)
        assert all(job.started.wait(WAIT) for job in [*jobs[:2], *free])
        assert not jobs[2].started.is_set()
        jobs[1].woken.set()
        assert jobs[2].started.wait(WAIT)
        coordinator.stop()
        for job in [*jobs, *free]:
            job.woken.set()
        coordinator.join()
        assert all(job.ended.is_set() for job in jobs)
        with pytest.raises(ClosedError):
            coordinator.submit(Worker())


def test_in_the_place_of_one_that_waits_another_runs():
    with no_leaks():
        coordinator, other, after = Coordinator(workers_max=1), Worker(), threading.Event()

        def wait_for_the_other():
            with coordinator.blocked():
                assert other.started.wait(WAIT)
                other.woken.set()
            after.set()

        coordinator.submit(wait_for_the_other)
        coordinator.submit(other)
        assert after.wait(WAIT)
        coordinator.stop()
        coordinator.join()
