"""Tests of Coordinator, QueueRunner and start_queue_runners."""

import threading
from unittest.mock import Mock

import pytest

from dataset.queues import (
    Coordinator,
    FIFOQueue,
    OutOfRangeError,
    QueueRunner,
    RandomShuffleQueue,
    add_queue_runner,
    start_queue_runners,
)
from support.overlap import nothing_left
from support.process_helpers import WAIT


def enqueue_from(queue, values):
    values = iter(values)
    lock = threading.Lock()

    def enqueue():
        with lock:
            value = next(values)
        queue.enqueue(value)

    return enqueue


def test_the_first_exception_is_raised_where_the_threads_are_joined_unless_it_is_cleared():
    coordinator = Coordinator()
    coordinator.request_stop(ValueError("first"))
    coordinator.request_stop(ValueError("second"))
    assert coordinator.should_stop()
    assert coordinator.wait_for_stop(0)
    with pytest.raises(ValueError, match="first"):
        coordinator.join()
    assert coordinator.joined
    coordinator.clear_stop()
    assert not coordinator.should_stop()
    assert not coordinator.wait_for_stop(timeout=0)
    coordinator.join()


def test_the_end_of_the_data_is_a_clean_stop():
    coordinator = Coordinator()
    with coordinator.stop_on_exception():
        raise OutOfRangeError
    assert coordinator.should_stop()
    coordinator.join()


def test_join_returns_after_the_grace_period():
    coordinator = Coordinator()
    go = threading.Event()
    thread = threading.Thread(target=go.wait, name="stubborn")
    thread.start()
    coordinator.register_thread(thread)
    coordinator.request_stop()
    try:
        with pytest.raises(RuntimeError, match=r"still run 0 s after the stop was requested: stubborn"):
            coordinator.join(stop_grace_period_secs=0)
        coordinator.join([thread], stop_grace_period_secs=0, ignore_live_threads=True)
    finally:
        go.set()
        thread.join()


def test_a_stop_ends_the_join_of_threads_that_have_not_ended():
    coordinator = Coordinator()
    threads = [threading.Thread(target=coordinator.wait_for_stop) for _ in range(3)]
    for thread in threads:
        thread.start()
    stopper = threading.Thread(target=coordinator.request_stop, args=[ValueError("stop")])
    stopper.start()
    with pytest.raises(ValueError, match="stop"):
        coordinator.join(threads)
    assert not any(thread.is_alive() for thread in threads)
    stopper.join()


def test_runners_fill_a_queue_from_several_threads_and_close_it():
    queue = FIFOQueue(3)
    enqueue = enqueue_from(queue, range(100))
    coordinator = Coordinator()
    threads = QueueRunner(queue, [enqueue] * 4).create_threads(coordinator, start=True)
    assert len(threads) == 5
    found = sorted(queue.dequeue_many(100).tolist())
    assert found == list(range(100))
    with pytest.raises(OutOfRangeError):
        queue.dequeue()
    assert not coordinator.should_stop(), "the end of the data is no reason to stop the others"
    coordinator.request_stop()
    coordinator.join(threads)
    assert not any(thread.is_alive() for thread in threads)


def test_a_stop_ends_runners_that_wait_for_room():
    with nothing_left():
        queue = FIFOQueue(1)
        coordinator = Coordinator()
        QueueRunner(queue, [lambda: queue.enqueue(1)] * 3).create_threads(coordinator, start=True)
        assert queue.dequeue() == 1
        coordinator.request_stop()
        coordinator.join()
    assert queue.is_closed()


def test_without_a_coordinator_the_consumer_meets_the_exception():
    queue = FIFOQueue(5)
    error = ValueError("broken")
    runner = QueueRunner(queue, [Mock(side_effect=error)])
    (thread,) = runner.create_threads(start=True)
    with pytest.raises(ValueError, match="broken"):
        queue.dequeue()
    with pytest.raises(OutOfRangeError):
        queue.dequeue()
    thread.join()
    assert runner.exceptions_raised == [error]


def test_the_queue_stays_open_until_the_last_function_has_ended():
    queue = FIFOQueue(9)
    go = threading.Event()

    def late():
        go.wait()
        queue.enqueue(2)
        raise StopIteration

    threads = QueueRunner(queue, [enqueue_from(queue, [1]), late]).create_threads()
    assert not any(thread.is_alive() for thread in threads)
    for thread in threads:
        thread.start()
    threads[0].join(WAIT)
    is_open = not queue.is_closed()
    go.set()  # before a check fails: the interpreter waits for the thread at its exit
    threads[1].join(WAIT)
    assert is_open
    assert queue.dequeue_up_to(5).tolist() == [1, 2]


def test_threads_are_created_once_at_a_time():
    queue = FIFOQueue(1)
    runner = QueueRunner(queue, [enqueue_from(queue, [])])
    (thread,) = runner.create_threads()
    with pytest.raises(RuntimeError, match="1 threads of an earlier call still run"):
        runner.create_threads()
    thread.start()
    thread.join()
    assert len(runner.create_threads()) == 1


@pytest.mark.parametrize(("functions", "error"), [([], ValueError), ([1], TypeError)])
def test_functions_are_required(functions, error):
    with pytest.raises(error, match="enqueue_functions"):
        QueueRunner(FIFOQueue(1), functions)


def test_registered_runners_run_within_a_block():
    with nothing_left():
        first, second = FIFOQueue(2), RandomShuffleQueue(4, 1)
        add_queue_runner(QueueRunner(first, [lambda: first.enqueue(1)]))
        add_queue_runner(QueueRunner(second, [lambda: second.enqueue(first.dequeue())]))
        with start_queue_runners() as coordinator:
            assert second.dequeue_many(10).tolist() == [1] * 10
        assert coordinator.joined
        assert first.is_closed()
        with start_queue_runners() as again:
            assert not again.should_stop()
        third = FIFOQueue(1)
        with (
            pytest.raises(ZeroDivisionError),
            start_queue_runners(runners=[QueueRunner(third, [lambda: 1 / 0])]) as other,
        ):
            other.wait_for_stop(WAIT)


def test_an_exception_of_the_block_ends_the_threads():
    with nothing_left():
        queue = FIFOQueue(1)
        with pytest.raises(KeyError), start_queue_runners(runners=[QueueRunner(queue, [lambda: queue.enqueue(1)])]):
            raise KeyError
