"""Tests of from_queue, to_queue and async iteration."""

import asyncio
import multiprocessing
import os
import queue as stdlib
import re
import time
from functools import partial
from multiprocessing.reduction import ForkingPickler

import numpy as np
import pytest

from dataset import ClosedError, Dataset, SpecError, TensorSpec
from dataset.ops.sources import queue_readers
from dataset.queues import FIFOQueue, OutOfRangeError
from dataset.testing import outcomes
from support.op_cases import fail_at
from support.overlap import nothing_left
from support.process_helpers import WAIT, in_thread

SPAWN = multiprocessing.get_context("spawn")
THREAD_QUEUES = {
    "fifo": lambda: FIFOQueue(100),
    "queue": stdlib.Queue,
    "lifo": stdlib.LifoQueue,
    "simple": stdlib.SimpleQueue,
    "process": SPAWN.Queue,
    "process, simple": SPAWN.SimpleQueue,
}


def put(queue, *values):
    for value in values:
        queue.enqueue(value) if hasattr(queue, "enqueue") else queue.put(value)


@pytest.mark.parametrize("kind", THREAD_QUEUES)
def test_elements_come_until_the_end(kind):
    queue = THREAD_QUEUES[kind]()
    put(queue, *range(5)) if kind != "lifo" else put(queue, StopIteration(), *reversed(range(5)))
    if kind == "fifo":
        queue.close()
    elif kind != "lifo":
        put(queue, StopIteration())
    iterator = iter(Dataset.from_queue(queue).batch(2))
    assert [batch.tolist() for batch in iterator] == [[0, 1], [2, 3], [4]]
    with pytest.raises(StopIteration):
        next(iterator)


@pytest.mark.parametrize("make", [stdlib.Queue, SPAWN.JoinableQueue])
def test_elements_that_were_taken_are_done(make):
    queue = make()
    put(queue, *range(3), StopIteration())
    assert len(list(Dataset.from_queue(queue))) == 3
    queue.join()


def test_producers_that_wait_for_room_continue():
    queue = stdlib.Queue(3)
    producers = [in_thread(lambda: put(queue, *range(20))) for _ in range(4)]
    assert sorted(Dataset.from_queue(queue).batch(8).unbatch().take(80)) == sorted([*range(20)] * 4)
    for producer in producers:
        producer.result()
    queue.join()


class Counting(stdlib.Queue):
    gets = done = 0

    def get(self, *args, **kwargs):
        self.gets += 1
        return super().get(*args, **kwargs)

    def task_done(self):
        self.done += 1
        super().task_done()


def test_methods_that_a_subclass_overrides_are_called():
    queue = Counting()
    put(queue, *range(5), StopIteration())
    assert len(list(Dataset.from_queue(queue).batch(5))) == 1
    assert (queue.gets, queue.done) == (7, 6)  # one finds nothing


@pytest.mark.parametrize("ahead", [None, 1])
@pytest.mark.parametrize("kind", THREAD_QUEUES)
def test_closing_ends_a_wait(kind, ahead):
    queue = THREAD_QUEUES[kind]()
    put(queue, 7)  # a queue of multiprocessing starts its own thread
    with nothing_left():
        dataset = Dataset.from_queue(queue, TensorSpec((), np.int64))
        iterator = iter(dataset if ahead is None else dataset.prefetch(ahead))
        assert next(iterator) == 7
        waiting = in_thread(lambda: next(iterator))
        iterator.close()
        assert isinstance(waiting.result(), ClosedError | StopIteration)
        put(queue, 8)  # it was not taken by the closed iterator
        assert next(iter(dataset)) == 8


@pytest.mark.parametrize("kind", ["fifo", "queue", "simple"])
def test_nothing_is_taken_before_it_is_requested(kind):
    queue = THREAD_QUEUES[kind]()
    put(queue, *range(10))
    iterator = iter(Dataset.from_queue(queue))
    assert [next(iterator), next(iterator)] == [0, 1]
    assert (queue.size() if kind == "fifo" else queue.qsize()) == 8
    iterator.close()


def test_an_exception_takes_an_elements_place():
    queue = stdlib.Queue()
    put(queue, 1, ValueError("bad"), 2, StopIteration())
    iterator = iter(Dataset.from_queue(queue))
    assert next(iterator) == 1
    with pytest.raises(ValueError, match="bad") as caught:
        next(iterator)
    assert re.fullmatch(r"in from_queue\(Queue\) from test_from_queue.py:\d+, element 1", caught.value.__notes__[0])
    assert list(iterator) == [2]


def test_elements_are_checked_in_their_places():
    queue = FIFOQueue(9)
    put(queue, (1, 2))
    queue.close()
    iterator = iter(Dataset.from_queue(queue, TensorSpec((), np.int64)))
    with pytest.raises(SpecError, match=r"from_queue\(FIFOQueue\) received .*element_spec"):
        next(iterator)
    assert list(iterator) == []


def test_the_spec_is_that_of_the_queue_and_nothing_is_taken_to_find_it():
    spec = TensorSpec((3,), np.float32)
    assert Dataset.from_queue(FIFOQueue(1, spec)).element_spec == spec
    queue = stdlib.Queue()
    put(queue, 1)
    with pytest.raises(SpecError, match="pass element_spec"):
        _ = Dataset.from_queue(queue).element_spec
    assert queue.qsize() == 1


def test_other_queues_are_refused():
    with pytest.raises(TypeError, match=r"from_queue\(\): queue must be one of"):
        Dataset.from_queue([1, 2])
    with pytest.raises(TypeError, match=r"to_queue\(\): queue must be"):
        Dataset.range(3).to_queue(stdlib.SimpleQueue())
    with pytest.raises(RuntimeError, match="event loop"):
        Dataset.from_queue(asyncio.Queue())
    with pytest.raises(TypeError, match="spec"):
        Dataset.from_queue(FIFOQueue(1), "int64")


def test_iterators_share_the_elements():
    queue = FIFOQueue(9)
    put(queue, *range(6))
    queue.close()
    dataset = Dataset.from_queue(queue)
    first, second = iter(dataset), iter(dataset)
    assert [next(first), next(second), next(first)] == [0, 1, 2]
    assert list(second) == [3, 4, 5]
    assert list(dataset) == []


def _write_much(queue):
    queue.put(bytes(50_000_000))


def _wait_until_begun(queue):
    while not queue_readers._partial_messages.get(queue):
        time.sleep(0.01)


def test_an_iterator_can_be_closed_if_a_producer_was_killed_while_it_wrote():
    queue = SPAWN.Queue()
    producer = SPAWN.Process(target=_write_much, args=(queue,))
    producer.start()
    assert queue._reader.poll(WAIT)  # much of the element is not in the pipe yet
    producer.kill()
    producer.join(WAIT)
    with nothing_left():
        iterator = iter(Dataset.from_queue(queue, TensorSpec((), bytes)))
        waiting = in_thread(lambda: next(iterator))
        _wait_until_begun(queue)
        iterator.close()
        assert isinstance(waiting.result(), ClosedError)
    assert queue._rlock.acquire(block=False)  # other readers do not wait for this one


@pytest.mark.parametrize("size", [10, 20_000, 3_000_000])
def test_the_bytes_of_an_element_that_have_arrived_are_kept_for_the_next_iterator(size):
    queue, element = SPAWN.SimpleQueue(), bytes(range(251)) * (size // 251) + b"end"
    pickled = bytes(ForkingPickler.dumps(element))
    message = len(pickled).to_bytes(4, "big") + pickled
    dataset = Dataset.from_queue(queue, TensorSpec((), bytes))
    for first, last in ((0, 3), (3, len(message) - 2)):
        iterator = iter(dataset)
        waiting = in_thread(partial(next, iterator))
        os.write(queue._writer.fileno(), message[first:last])
        _wait_until_begun(queue)
        iterator.close()
        assert isinstance(waiting.result(), ClosedError)
    os.write(queue._writer.fileno(), message[-2:])
    assert next(iter(dataset)) == element


def test_an_element_of_several_gigabytes_has_a_longer_length():
    length = 5 << 30
    head = bytearray(b"\xff\xff\xff\xff" + length.to_bytes(8, "big"))
    assert [queue_readers._missing(head[:size]) for size in (0, 3, 4, 11, 12)] == [4, 1, 8, 1, length]


@pytest.mark.skipif(not hasattr(stdlib, "ShutDown"), reason="queue.Queue.shutdown is new in Python 3.13")
def test_a_shut_down_queue_ends():
    queue = stdlib.Queue()
    put(queue, 1, 2)
    queue.shutdown()
    assert list(Dataset.from_queue(queue)) == [1, 2]


# to_queue


@pytest.mark.parametrize("kind", ["fifo", "queue"])
def test_a_dataset_runs_into_a_queue_and_ends_it(kind):
    with nothing_left():
        queue = FIFOQueue(2) if kind == "fifo" else stdlib.Queue(2)
        with Dataset.range(7).to_queue(queue) as feeder:
            assert list(Dataset.from_queue(queue)) == list(range(7))
            assert feeder.join(WAIT)


@pytest.mark.parametrize(("kind", "by_consumer"), [("fifo", True), ("fifo", False), ("queue", False)])
def test_closing_ends_a_thread_that_waits_for_room(kind, by_consumer):
    with nothing_left():
        queue = FIFOQueue(2) if kind == "fifo" else stdlib.Queue(2)
        feeder = Dataset.range(7).repeat().to_queue(queue)
        assert (queue.dequeue() if kind == "fifo" else queue.get()) == 0
        assert not feeder.join(0)
        if by_consumer:
            queue.close(cancel_pending_enqueues=True)
            assert feeder.join(WAIT)
        feeder.close()
        feeder.close()


def test_an_exception_is_the_last_that_comes():
    queue = FIFOQueue(9)
    with Dataset.range(5).map(fail_at(2)).to_queue(queue) as feeder:
        assert feeder.join(WAIT)
        assert [queue.dequeue(), queue.dequeue()] == [0, 1]
        with pytest.raises(ValueError, match="bad"):
            queue.dequeue()
        with pytest.raises(OutOfRangeError):
            queue.dequeue()


# Async


def test_the_event_loop_fills_the_queue_that_it_reads():
    async def main():
        queue = asyncio.Queue(2)

        async def produce():
            for number in range(6):
                await queue.put(number)
            await queue.put(StopIteration())

        producer = asyncio.create_task(produce())
        found = [batch.tolist() async for batch in Dataset.from_queue(queue).batch(4)]
        await producer
        return found

    with nothing_left():
        assert asyncio.run(main()) == [[0, 1, 2, 3], [4, 5]]


def test_a_cancelled_task_closes_its_iterator():
    async def main():
        queue = asyncio.Queue()
        started = asyncio.Event()

        async def consume():
            started.set()
            async for _ in Dataset.from_queue(queue):
                pass

        consumer = asyncio.create_task(consume())
        await started.wait()
        consumer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await consumer
        await queue.put(1)
        await asyncio.sleep(0)
        return queue.qsize()

    with nothing_left():
        assert asyncio.run(main()) == 1


def test_iterating_in_the_loop_of_the_queue_is_an_error():
    async def main():
        with pytest.raises(RuntimeError, match="use `async for`"):
            next(iter(Dataset.from_queue(asyncio.Queue())))

    asyncio.run(main())


@pytest.mark.parametrize("through", [lambda d: d, lambda d: d.prefetch(2), lambda d: d.batch(2).unbatch()])
def test_async_iteration_continues_after_a_failure_as_iteration_does(through):
    dataset = through(Dataset.range(6).map(fail_at(0, 3, 5)))

    async def main():
        found, elements = [], aiter(dataset)
        while True:
            try:
                found.append(int(await anext(elements)))
            except ValueError as error:
                found.append(str(error))
            except StopAsyncIteration:
                return found

    with nothing_left():
        assert asyncio.run(main()) == [str(x) if isinstance(x, ValueError) else int(x) for x in outcomes(iter(dataset))]


def test_a_cancelled_anext_loses_nothing():
    async def main():
        queue = FIFOQueue(10, TensorSpec((), np.int64))
        elements = aiter(Dataset.from_queue(queue))
        for number in range(3):
            task = asyncio.ensure_future(anext(elements))
            await asyncio.sleep(0)  # it waits for the queue
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            queue.enqueue(number)
            assert await anext(elements) == number
        queue.close()
        return [x async for x in elements]

    with nothing_left():
        assert asyncio.run(main()) == []


def test_each_element_goes_to_one_of_several_tasks():
    async def main():
        elements = aiter(Dataset.range(20).prefetch(3))
        return sorted(map(int, await asyncio.gather(*(anext(elements) for _ in range(20)))))

    with nothing_left():
        assert asyncio.run(main()) == list(range(20))


@pytest.mark.parametrize("begun", [False, True])
def test_closed_elements_end_and_a_call_that_waits_says_so(begun):
    async def main():
        elements = aiter(Dataset.from_queue(FIFOQueue(1, TensorSpec((), np.int64))))
        if begun:
            task = asyncio.ensure_future(anext(elements))
            await asyncio.sleep(0)
        with nothing_left():
            await elements.aclose()
        if begun:
            with pytest.raises(ClosedError):
                await task
        return [x async for x in elements]

    assert asyncio.run(main()) == []
