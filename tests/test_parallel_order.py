"""Tests that parallel ops return the same as sequential ops, in order or as a set, and respect the parallelism.

Further pipelines with random delays, interrupted and resumed, are in test_parallel_states.py.
"""

import collections
import itertools
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset import AUTOTUNE, Dataset, TFRecordDataset, set_random_seed
from dataset.testing import assert_elements_equal, outcomes
from support.overlap import WAIT, Calls, Counter, Gate, Meeting, Work, counted, once
from support.pipelines import with_options
from support.process_helpers import in_thread
from support.tfrecord_files import write_records

UNORDERED = {"deterministic": False}


def cases(table):
    return pytest.mark.parametrize("make", list(table.values()), ids=list(table))


def numbers(elements):
    return [int(x) for x in elements]


def assert_same(found, expected, *, in_order):
    """Compare outcomes; without an order as a set, exceptions by type and text."""
    if in_order:
        assert_elements_equal(found, expected)
    else:
        assert collections.Counter(map(repr, found)) == collections.Counter(map(repr, expected))


# The same elements with any delays

TWENTY = Dataset.range(20)
delays = st.lists(st.sampled_from([0.0, 0.0, 0.0002, 0.001, 0.004]), min_size=1, max_size=7).map(tuple)


def works(size, failures_max):
    return st.builds(Work, delays, st.frozensets(st.integers(0, size), max_size=failures_max))


parallels = st.builds(
    lambda calls, order: {"num_parallel_calls": calls, "deterministic": order},
    st.sampled_from([1, 2, 3, 4, 7, AUTOTUNE]),
    st.sampled_from([True, True, False]),
)


def random_pair(work):
    return lambda rng, x: (work(x), rng.integers(1 << 40))


ELEMENT_BY_ELEMENT = {
    "maps": lambda work, how: TWENTY.map(lambda x: (work(x), {"text": f"{x}"}), **how).map(lambda x, _: x * 2, **how),
    "map of a generator in a prefetch": lambda work, how: (
        Dataset.from_generator(lambda: map(Work(work.delays), range(20))).prefetch(3).map(work, **how).prefetch(4)
    ),
}
ORDER_MATTERS = {
    "map, batch, prefetch": lambda work, how: TWENTY.map(work, **how).batch(3, **how).prefetch(2),
    "random_map, repeat": lambda work, how: Dataset.range(7).random_map(random_pair(work), seed=3, **how).repeat(3),
}


@cases(ELEMENT_BY_ELEMENT | ORDER_MATTERS)
@settings(max_examples=12)
@given(work=works(25, 4) | st.just(Work(bad=frozenset(range(26)))), how=parallels)
def test_random_delays_change_nothing_but_the_order_and_that_only_where_it_is_allowed(make, work, how):
    if make in ORDER_MATTERS.values():
        how = {**how, "deterministic": True}
    expected = outcomes(iter(make(work.at_once(), {})))
    assert_same(outcomes(iter(make(work, how))), expected, in_order=how["deterministic"])


INNER = {
    "a function": lambda work, part: part.map(work),
    "an array": lambda work, part: Dataset.from_tensor_slices(np.array(list(part), np.int64)),
    "a generator": lambda work, part: Dataset.from_generator(
        lambda: map(work, list(part)), output_signature=part.element_spec
    ),
    "a parallel map": lambda work, part: part.map(work, num_parallel_calls=2),
    "a prefetch": lambda work, part: part.map(work).prefetch(1),
}


@settings(max_examples=60)
@given(
    inner=st.sampled_from(sorted(INNER)),
    sizes=st.lists(st.integers(0, 5), max_size=7),
    stages=st.tuples(works(6, 1), works(6, 2), works(35, 5)),
    cycle=st.tuples(st.integers(1, 5), st.integers(1, 4)),
    how=parallels,
)
def test_interleave_with_random_delays(inner, sizes, stages, cycle, how):
    """The delays and failures are those of the input, of the function, and of the datasets that it returns."""

    def interleaved(source, opening, reading, how):
        def dataset_of(x):
            start = int(opening(x)) * 5
            return INNER[inner](reading, Dataset.range(start, start + sizes[int(x)]))

        return Dataset.range(len(sizes)).map(source).interleave(dataset_of, *cycle, **how)

    how = {**how, "num_parallel_calls": min(how["num_parallel_calls"], cycle[0])}
    expected = outcomes(iter(interleaved(*(work.at_once() for work in stages), {})))
    assert_same(outcomes(iter(interleaved(*stages, how))), expected, in_order=how["deterministic"])


@pytest.mark.parametrize("reads", [1, 3, 9, AUTOTUNE])
def test_parallel_reads_of_files_keep_the_order_of_reading_in_turn(tmp_path, reads):
    for number in range(5):
        write_records(tmp_path / f"{number}.tfrecord", [b"%d %d" % (number, record) for record in range(number * 3)])
    files = Dataset.list_files(str(tmp_path / "*.tfrecord"), shuffle=False)
    in_turn = files.interleave(TFRecordDataset, cycle_length=4 if reads == AUTOTUNE else reads, block_length=1)
    assert_elements_equal(list(TFRecordDataset(files, num_parallel_reads=reads)), list(in_turn))


# Settings

PARALLEL = {
    "map": lambda f, how: Dataset.range(6).map(f, **how),
    "random_map": lambda f, how: Dataset.range(6).random_map(lambda rng, x: f(x), **how),
    "interleave": lambda f, how: Dataset.range(2).interleave(lambda x: Dataset.range(x, 6, 2).map(f), 2, **how),
}


@pytest.mark.parametrize("op", [None, True, False], ids="op {}".format)
@pytest.mark.parametrize("options", [None, True, False], ids="options {}".format)
@cases(PARALLEL)
def test_what_is_ready_goes_first_only_where_the_op_or_else_the_options_allow_it(make, op, options):
    how = {"num_parallel_calls": 2, "deterministic": op}
    if op or (op is None and options is not False):
        dataset = make(Work((0.02, 0, 0, 0, 0, 0)), how)
        assert numbers(with_options(dataset, deterministic=options)) == list(range(6))
        return
    gate = threading.Event()
    iterator = iter(with_options(make(lambda x: (x > 0 or gate.wait(WAIT), x)[1], how), deterministic=options))
    first = int(next(iterator))
    gate.set()
    assert first > 0
    assert {first, *numbers(iterator)} == set(range(6))


# Concurrent calls

AT_ONCE = {
    "map": (2, lambda d, f: d.map(f, num_parallel_calls=2)),
    "map of many calls without order": (16, lambda d, f: d.map(f, num_parallel_calls=16, **UNORDERED)),
    "map, a batch of all": (4, lambda d, f: d.map(f, num_parallel_calls=4).batch(64).unbatch()),
    "random_map": (3, lambda d, f: d.random_map(lambda rng, x: f(x), num_parallel_calls=3)),
    "the datasets of an interleave": (
        4,
        lambda d, f: Dataset.range(8).interleave(
            lambda x: Dataset.range(x, 12, 8).map(f), 4, block_length=3, num_parallel_calls=4
        ),
    ),
}


@pytest.mark.parametrize("name", AT_ONCE)
def test_as_many_calls_run_at_once_as_were_allowed(name):
    calls, make = AT_ONCE[name]
    count = max(12, 2 * calls)
    assert sorted(numbers(make(Dataset.range(count), Meeting(calls)))) == list(range(count))


@pytest.mark.parametrize("seconds", [0, 0.001])
@pytest.mark.parametrize(("calls", "how"), [(1, {}), (3, {}), (3, UNORDERED)])
@pytest.mark.parametrize("batch", [1, 32])
def test_never_more_calls_at_once_than_allowed(calls, seconds, how, batch):
    running = Calls()
    dataset = Dataset.range(60).map(counted(running, seconds), num_parallel_calls=calls, **how).batch(batch)
    assert sorted(np.concatenate(list(dataset)).tolist()) == list(range(60))
    assert running.total == 60
    assert running.most <= calls


@pytest.mark.parametrize("pool", [1, 2, None])
def test_parallel_ops_within_parallel_ops_never_wait_for_each_others_threads(pool):
    """One thread is enough for all of them, because none holds a thread while it waits for another."""
    work = Work((0.0, 0.002, 0.0))

    def inner(x):
        return Dataset.range(x * 6, x * 6 + 6).map(work, num_parallel_calls=4).batch(2, num_parallel_calls=2).unbatch()

    dataset = (
        Dataset.range(8)
        .map(lambda x: x, num_parallel_calls=3)
        .interleave(inner, cycle_length=4, block_length=2, num_parallel_calls=4)
        .map(work, num_parallel_calls=4)
        .batch(3, num_parallel_calls=2)
        .prefetch(2)
    )
    expected = list(Dataset.range(8).interleave(lambda x: Dataset.range(x * 6, x * 6 + 6), 4, 2).batch(3))
    assert_elements_equal(list(with_options(dataset, threading__private_threadpool_size=pool)), expected)


def test_a_generator_below_a_parallel_map_is_entered_by_one_thread_at_a_time():
    inside = Calls()
    source = Dataset.from_generator(once(lambda: map(Work((0.0, 0.001)), range(100)), inside))
    dataset = source.map(Work((0.001, 0.0)), num_parallel_calls=4).map(lambda x: x, num_parallel_calls=4)
    assert numbers(dataset) == list(range(100))
    assert inside.most == 1


# Slow elements


ENDLESSLY_MANY = 10_000


def endless(function, **arguments):
    source = Dataset.from_generator(itertools.count, output_signature=Dataset.range(1).element_spec)
    return source.map(function, **arguments)


MADE_AHEAD = {
    "map": lambda count: endless(count, num_parallel_calls=3),
    "map without order": lambda count: endless(count, num_parallel_calls=3, deterministic=False),
    "all of them": lambda count: (
        Dataset.range(10**9)
        .interleave(lambda x: endless(count), cycle_length=3, num_parallel_calls=3)
        .map(lambda x: x, num_parallel_calls=3)
        .batch(10, num_parallel_calls=3)
        .prefetch(2)
    ),
    "many short datasets": lambda count: (
        Dataset.range(10**9)
        .map(count)
        .interleave(lambda x: Dataset.range(1), cycle_length=3, num_parallel_calls=3, deterministic=False)
    ),
}


@pytest.mark.parametrize("blocked", [None, 25], ids=["no consumer", "a slow element"])
@cases(MADE_AHEAD)
def test_a_bounded_number_of_elements_is_made_ahead_of_the_consumer_or_of_a_slow_element(make, blocked):
    made, gate = Counter(ENDLESSLY_MANY), threading.Event()

    def count(x):
        if x == blocked:
            gate.wait(WAIT)
        made.add()
        return x

    with iter(make(count)) as iterator:
        next(iterator)
        assert not made.reached.wait(0.3)
        gate.set()


FIRST = {
    "map": lambda hold: Dataset.range(9).map(hold, num_parallel_calls=2),
    "unbatched": lambda hold: Dataset.range(9).map(hold, num_parallel_calls=2).batch(1).unbatch(),
    "interleave": lambda hold: Dataset.range(9).interleave(
        lambda x: Dataset.from_tensors(x).map(hold), 2, num_parallel_calls=2
    ),
    "a slow generator": lambda hold: Dataset.from_generator(lambda: map(hold, range(9))).map(
        lambda x: x, num_parallel_calls=4
    ),
}


@cases(FIRST)
def test_the_first_element_comes_out_while_all_later_ones_are_held_back(make):
    gate = Gate(1)
    iterator = iter(make(lambda x: gate(time.sleep(0.005) or x)))  # faster elements are returned in runs
    assert next(iterator) == 0
    gate.opened.set()
    assert sorted(numbers(iterator)) == list(range(1, 9))


# Arrays


def test_a_function_that_uses_one_array_for_each_thread_gives_elements_of_their_own():
    local = threading.local()

    def fill(x):
        if not hasattr(local, "array"):
            local.array = np.zeros(3, np.int64)
        local.array[:] = x
        return local.array

    dataset = Dataset.range(200).map(fill, num_parallel_calls=3)
    expected = [[x] * 3 for x in range(200)]
    assert [row.tolist() for row in list(dataset)] == expected
    assert np.concatenate(list(dataset.batch(64))).tolist() == expected


# Several threads

SHARED = {
    "map": lambda work: Dataset.range(300).map(work, num_parallel_calls=3),
    "interleave": lambda work: Dataset.range(30).interleave(
        lambda x: Dataset.range(x * 10, x * 10 + 10).map(work), 3, num_parallel_calls=3
    ),
    "stacked": lambda work: (
        Dataset.range(300).map(work, num_parallel_calls=2).batch(4, num_parallel_calls=2).prefetch(2).unbatch()
    ),
    "cached": lambda work: Dataset.range(300).shuffle(10, seed=1).prefetch(3).cache().prefetch(2),
}


@cases(SHARED)
def test_one_iterator_shared_by_threads_gives_each_element_to_one_and_iterators_of_their_own_all(make):
    dataset = make(Work((0.0, 0.0002)))

    def in_threads(sources):
        threads = [in_thread(lambda source=source: numbers(source)) for source in sources]
        return [thread.result() for thread in threads]

    assert sorted(itertools.chain(*in_threads([iter(dataset)] * 4))) == list(range(300))
    assert [sorted(part) for part in in_threads([dataset] * 3)] == [list(range(300))] * 3


# Seeds


@pytest.mark.parametrize("calls", [None, 1, 3])
@pytest.mark.parametrize("ahead", [0, 2])
def test_datasets_that_functions_make_have_the_seed_of_the_thread_that_iterates(calls, ahead):
    def shuffled(x):
        rows = [x, x + 10, x + 20, x + 30]
        return Dataset.from_tensor_slices(rows).shuffle(4, seed=1, reshuffle_each_iteration=False)

    found = set()
    for seed in range(5):
        set_random_seed(seed)
        expected = numbers(Dataset.range(3).interleave(shuffled, cycle_length=2))
        parallel = Dataset.range(3).interleave(shuffled, cycle_length=2, num_parallel_calls=calls).prefetch(ahead)
        assert numbers(parallel) == expected
        found.add(tuple(expected))
    assert len(found) > 1  # the seed makes a difference
