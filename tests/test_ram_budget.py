"""Tests of options.autotune.ram_budget: it bounds the memory of all buffers of a pipeline and changes nothing else.

The memory is not taken from the library's own accounts: the functions of these tests create arrays, and are notified
when the last reference to one is dropped.
"""

import itertools
import threading
import weakref

import numpy as np
import pytest

from dataset import AUTOTUNE, Dataset
from dataset.ops.interleave.parallel_interleave import ParallelInterleaveOperator
from dataset.runtime.parallel import pool
from dataset.runtime.parallel.worker_loop import WorkerLoop
from dataset.runtime.resources import limits as opening
from dataset.testing import no_leaks
from support.controllers import Starting
from support.overlap import Calls, counted
from support.pipelines import with_options
from support.process_helpers import WAIT

pytestmark = pytest.mark.usefixtures("switch_interval")

KB = 1000
BUDGET = 20 * 64 * KB  # 20 elements of the usual size
SIZE = 64 * KB


class Arrays:
    """Creates arrays, and records how many bytes of them are alive, and the maximum."""

    def __init__(self, sizes=(SIZE,)):
        self.sizes = sizes
        self.alive = self.most = 0
        self.made = 0
        self._lock = threading.RLock()  # arrays may be freed while one is created

    def __call__(self, number):
        array = np.full(self.sizes[int(number) % len(self.sizes)], number, np.uint8)
        weakref.finalize(array, self._die, array.nbytes).atexit = False
        with self._lock:
            self.made += 1
            self.alive += array.nbytes
            self.most = max(self.most, self.alive)
        return array

    def _die(self, nbytes):
        with self._lock:
            self.alive -= nbytes


RANDOM_SIZES = tuple(np.random.default_rng(0).integers(SIZE // 4, SIZE, 97).tolist())


def within(dataset, budget=BUDGET, *, enabled=None):
    return with_options(dataset, autotune__ram_budget=budget, autotune__enabled=enabled)


def operators(operator):
    """Yield an operator and its inputs, as long as there is only one input."""
    while operator is not None:
        yield operator
        operator = getattr(operator, "inner", None) or getattr(operator, "source", None)


def wait_until_at_rest(iterator):
    """Wait until there is no background work, starting at the consumer, because each stage waits for the next one."""
    for operator in operators(iterator._root):
        workers = operator.readers if isinstance(operator, ParallelInterleaveOperator) else operator
        if isinstance(workers, WorkerLoop):
            with workers.lock:
                assert workers._stillness.wait_for(
                    lambda found=workers: not found._active or getattr(found, "_rests", False), WAIT
                )


PIPELINES = {
    "map": lambda make: Dataset.range(300).map(make, num_parallel_calls=8),
    "map in any order": lambda make: Dataset.range(300).map(make, num_parallel_calls=8, deterministic=False),
    "prefetch alone": lambda make: Dataset.range(300).map(make).prefetch(100),
    "two maps": lambda make: (
        Dataset.range(300).map(make, num_parallel_calls=4).prefetch(50).map(lambda x: x, num_parallel_calls=4)
    ),
    "AUTOTUNE": lambda make: Dataset.range(300).map(make, num_parallel_calls=AUTOTUNE).prefetch(AUTOTUNE),
    "interleave": lambda make: Dataset.range(30).interleave(
        lambda x: Dataset.range(10 * x, 10 * x + 10).map(make), cycle_length=16, num_parallel_calls=4
    ),
    "interleave of parallel maps": lambda make: Dataset.range(30).interleave(
        lambda x: Dataset.range(10 * x, 10 * x + 10).map(make, num_parallel_calls=2), 2, num_parallel_calls=2
    ),
}
each_pipeline = pytest.mark.parametrize("make", list(PIPELINES.values()), ids=list(PIPELINES))


# The bound


@each_pipeline
def test_the_buffers_stay_below_the_budget_while_the_consumer_sleeps(make, monkeypatch):
    monkeypatch.setattr(pool, "Controller", Starting)
    monkeypatch.setattr(Starting, "pulls", 1)
    needed = 2 if make is PIPELINES["AUTOTUNE"] else 1  # the first element is computed without workers
    arrays = Arrays()
    with no_leaks(), iter(within(make(arrays))) as iterator:
        for _ in range(needed):
            next(iterator)
        wait_until_at_rest(iterator)
        assert arrays.most <= BUDGET
        assert arrays.alive <= ledger_held(iterator)
        assert arrays.made > needed


def ledger_held(iterator):
    for operator in operators(iterator._root):
        account = getattr(operator, "_account", None) or getattr(getattr(operator, "readers", None), "_account", None)
        if account is not None:
            return account._ledger.held
    raise AssertionError("nobody has an account")


@each_pipeline
def test_they_stay_below_it_all_the_time_whatever_the_sizes(make):
    arrays = Arrays(RANDOM_SIZES)
    for count, element in enumerate(within(make(arrays))):
        del element
        if count == 150:
            arrays.most = arrays.alive  # from the middle on, when sizes are known
    assert arrays.made == 300
    assert arrays.most <= BUDGET + max(RANDOM_SIZES)  # plus the element of the consumer


@pytest.mark.parametrize("calls", [1, 8])
def test_a_large_part_of_the_budget_is_used(calls):
    """A single buffer may use half of the budget, two buffers a third each."""
    arrays = Arrays()
    with iter(within(Dataset.range(300).map(arrays, num_parallel_calls=calls).prefetch(100))) as iterator:
        for _ in range(100):
            next(iterator)
        wait_until_at_rest(iterator)
        assert BUDGET / 4 <= arrays.alive <= BUDGET


def test_by_default_half_of_the_available_memory_is_the_budget(monkeypatch):
    calls = []
    monkeypatch.setattr(opening, "default_budget", lambda: calls.append(1) or BUDGET)
    arrays = Arrays()
    list(Dataset.range(3).map(arrays).shuffle(3).batch(2))
    assert not calls  # there is no background work
    with iter(Dataset.range(300).map(arrays).prefetch(100)) as iterator:
        next(iterator)
        wait_until_at_rest(iterator)
        assert arrays.most <= BUDGET
    assert calls == [1]


def test_a_shuffle_counts_what_it_holds_when_elements_become_larger():
    dataset = Dataset.range(200).map(lambda x: np.zeros(10 if x < 50 else 1000, np.uint8)).shuffle(10, seed=1)
    with iter(within(dataset)) as iterator:
        for _ in range(150):
            next(iterator)
        assert 9_000 <= ledger_held(iterator) <= 11_000


def test_text_in_batches_counts_with_its_length():
    """Arrays of bytes are arrays of objects, whose own size is not their memory."""
    made = itertools.count()
    dataset = Dataset.range(300).map(lambda x: (b"x" * SIZE, next(made))[0]).batch(2).prefetch(100)
    with iter(within(dataset)) as iterator:
        next(iterator)
        wait_until_at_rest(iterator)
        assert next(made) <= 20


# Elements that are large compared with the budget, before their size is known


class Slow(Arrays):
    """Creates arrays slowly, so that all allowed concurrent work starts."""

    def __call__(self, number):
        array = super().__call__(number)
        threading.Event().wait(2e-3)
        return array


def three_maps(make):
    return (
        Dataset.range(40)
        .map(make, num_parallel_calls=8)
        .prefetch(4)
        .map(lambda x: make(x[0]), num_parallel_calls=7)
        .shuffle(1)
        .map(lambda x: make(x[0]), num_parallel_calls=6)
    )


def interleave(make):
    return Dataset.range(8).interleave(
        lambda x: Dataset.range(2 * x, 2 * x + 2).map(make), cycle_length=8, num_parallel_calls=8
    )


LARGE = {
    # the pipeline, its number of elements, the size of one relative to the budget, and the number of stages with some
    "calls": (lambda make: Dataset.range(24).map(make, num_parallel_calls=16), 24, 2.0, 1),
    "interleave": (interleave, 16, 0.5, 1),
    "three maps": (three_maps, 40, 0.1, 4),
    "map, batch, prefetch": (
        lambda make: Dataset.range(24).map(make, num_parallel_calls=16).batch(1).prefetch(20), 24, 0.3, 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("enabled", [None, False])
@pytest.mark.parametrize("name", LARGE)
def test_no_second_large_element_begins_before_the_size_of_the_first_is_known(name, enabled):
    make, size_of_dataset, share, stages = LARGE[name]
    size = int(share * BUDGET)
    arrays, count = Slow((size,)), 0
    for element in within(make(arrays), enabled=enabled):
        del element
        count += 1
    assert count == size_of_dataset
    in_hand = 2  # the element of the consumer, and the one that next() is about to return
    assert arrays.most <= BUDGET + (stages + in_hand) * size


def test_calls_are_made_at_once_when_the_size_is_known():
    """A budget that is large enough does not reduce parallelism."""
    calls = Calls()
    assert list(within(Dataset.range(60).map(counted(calls, 5e-3), num_parallel_calls=3))) == list(range(60))
    assert calls.most == 3


# Nothing else changes


def numbers(dataset):
    return [int(element[0]) for element in dataset]


def large_array(x):
    return np.full(SIZE, x, np.uint8)


def fail_at_twos(x):
    if x % 5 == 2:
        raise ValueError(f"bad {x}")
    return large_array(x)


HELD = PIPELINES | {
    "failures": lambda _: Dataset.range(60).map(fail_at_twos, num_parallel_calls=4).prefetch(9).ignore_errors(),
    "a filter that drops nearly all": lambda make: (
        Dataset.range(500).map(make, num_parallel_calls=4).filter(lambda x: bool(x[0] == 77)).prefetch(3)
    ),
    "worker processes": lambda _: (
        Dataset.range(40).map(large_array, num_parallel_calls=2, executor="process").prefetch(20)
    ),
}


@pytest.mark.parametrize("budget", [1, SIZE // 2, 8 * SIZE])
@pytest.mark.parametrize("name", HELD)
def test_everything_comes_out_however_small_the_budget(name, budget):
    found = numbers(within(HELD[name](lambda x: np.full(SIZE, x % 251, np.uint8)), budget))
    expected = numbers(HELD[name](lambda x: np.full(5, x % 251, np.uint8)))
    if name == "map in any order":
        found, expected = sorted(found), sorted(expected)
    assert found == expected


# The accounts


@pytest.fixture
def ledgers(monkeypatch):
    """Record all accounts that are opened."""
    opened = []

    class Remembered(opening.Ledger):
        def __init__(self, *arguments, **keywords):
            super().__init__(*arguments, **keywords)
            opened.append(self)

    monkeypatch.setattr(opening, "Ledger", Remembered)
    return opened


def assert_closed(ledgers):
    assert ledgers
    assert all(ledger.charged == ledger.held == len(ledger.accounts) == 0 for ledger in ledgers)


@each_pipeline
def test_a_close_in_the_middle_and_the_end_close_every_account_and_a_state_counts_as_what_it_is(make, ledgers):
    with iter(within(make(Arrays()))) as iterator:
        for _ in range(33):
            next(iterator)
        wait_until_at_rest(iterator)
        state = iterator.state_dict()
        next(iterator)
    assert_closed(ledgers)
    with iter(within(make(Arrays()))) as resumed:
        resumed.load_state_dict(state)
        for _ in range(300 - 33):
            next(resumed)
        assert resumed._root.pull(1) is None
        assert ledgers[-1].held == 0
        assert next(resumed, None) is None
        assert_closed(ledgers)
