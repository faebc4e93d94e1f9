"""map, random_map and batch with num_parallel_calls: what several workers change, and what they do not."""

import threading

import numpy as np
import pytest

from dataset import AUTOTUNE, Dataset, Options, SpecError
from dataset.runtime.context import open_plan
from dataset.testing import assert_elements_equal, check_operator, no_leaks, outcomes

WAIT = 60  # for what must come; nothing waits that long


def double(x):
    return x * 2 + 0 * int(x)


def fail_at(*bad):
    def function(x):
        if int(x) in bad:
            raise ValueError(f"element {int(x)}")
        return x

    return function


class Counter:
    """How many calls are going on, and the most at a time."""

    def __init__(self):
        self.lock = threading.Lock()
        self.now = self.most = self.calls = 0

    def __enter__(self):
        with self.lock:
            self.now += 1
            self.calls += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_):
        with self.lock:
            self.now -= 1


@pytest.mark.parametrize("calls", [1, 2, 7, AUTOTUNE])
def test_it_keeps_the_whole_contract(calls):
    check_operator(
        lambda: Dataset.range(60).map(double, num_parallel_calls=calls), [np.int64(2 * x) for x in range(60)]
    )


@pytest.mark.parametrize("calls", [1, 3])
def test_failures_keep_their_places(calls):
    make = lambda: Dataset.range(40).map(fail_at(0, 7, 8, 39), num_parallel_calls=calls)
    check_operator(make, outcomes(iter(Dataset.range(40).map(fail_at(0, 7, 8, 39)))))


def test_failures_of_the_input_keep_their_places():
    make = lambda: Dataset.range(40).map(fail_at(3, 20)).map(double, num_parallel_calls=3)
    check_operator(make, outcomes(iter(Dataset.range(40).map(fail_at(3, 20)).map(double))))


def test_a_note_says_which_element_it_was():
    found = outcomes(iter(Dataset.range(40).map(fail_at(17), num_parallel_calls=4)))
    assert ", element 17" in found[17].__notes__[0]
    assert "test_parallel_map.py" in found[17].__notes__[0]


def test_as_many_calls_as_were_asked_for_go_on_at_once():
    barrier = threading.Barrier(5)

    def meet(x):
        if x < 5:
            barrier.wait(WAIT)
        return x

    assert [int(x) for x in Dataset.range(20).map(meet, num_parallel_calls=5)] == list(range(20))


def test_never_more_calls_than_were_asked_for():
    counter = Counter()

    def count(x):
        with counter:
            return sum(range(1000)) + x

    assert len(list(Dataset.range(3000).map(count, num_parallel_calls=3))) == 3000
    assert counter.most <= 3


def test_a_slow_element_does_not_stop_the_others_and_those_are_bounded():
    gate, many = threading.Event(), threading.Event()
    done = []

    def function(x):
        if x == 0:
            gate.wait(WAIT)
        else:
            done.append(int(x))
            if len(done) == 40:
                many.set()
        return x

    with no_leaks():
        iterator = iter(Dataset.range(100_000).map(function, num_parallel_calls=2))
        first = []
        consumer = threading.Thread(target=lambda: first.append(next(iterator)))
        consumer.start()
        assert many.wait(WAIT)  # while the first is under way
        assert not first
        gate.set()
        consumer.join()
        assert [int(x) for x in first] == [0]
        assert [int(next(iterator)) for _ in range(200)] == list(range(1, 201))
        iterator.close()
    assert len(done) < 5000


def test_in_any_order_what_is_ready_comes_first():
    gate = threading.Event()

    def function(x):
        if x == 0:
            gate.wait(WAIT)
        return x

    iterator = iter(Dataset.range(10).map(function, num_parallel_calls=2, deterministic=False))
    early = [int(next(iterator)) for _ in range(5)]
    assert 0 not in early
    gate.set()
    assert sorted(early + [int(x) for x in iterator]) == list(range(10))


def test_the_options_say_what_the_argument_does_not():
    gate, options = threading.Event(), Options()
    options.deterministic = False

    def function(x):
        if x == 0:
            gate.wait(WAIT)
        return x

    iterator = iter(Dataset.range(10).map(function, num_parallel_calls=2).with_options(options))
    assert int(next(iterator)) != 0
    gate.set()
    iterator.close()
    ordered = Dataset.range(300).map(double, num_parallel_calls=3, deterministic=True).with_options(options)
    assert [int(x) for x in ordered] == list(range(0, 600, 2))


def test_the_first_element_comes_while_later_ones_are_blocked():
    gate = threading.Event()

    def function(x):
        if x > 0:
            gate.wait(WAIT)
        return x

    iterator = iter(Dataset.range(10).map(function, num_parallel_calls=4))
    assert int(next(iterator)) == 0
    gate.set()
    iterator.close()


def test_all_elements_have_the_structure_of_the_first_whichever_worker_is_first():
    gate = threading.Event()

    def function(x):
        if x == 0:
            gate.wait(WAIT)
            return x
        gate.set()
        return (x, x)

    found = outcomes(iter(Dataset.range(6).map(function, num_parallel_calls=3)))
    assert int(found[0]) == 0
    assert all(isinstance(error, SpecError) for error in found[1:])
    assert "but earlier elements had the structure *" in str(found[3])
    assert ", element 3" in found[3].__notes__[0]


def test_looking_at_the_spec_calls_the_function_once():
    counter = Counter()

    def count(x):
        with counter:
            return x

    dataset = Dataset.range(100).map(count, num_parallel_calls=8)
    assert dataset.element_spec.dtype == np.int64
    assert counter.calls == 1


def test_a_single_element_is_made_without_others():
    counter = Counter()

    def count(x):
        with counter:
            return x

    assert int(Dataset.range(100).map(count, num_parallel_calls=8)[40]) == 40
    assert counter.calls == 1


def test_states_go_from_any_number_of_calls_to_any_other():
    def make(calls):
        return Dataset.range(60).map(fail_at(20), num_parallel_calls=calls).batch(4)

    expected = outcomes(iter(make(None)))
    for before, after in [(4, None), (None, 4), (4, 8)]:
        iterator = iter(make(before))
        head = [next(iterator) for _ in range(3)]
        resumed = iter(make(after))
        resumed.load_state_dict(iterator.state_dict())
        assert_elements_equal(head + outcomes(resumed), expected)


def test_in_any_order_each_element_comes_once_across_a_resume():
    def make():
        return Dataset.range(200).map(double, num_parallel_calls=4, deterministic=False)

    for count in (0, 1, 50, 199, 200):
        iterator = iter(make())
        head = [next(iterator) for _ in range(count)]
        resumed = iter(make())
        resumed.load_state_dict(iterator.state_dict())
        assert sorted(int(x) for x in [*head, *resumed]) == list(range(0, 400, 2))


def test_random_map_draws_the_same_in_any_number_of_workers():
    def draw(rng, x):
        return x, rng.random()

    def run(calls):
        return list(Dataset.range(50).random_map(draw, seed=3, num_parallel_calls=calls))

    assert_elements_equal(run(4), run(None))


def test_random_map_keeps_the_whole_contract():
    check_operator(
        lambda: Dataset.range(30).random_map(lambda rng, x: x + rng.integers(9), seed=1, num_parallel_calls=3)
    )


@pytest.mark.parametrize("drop", [True, False])
def test_batches_made_in_parallel_keep_the_whole_contract(drop):
    make = lambda calls: Dataset.range(31).map(fail_at(9)).batch(4, drop, num_parallel_calls=calls)
    check_operator(lambda: make(3), outcomes(iter(make(None))))


def test_a_batch_that_cannot_be_made_says_which_element_it_was():
    def shaped(x):
        return np.zeros(3 if x == 5 else 2)

    found = outcomes(iter(Dataset.range(12).map(shaped).batch(4, num_parallel_calls=2)))
    assert [isinstance(batch, SpecError) for batch in found] == [False, True, False]
    assert "in element 5" in str(found[1])


def test_two_calls_in_one_pool_of_two_threads():
    counter, options = Counter(), Options()
    options.threading.private_threadpool_size = 2

    def count(x):
        with counter:
            return sum(range(2000)) + 0 * x

    dataset = Dataset.range(300).map(count, num_parallel_calls=4).map(count, num_parallel_calls=4)
    assert len(list(dataset.with_options(options))) == 300
    assert counter.most <= 2 + 1  # the consumer may do the work itself


def test_an_unbounded_pool_is_not_bounded():
    barrier, options = threading.Barrier(6), Options()
    options.threading.private_threadpool_size = 1

    def meet(x):
        if x < 6:
            barrier.wait(WAIT)
        return x

    dataset = Dataset.range(12).map(meet, num_parallel_calls=6, use_unbounded_threadpool=True)
    assert len(list(dataset.with_options(options))) == 12


@pytest.mark.parametrize("size", [1, 2])
def test_parallel_ops_above_each_other_in_a_small_pool_do_not_wait_for_each_other(size):
    options = Options()
    options.threading.private_threadpool_size = size
    dataset = Dataset.range(500)
    for _ in range(4):
        dataset = dataset.map(double, num_parallel_calls=3)
    dataset = dataset.batch(8, num_parallel_calls=2).unbatch().map(double, num_parallel_calls=2).prefetch(2)
    assert [int(x) for x in dataset.with_options(options)] == [32 * x for x in range(500)]


def test_an_interrupt_in_a_worker_reaches_the_consumer():
    barrier = threading.Barrier(2)

    def function(x):
        if x < 2:
            barrier.wait(WAIT)  # so both are in workers
        if x == 1:
            raise KeyboardInterrupt
        return x

    iterator = iter(Dataset.range(8).map(function, num_parallel_calls=2))
    assert int(next(iterator)) == 0
    with pytest.raises(KeyboardInterrupt):
        next(iterator)
    assert [int(x) for x in iterator] == [2, 3, 4, 5, 6, 7]


def test_a_plan_shows_the_calls():
    text = Dataset.range(3).map(double, num_parallel_calls=4, deterministic=False).batch(2, num_parallel_calls=AUTOTUNE)
    assert "4 parallel calls, in any order" in text.explain()
    assert "AUTOTUNE parallel calls" in text.explain()


@pytest.mark.parametrize(
    ("make", "nbytes_each"),
    [
        (lambda d: d.map(lambda x: x + np.zeros(100), num_parallel_calls=2), 800),
        (lambda d: d.batch(4, num_parallel_calls=2), 32),
        (lambda d: d.prefetch(3), 8),
        (lambda d: d.interleave(lambda x: Dataset.range(x, x + 5), 2, num_parallel_calls=2), 8),
    ],
)
def test_what_is_held_ahead_can_be_asked_for(make, nbytes_each):
    coordinator, operator = open_plan(make(Dataset.range(100_000)).plan)
    try:
        operator.pull(1)
        elements, nbytes = operator.buffered()
        assert 0 <= elements < 10_000
        assert 0 <= nbytes <= nbytes_each * elements  # those in the making count as elements, and have no bytes yet
    finally:
        coordinator.shut_down(operator.close, wait=True)


def test_what_a_prefetch_holds_is_counted_with_what_it_makes():
    third_begun, go_on = threading.Event(), threading.Event()

    def function(x):
        if x == 3:
            third_begun.set()
            go_on.wait(WAIT)
        return x

    coordinator, operator = open_plan(Dataset.range(100).map(function).prefetch(3).plan)
    try:
        operator.pull(1)
        assert third_begun.wait(WAIT)
        assert operator.buffered() == (3, 16)
    finally:
        go_on.set()
        coordinator.shut_down(operator.close, wait=True)
