"""map, random_map and batch with num_parallel_calls: what several workers change, and what they do not.

tests/test_parallel_order.py checks order, bounds and overlap of the calls for all parallel ops,
tests/test_parallel_states.py the states, and tests/test_endings.py interrupts.
"""

import threading
import time

import numpy as np
import pytest

from dataset import AUTOTUNE, Dataset, Options
from dataset.runtime.context import open_plan
from dataset.runtime.parallel import pool
from dataset.runtime.parallel.controller import SIZE_MAX
from dataset.runtime.resources import coordinator
from dataset.testing import check_operator, outcomes
from support.controllers import AlwaysInline, OnlyWorkers, Starting, TakingTurns
from support.op_cases import fail_at
from support.states import rest_of


def double(x):
    return x * 2 + 0 * int(x)


def _noisy(rng, x):
    return x + rng.integers(9)


PIPELINES = {
    "map": lambda calls: Dataset.range(60).map(double, num_parallel_calls=calls),
    "in shuffles": lambda calls: (
        Dataset.range(60).shuffle(9, seed=1).map(double, num_parallel_calls=calls).shuffle(4, seed=2)
    ),
    "random_map": lambda calls: Dataset.range(60).random_map(_noisy, seed=1, num_parallel_calls=calls),
    "batch": lambda calls: Dataset.range(60).map(double, num_parallel_calls=calls).batch(7, num_parallel_calls=calls),
}
FAILING = {
    "map that fails": lambda calls: Dataset.range(60).map(fail_at(0, 7, 8, 30, 59), num_parallel_calls=calls),
    "after a failure": lambda calls: Dataset.range(60).map(fail_at(3, 20)).map(double, num_parallel_calls=calls),
    "maps": lambda calls: Dataset.range(60).map(fail_at(4, 5), num_parallel_calls=calls).map(double).batch(3),
    "batch of failures": lambda calls: Dataset.range(31).map(fail_at(9)).batch(4, True, num_parallel_calls=calls),
}


@pytest.mark.parametrize("calls", [1, 3, AUTOTUNE])
@pytest.mark.parametrize("make", [*PIPELINES.values(), *FAILING.values()], ids=[*PIPELINES, *FAILING])
def test_they_keep_the_whole_contract_and_give_what_one_call_at_a_time_gives(make, calls):
    check_operator(lambda: make(calls), outcomes(iter(make(None))), positions=20)


def test_a_large_request_that_held_elements_meet_in_part_gets_the_rest(monkeypatch):
    monkeypatch.setattr(pool, "Controller", OnlyWorkers)
    coordinator, operator = open_plan(Dataset.range(50_000).map(lambda x: x + 1, num_parallel_calls=2).plan)
    try:
        for start in range(2000):  # until tasks have several elements; one of them is not requested yet
            assert operator.pull(1).rows() == [start + 1]
            if operator.ready:
                break
        assert operator.ready
        wanted = 10_000  # far more than the workers compute ahead of small requests
        while wanted:
            wanted -= operator.pull(wanted).length
    finally:
        coordinator.shut_down(operator.close, wait=True)


# Work on columns ------------------------------------------------------------------------------------------------------


def scale(x):
    return x * 2.0 + 1.0


@pytest.fixture
def task_sizes(monkeypatch):
    """Leave all work to the workers, and return the sizes of their tasks."""
    sizes = []

    class Recorder(OnlyWorkers):
        def add(self, count, *others):
            sizes.append(count)
            super().add(count, *others)

    monkeypatch.setattr(pool, "Controller", Recorder)
    return sizes


@pytest.mark.parametrize(
    ("shape", "most"), [((60_000, 1), pool.COLUMN_ELEMENTS_MAX), ((6000, 1000), pool.CACHE_BYTES // 8000)]
)
def test_tasks_on_columns_are_large_and_bounded_in_bytes(task_sizes, shape, most):
    rows = np.arange(float(np.prod(shape))).reshape(shape)
    options = Options()
    options.optimization.inject_prefetch = False  # it would request many batches at once, so larger tasks
    dataset = Dataset.from_tensor_slices(rows).map(scale, num_parallel_calls=2).batch(100).with_options(options)
    np.testing.assert_array_equal(np.concatenate(list(dataset)), rows * 2.0 + 1.0)
    assert SIZE_MAX < max(task_sizes[len(task_sizes) // 2 :]) <= most


def test_many_workers_on_columns_keep_the_contract_of_operators(task_sizes):
    def make(calls):
        return Dataset.range(6000).map(scale, num_parallel_calls=calls).batch(300)

    check_operator(lambda: make(3), outcomes(iter(make(None))), positions=20)
    assert max(task_sizes) > SIZE_MAX


# Cheap work that the consumer does itself -----------------------------------------------------------------------------


def test_a_few_elements_are_computed_inline_at_once_and_none_of_them_again(monkeypatch):
    monkeypatch.setattr(pool, "Controller", AlwaysInline)
    called = []

    def function(x):
        called.append(int(x))
        return x

    dataset = Dataset.range(1000).map(function, num_parallel_calls=2)
    with iter(dataset) as iterator:
        for i in range(700):
            assert next(iterator) == i
            assert len(called) <= 2 * (i + 1)
            assert len(called) <= i + pool.INLINE_MAX
        state = iterator.state_dict()
        assert len(called) > 700
    assert called == list(range(len(called)))
    called.clear()
    assert rest_of(dataset, state) == list(range(700, 1000))
    assert called == list(range(700, 1000))


@pytest.fixture
def start(monkeypatch):
    """Return a function that sets when AUTOTUNE's first calls, by the consumer, end: "never", "at once" or "later"."""

    def ends(when):
        monkeypatch.setattr(pool, "Controller", Starting)
        monkeypatch.setattr(Starting, "pulls", {"at once": 1, "later": 3}.get(when, Starting.pulls))

    return ends


@pytest.mark.parametrize("make", [*PIPELINES.values(), FAILING["map that fails"]], ids=[*PIPELINES, "map that fails"])
def test_workers_and_the_consumer_that_take_turns_keep_the_whole_contract(make, monkeypatch):
    monkeypatch.setattr(pool, "Controller", TakingTurns)
    check_operator(lambda: make(2), outcomes(iter(make(None))), positions=20)


@pytest.mark.parametrize("make", [*PIPELINES.values(), *FAILING.values()], ids=[*PIPELINES, *FAILING])
@pytest.mark.parametrize("when", ["always", "never", "at once", "later"])
def test_work_that_is_done_or_begins_inline_keeps_the_whole_contract(make, when, start, monkeypatch):
    start(when)
    if when == "always":
        monkeypatch.setattr(pool, "Controller", AlwaysInline)
    calls = 2 if when == "always" else AUTOTUNE
    check_operator(lambda: make(calls), outcomes(iter(make(None))), positions=20)


class Callers:
    """A function that notes in which calls the thread of the test was the caller."""

    def __init__(self, bad=()):
        self.bad = bad
        self.consumer = threading.current_thread()
        self.by_consumer = []
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        if threading.current_thread() is self.consumer:
            self.by_consumer.append(int(x))
        if x in self.bad:
            raise ValueError
        return x


def test_the_first_elements_are_computed_by_the_consumer_and_none_ahead(start):
    start("never")
    callers = Callers()
    with iter(Dataset.range(1000).map(callers, num_parallel_calls=AUTOTUNE).batch(32)) as iterator:
        next(iterator)
        assert callers.by_consumer == list(range(32))
        assert callers.calls == 32
        iterator._observer.look(time.perf_counter())
        assert not iterator.tuning_log()  # nothing has been decided
        state = iterator.state_dict()
        next(iterator)
    assert rest_of(Dataset.range(1000).map(Callers(), num_parallel_calls=AUTOTUNE).batch(32), state)[0][0] == 32


@pytest.mark.parametrize("batch_size", [1, 32])
@pytest.mark.parametrize("bad", [(), (0, 1), range(100)])
def test_expensive_work_begins_with_one_call_by_the_consumer_even_if_it_fails(start, batch_size, bad):
    start("at once")
    callers = Callers(bad)
    dataset = Dataset.range(100).map(callers, num_parallel_calls=AUTOTUNE).ignore_errors().batch(batch_size)
    assert sum(map(len, dataset)) == 100 - len(bad)
    assert callers.by_consumer == [0]
    assert callers.calls == 100


@pytest.mark.parametrize("when", ["never", "at once"])
def test_the_next_epoch_begins_with_workers_if_the_work_was_judged(start, when):
    start(when)
    callers = Callers()
    assert len(list(Dataset.range(40).map(callers, num_parallel_calls=AUTOTUNE).repeat(3))) == 120
    assert callers.by_consumer == ([0] if when == "at once" else [*range(40)] * 3)


def test_with_a_given_number_of_calls_the_consumer_makes_none_of_the_first():
    callers = Callers()
    with iter(Dataset.range(100).map(callers, num_parallel_calls=2)) as iterator:
        next(iterator)
        assert not callers.by_consumer


def test_a_map_that_calls_itself_starts_no_threads_without_end(monkeypatch):
    monkeypatch.setattr(coordinator, "_THREADS_MAX", 0)
    moved = set()

    def nested(x, depth, above):
        here = threading.get_ident()
        moved.add((depth, here != above))
        below = Dataset.range(2).map(lambda y: nested(y, depth + 1, here), num_parallel_calls=2)
        return x if depth == 5 else sum(map(int, below))

    assert list(Dataset.range(2).map(lambda x: nested(x, 0, 0), num_parallel_calls=2)) == [16] * 2
    assert moved == {(0, True), (1, True), (2, True), (3, False), (4, False), (5, False)}
