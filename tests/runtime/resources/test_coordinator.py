"""Tests of the ownership and the shutdown of background threads."""

import threading

import pytest

from dataset import ClosedError, Dataset
from dataset.runtime.resources.coordinator import Coordinator
from dataset.testing import no_leaks

WAIT = 60  # seconds to wait for an event; tests normally wait much less


class Worker:
    """Job that waits until it is woken."""

    def __init__(self):
        self.started = threading.Event()
        self.woken = threading.Event()
        self.leave = threading.Event()
        self.leave.set()

    def run(self):
        self.started.set()
        self.woken.wait(WAIT)
        self.leave.wait(WAIT)

    def start(self, coordinator):
        thread = coordinator.start(self.run, self.woken.set, "test")
        assert self.started.wait(WAIT)
        return thread


def test_stopping_wakes_every_thread_and_joining_waits_for_them():
    with no_leaks():
        coordinator, workers = Coordinator(), [Worker(), Worker()]
        threads = [worker.start(coordinator) for worker in workers]
        coordinator.stop()
        coordinator.join()
        assert not any(thread.is_alive() for thread in threads)


def test_threads_are_daemons_and_named_for_the_library():
    coordinator, worker = Coordinator(), Worker()
    thread = worker.start(coordinator)
    assert thread.daemon
    assert thread.name == "dataset-test"
    coordinator.stop()
    coordinator.join()


def test_shutting_down_and_waiting_finishes_once_after_the_last_thread():
    coordinator, worker, finished = Coordinator(), Worker(), []
    thread = worker.start(coordinator)
    coordinator.shut_down(lambda: finished.append(1), wait=True)
    assert finished == [1]
    assert not thread.is_alive()


def test_shutting_down_without_waiting_leaves_the_finish_to_the_last_thread():
    coordinator, workers, finished, done = Coordinator(), [Worker(), Worker()], [], threading.Event()

    def finish():
        finished.append(threading.current_thread())
        done.set()

    threads = [worker.start(coordinator) for worker in workers]
    for worker in workers:
        worker.leave.clear()
    coordinator.shut_down(finish, wait=False)
    assert not finished
    workers[0].leave.set()
    threads[0].join()
    assert not finished
    workers[1].leave.set()
    assert done.wait(WAIT)
    assert finished == [threads[1]]
    threads[1].join()


def test_shutting_down_without_threads_finishes_at_once():
    coordinator, finished = Coordinator(), []
    coordinator.shut_down(lambda: finished.append(1), wait=False)
    assert finished == [1]


def test_nothing_is_started_once_it_has_stopped():
    coordinator = Coordinator()
    coordinator.stop()
    with pytest.raises(ClosedError, match="closed"):
        coordinator.start(lambda: None, lambda: None, "late")
    coordinator.stop()
    coordinator.join()


def test_a_thread_may_join_the_others_from_within():
    coordinator, worker, done = Coordinator(), Worker(), threading.Event()
    worker.start(coordinator)

    def join_from_within():
        worker.woken.set()
        coordinator.join()
        done.set()

    coordinator.start(join_from_within, lambda: None, "joiner")
    assert done.wait(WAIT)
    coordinator.stop()
    coordinator.join()


def test_a_thread_that_the_system_refuses_is_an_error_and_closing_still_works(monkeypatch):
    with no_leaks():
        iterator = iter(Dataset.range(3).prefetch(1))

        def refuse(self):
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            with pytest.raises(RuntimeError, match="can't start new thread"):
                next(iterator)
        iterator.close()


def test_after_a_refused_thread_the_iterator_goes_on(monkeypatch):
    iterator = iter(Dataset.range(3).prefetch(1))
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", lambda self: (_ for _ in ()).throw(RuntimeError("no")))
        with pytest.raises(RuntimeError):
            next(iterator)
    assert [int(x) for x in iterator] == [0, 1, 2]


def test_a_forked_coordinator_refuses_and_does_nothing():
    coordinator, finished = Coordinator(), []
    coordinator.forked = True
    with pytest.raises(ClosedError, match="parent process"):
        coordinator.check_usable()
    coordinator.shut_down(lambda: finished.append(1), wait=True)
    assert finished == []


def test_a_job_that_waits_for_a_place_is_run_after_a_stop_when_the_idle_workers_have_left():
    coordinator, helped, idle, ready, go_on, ran = Coordinator(1), *(threading.Event() for _ in range(5))
    wait_for_a_job = coordinator._job_came.wait
    coordinator._job_came.wait = lambda: (idle.set(), wait_for_a_job())

    def first():
        with coordinator.blocked():
            assert helped.wait(WAIT)  # by another worker, which is idle afterward
        ready.set()
        assert go_on.wait(WAIT)
        with coordinator.blocked():
            assert ran.wait(WAIT)

    with no_leaks():
        coordinator.submit(first)
        coordinator.submit(helped.set)
        assert ready.wait(WAIT)
        assert idle.wait(WAIT)
        coordinator.submit(ran.set)
        coordinator.stop()
        go_on.set()
        coordinator.join()
    assert ran.is_set()


class Gated:
    """Job that signals its start, and ends when it is released."""

    def __init__(self):
        self.begun, self.may_end, self.ended = threading.Event(), threading.Event(), threading.Event()

    def __call__(self):
        self.begun.set()
        self.may_end.wait(WAIT)
        self.ended.set()


def submitted(coordinator, count, **kwargs):
    jobs = [Gated() for _ in range(count)]
    for job in jobs:
        coordinator.submit(job, **kwargs)
    return jobs


def test_jobs_run_at_once_and_their_threads_are_used_again():
    with no_leaks():
        coordinator = Coordinator()
        for _ in range(3):
            jobs = submitted(coordinator, 3)
            assert all(job.begun.wait(WAIT) for job in jobs)
            for job in jobs:
                job.may_end.set()
            assert all(job.ended.wait(WAIT) for job in jobs)
        assert len([t for t in threading.enumerate() if t.name == "dataset-worker"]) <= 6
        coordinator.stop()
        coordinator.join()


def test_no_more_counted_jobs_run_than_there_may_be():
    with no_leaks():
        coordinator = Coordinator(workers_max=2)
        jobs = submitted(coordinator, 3)
        free = submitted(coordinator, 1, counted=False)
        assert jobs[0].begun.wait(WAIT)
        assert jobs[1].begun.wait(WAIT)
        assert free[0].begun.wait(WAIT)
        assert not jobs[2].begun.is_set()
        jobs[1].may_end.set()
        assert jobs[2].begun.wait(WAIT)
        for job in [*jobs, *free]:
            job.may_end.set()
        coordinator.stop()
        coordinator.join()


def test_in_the_place_of_one_that_waits_another_runs():
    with no_leaks():
        coordinator, other, after = Coordinator(workers_max=1), Gated(), threading.Event()

        def wait_for_the_other():
            with coordinator.blocked():
                assert other.begun.wait(WAIT)
                other.may_end.set()
            after.set()

        coordinator.submit(wait_for_the_other)
        coordinator.submit(other)
        assert after.wait(WAIT)
        coordinator.stop()
        coordinator.join()


def test_every_job_that_was_taken_is_run_also_after_a_stop():
    with no_leaks():
        coordinator = Coordinator(workers_max=1)
        jobs = submitted(coordinator, 4)
        coordinator.stop()
        for job in jobs:
            job.may_end.set()
        coordinator.join()
        assert all(job.ended.is_set() for job in jobs)
        with pytest.raises(ClosedError):
            coordinator.submit(Gated())


def test_a_stop_wakes_who_has_registered_and_not_who_has_left():
    coordinator, woken = Coordinator(), []
    coordinator.register("here", lambda: woken.append("here"))
    coordinator.register("gone", lambda: woken.append("gone"))
    coordinator.unregister("gone")
    coordinator.stop()
    coordinator.stop()
    assert woken == ["here"]
    with pytest.raises(ClosedError):
        coordinator.register("late", lambda: None)


def test_shutting_down_waits_for_the_thread_that_finishes():
    coordinator, worker, gate, finished = Coordinator(), Worker(), threading.Event(), []
    worker.leave.clear()
    worker.start(coordinator)

    def finish():
        gate.wait(WAIT)
        finished.append(threading.current_thread().name)

    coordinator.shut_down(finish, wait=False)
    worker.leave.set()  # the thread is the last one: it finishes
    waiter = threading.Thread(target=coordinator.join)
    waiter.start()
    gate.set()
    waiter.join()
    assert finished == ["dataset-test"]
