"""Tests of the queues: the semantics of TensorFlow's, conversion, and random schedules of threads."""

import collections
import contextlib
import copy
import dataclasses
import random
import threading
from functools import partial
from typing import Any

import numpy as np
import pytest

from dataset import RaggedTensor, RaggedTensorSpec, SpecError, TensorSpec
from dataset.plan.spec import spec_of
from dataset.plan.structure import structure_of
from dataset.queues import (
    CancelledError,
    FIFOQueue,
    OutOfRangeError,
    PaddingFIFOQueue,
    PriorityQueue,
    RandomShuffleQueue,
)
from dataset.queues.element_queue import WaitingCall
from support.process_helpers import WAIT, in_thread
from support.seeds import rng

NUMBER = TensorSpec((), np.int64)


@pytest.fixture
def waits(monkeypatch):
    """A function that returns when one more call waits in the queue."""
    entered, wait = threading.Semaphore(0), WaitingCall.wait

    def announced(call, deadline):
        if not call.is_done:
            entered.release()
        wait(call, deadline)

    def waits(queue):
        assert entered.acquire(timeout=WAIT)
        with queue._lock:  # which the call releases when it waits
            pass

    monkeypatch.setattr(WaitingCall, "wait", announced)
    return waits


def numbers(found):
    return np.asarray(found).tolist()


# Order, waiting and the end


def test_closing_lets_waiting_producers_finish(waits):
    queue = FIFOQueue(2)
    queue.enqueue_many([0, 1])
    producer = in_thread(lambda: queue.enqueue_many([2, 3]))
    waits(queue)
    queue.close()
    assert numbers(queue.dequeue_many(3)) == [0, 1, 2]
    assert producer.result() is None
    assert numbers(queue.dequeue_up_to(5)) == [3]


def test_a_timeout_leaves_everything_as_it_was():
    queue = FIFOQueue(3)
    for timeout in (0, -1, float("nan")):
        with pytest.raises(TimeoutError, match="0 of 1 elements came in"):
            queue.dequeue(timeout)
    queue.enqueue_many([1, 2])
    with pytest.raises(TimeoutError, match="2 of 3 elements came"):
        queue.dequeue_many(3, timeout=0.01)
    assert queue.size() == len(queue) == 2
    with pytest.raises(TimeoutError, match="with 1 of 2 elements left to enqueue"):
        queue.enqueue_many([3, 4], timeout=0)
    assert numbers(queue.dequeue_many(3)) == [1, 2, 3]


def test_an_exception_takes_the_place_of_an_element():
    queue = FIFOQueue(9)
    queue.enqueue(1)
    queue.enqueue(ValueError("bad"))
    queue.enqueue(2)
    with pytest.raises(ValueError, match="bad"):
        queue.dequeue_many(3, timeout=1)
    assert numbers(queue.dequeue_many(2)) == [1, 2]


# Conversion


@dataclasses.dataclass
class Point:
    x: Any
    y: Any


ELEMENTS = [
    3,
    1.5,
    "é",
    b"ab",
    np.float32(2),
    np.datetime64(3, "s"),
    np.arange(3),
    np.arange(6).reshape(3, 2).T,
    np.array(["a", "bc"]),
    [1, 2],
    ["a", "b"],
    RaggedTensor.from_rows([[1], [2, 3]]),
    (1, (2.5, "a")),
    {"b": np.ones(2), "a": 1},
    (1,),
    collections.OrderedDict(b=1, a=2),
    Point(1, np.ones(2)),
    (None, 1),
]


def same(one, other):
    """Whether two elements are equal, with the same types and dtypes."""
    structure = structure_of(one)
    assert structure == structure_of(other)
    for first, second in zip(structure.flatten(one), structure.flatten(other), strict=True):
        assert type(first) is type(second)
        assert getattr(first, "dtype", None) == getattr(second, "dtype", None)
        assert repr(first) == repr(second)
    return repr(one) == repr(other)


@pytest.mark.parametrize("element", ELEMENTS, ids=repr)
def test_each_element_is_converted_as_the_first(element):
    queue = FIFOQueue(9)
    for _ in range(2):
        queue.enqueue(copy.deepcopy(element))
    first, second = queue.dequeue(), queue.dequeue()
    assert same(first, second)
    pairs = zip(structure_of(element).flatten(element), structure_of(second).flatten(second), strict=True)
    assert not any(isinstance(mine, np.ndarray) and np.shares_memory(mine, theirs) for mine, theirs in pairs)
    declared = FIFOQueue(9, spec_of(first))
    for _ in range(2):
        declared.enqueue(copy.deepcopy(element))
    assert same(declared.dequeue(), first)
    assert same(declared.dequeue(), first)


@pytest.mark.parametrize(
    ("spec", "value", "expected"),
    [
        (TensorSpec((), np.float32), 3, np.float32(3)),
        (TensorSpec((), np.int8), 300, SpecError),
        (TensorSpec((), np.int64), 1.5, SpecError),
        (TensorSpec((), bytes), "a", b"a"),
        (TensorSpec((1,), np.int64), 1, SpecError),
        (TensorSpec((None, 2), np.int64), np.ones((2, 3), int), SpecError),
        (TensorSpec((2,), bytes), ["a", "b"], np.array([b"a", b"b"], object)),
        (TensorSpec((), object), Ellipsis, Ellipsis),
        (RaggedTensorSpec((None, None), np.int64, 1), RaggedTensor.from_rows([[1]]), RaggedTensor.from_rows([[1]])),
    ],
)
def test_an_element_is_cast_to_its_spec_or_refused(spec, value, expected):
    for queue, given in ((FIFOQueue(9, spec), value), (FIFOQueue(9, {"a": spec}), {"a": value})):
        if expected is SpecError:
            with pytest.raises(SpecError, match=r"FIFOQueue received .*element_spec declares"):
                queue.enqueue(given)
        else:
            queue.enqueue(given)
            found = queue.dequeue()
            assert same(found, {"a": expected} if isinstance(given, dict) else expected)


def test_batches_have_the_structure_of_elements():
    queue = FIFOQueue(9)
    queue.enqueue_many({"a": np.arange(6).reshape(3, 2), "b": ["x", "y", "z"]})
    found = queue.dequeue_many(2)
    assert found["a"].tolist() == [[0, 1], [2, 3]]
    assert found["b"].tolist() == [b"x", b"y"]
    assert queue.dequeue()["a"].tolist() == [4, 5]


@pytest.mark.parametrize(
    ("elements", "message"),
    [
        ([(1, "a"), (2, "b")], "got a list of elements"),
        (([1, 2], [1]), "must have the same number of rows"),
        (3, "must be an array with rows"),
        ((), "no components"),
    ],
)
def test_a_batch_that_is_none_is_refused(elements, message):
    with pytest.raises(SpecError, match=message):
        FIFOQueue(9).enqueue_many(elements)


@pytest.mark.parametrize("spec", [None, (NUMBER, NUMBER)])
def test_the_spec_or_the_first_element_determines_the_structure(spec):
    queue = FIFOQueue(9, spec, name="examples")
    queue.enqueue((1, 2))
    with pytest.raises(SpecError, match="examples received"):
        queue.enqueue({"a": 1})
    assert queue.size() == 1


def test_elements_that_do_not_stack_are_named():
    queue = FIFOQueue(9)
    queue.enqueue([1])
    queue.enqueue([1, 2])
    with pytest.raises(SpecError, match=r"same shape, got \(1,\) and \(2,\).*PaddingFIFOQueue"):
        queue.dequeue_many(2)
    assert [queue.dequeue().tolist() for _ in range(2)] == [[1], [1, 2]], "they stay"


def test_an_empty_batch_needs_a_spec():
    assert FIFOQueue(9, TensorSpec((3,), np.float32)).dequeue_many(0).shape == (0, 3)
    with pytest.raises(ValueError, match="needs a queue with an element_spec"):
        FIFOQueue(9).dequeue_many(0)


# Other kinds


@pytest.mark.parametrize(
    ("make", "given", "error", "words"),
    [
        *((FIFOQueue, (capacity,), ValueError, "capacity must be at least 1") for capacity in (0, -1)),
        *((RandomShuffleQueue, (2, minimum), ValueError, "min_after_dequeue") for minimum in (-1, 2, 3)),
        (PaddingFIFOQueue, (9, TensorSpec(None, np.int64)), ValueError, "must be known"),
        (PaddingFIFOQueue, (9, RaggedTensorSpec((None, None), np.int64)), TypeError, "only arrays can be padded"),
    ],
)
def test_wrong_arguments(make, given, error, words):
    with pytest.raises(error, match=words):
        make(*given)


def test_a_random_order_is_uniform_and_repeats_with_its_seed():
    def order(seed):
        queue = RandomShuffleQueue(9, 0, seed=seed)
        queue.enqueue_many(range(3))
        return tuple(numbers(queue.dequeue_many(3)))

    assert order(7) == order(7)
    counts = [0] * 6
    orders = sorted({order(seed) for seed in range(100)})
    assert len(orders) == 6
    for seed in range(600):
        counts[orders.index(order(seed))] += 1
    assert min(counts) > 60  # of 100 expected; five standard deviations are 46


def test_elements_that_are_put_back_keep_their_order():
    queue = PriorityQueue(9)
    for element in [(1, "a"), (1, "b"), (1, "c")]:
        queue.enqueue(element)
    with pytest.raises(TimeoutError):
        queue.dequeue_many(4, timeout=0)
    assert queue.dequeue_many(3)[1].tolist() == [b"a", b"b", b"c"]


@pytest.mark.parametrize("element", [1, ("a", 1), (1,), (1.5, 2)])
def test_a_priority_is_required(element):
    with pytest.raises(SpecError, match="priority"):
        PriorityQueue(9).enqueue(element)


# Random schedules

KINDS = {
    "fifo": lambda draws: FIFOQueue(draws.randint(1, 5)),
    "padding": lambda draws: PaddingFIFOQueue(draws.randint(1, 5), NUMBER),
    "random": lambda draws: RandomShuffleQueue(capacity := draws.randint(1, 6), draws.randrange(capacity)),
    "priority": lambda draws: PriorityQueue(draws.randint(1, 5)),
}


def consume(queue, kind, draws):
    """Return the elements that were taken, and the number of exceptions among them."""
    calls = [
        *(queue.dequeue, lambda: queue.dequeue_up_to(draws.randint(1, 4))),
        *(lambda: queue.dequeue_many(draws.randint(1, 3)), lambda: queue.dequeue(timeout=draws.choice([0, 0.001]))),
    ]
    taken, failures = [], 0
    while True:
        try:
            found = draws.choice(calls)()
            taken += np.atleast_1d(found[1] if kind == "priority" else found).tolist()
        except OutOfRangeError:
            if not queue.size():
                return taken, failures
        except TimeoutError:
            pass
        except ArithmeticError:
            failures += 1


def produce(queue, kind, draws, values):
    """Return the elements that were enqueued, those of a cancelled call, and the number of exceptions."""
    sent, some, failures = [], [], 0
    with contextlib.suppress(CancelledError):
        while values:
            if draws.random() < 0.1:
                queue.enqueue(ArithmeticError())
                failures += 1
            count = draws.randint(1, 3)
            some, values = values[:count], values[count:]
            one, many = ((some[0], some[0]), (some, some)) if kind == "priority" else (some[0], some)
            queue.enqueue(one) if len(some) == 1 else queue.enqueue_many(many)
            sent += some
    return sent, some, failures


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block", range(4))
def test_no_schedule_loses_or_repeats_an_element(kind, block):
    for case in range(50):
        where = kind, block, case
        draws = rng(*where)
        queue = KINDS[kind](draws)
        values = [list(range(1000 * one, 1000 * one + draws.randrange(20))) for one in range(draws.randint(1, 3))]
        producers = [in_thread(partial(produce, queue, kind, random.Random(draws.random()), some)) for some in values]
        seeds = [draws.random() for _ in range(draws.randint(1, 3))]
        consumers = [in_thread(partial(consume, queue, kind, random.Random(seed))) for seed in seeds]
        cancels = draws.random() < 0.3
        sent = [] if cancels else [one.result() for one in producers]
        queue.close(cancel_pending_enqueues=cancels)
        sent = sent or [one.result() for one in producers]
        taken, failures = zip(*(one.result() for one in consumers), strict=True)
        found = [value for part in taken for value in part]
        assert len(found) == len(set(found)), where
        assert sum(failures) <= sum(count for *_, count in sent) + cancels * len(values), where
        surely = {value for part, *_ in sent for value in part}
        perhaps = {value for _, part, _ in sent for value in part}
        assert surely <= set(found) <= surely | perhaps, where
        if kind == "fifo" and len(consumers) == 1 and not any(failures):
            for one in range(len(values)):
                mine = [value for value in found if value // 1000 == one]
                assert mine == sorted(mine), where
