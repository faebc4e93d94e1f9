"""Tests that parallel ops return the same as sequential ops, in order or as a set, and respect the parallelism."""

import collections
import contextlib
import itertools
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset import AUTOTUNE, Dataset, Options, StateError, TFRecordDataset, io, set_random_seed
from dataset.testing import assert_elements_equal, check_operator, outcomes
from support.overlap import WAIT, Calls, Counter, Meeting, Work, double, once, slow_at_first

ORDERED = {"deterministic": True}
UNORDERED = {"deterministic": False}


def with_options(dataset, *, deterministic=None, pool=None):
    options = Options()
    options.deterministic = deterministic
    options.threading.private_threadpool_size = pool
    return dataset.with_options(options)


def numbers(elements):
    return [int(x) for x in elements]


def as_set(found):
    """Return the outcomes without their order, exceptions by type and text."""
    return collections.Counter(map(repr, found))


def compare(make, work, parallel):
    """Compare a pipeline with itself without parallel calls and delays; ``make`` takes both as arguments."""
    expected = outcomes(iter(make(work.at_once(), {})))
    found = outcomes(iter(make(work, parallel)))
    if parallel["deterministic"]:
        assert_elements_equal(found, expected)
    else:
        assert as_set(found) == as_set(expected)


# The same elements with any delays

delays = st.lists(st.sampled_from([0.0, 0.0, 0.0002, 0.001, 0.004]), min_size=1, max_size=7).map(tuple)
works = st.builds(Work, delays, st.frozensets(st.integers(0, 25), max_size=4))
counts = st.sampled_from([1, 2, 3, 4, 7, AUTOTUNE])
orders = st.sampled_from([True, True, False])
parallels = st.builds(lambda calls, order: {"num_parallel_calls": calls, "deterministic": order}, counts, orders)
in_order = counts.map(lambda calls: {"num_parallel_calls": calls, "deterministic": True})
small = settings(max_examples=25, deadline=None)


def random_pair(work):
    return lambda rng, x: (work(x), rng.integers(1 << 40))


ELEMENT_BY_ELEMENT = {
    "map": lambda work, parallel: Dataset.range(20).map(work, **parallel),
    "random_map": lambda work, parallel: Dataset.range(20).random_map(random_pair(work), seed=3, **parallel),
    "map that makes structures": lambda work, parallel: Dataset.range(20).map(
        lambda x: (work(x), {"text": f"{x}", "row": [x] * int(x % 3)}), **parallel
    ),
    "map of a failing input": lambda work, parallel: (
        Dataset.range(20).map(work.at_once()).map(lambda x: Work(work.delays)(x) + 1, **parallel)
    ),
    "map of a generator": lambda work, parallel: Dataset.from_generator(lambda: map(Work(work.delays), range(20))).map(
        work, **parallel
    ),
    "map twice": lambda work, parallel: (
        Dataset.range(20).map(work, **parallel).map(lambda x: Work(work.delays[::-1])(x) * 2, **parallel)
    ),
    "map in a prefetch": lambda work, parallel: Dataset.range(20).prefetch(3).map(work, **parallel).prefetch(4),
    "map of batches": lambda work, parallel: (
        Dataset.range(40).batch(2).map(lambda batch: (work(batch[0]), batch), **parallel)
    ),
    "batch": lambda work, parallel: Dataset.range(20).map(Work(work.delays)).batch(3, **parallel).unbatch(),
    "map in an inner dataset": lambda work, parallel: Dataset.range(4).flat_map(
        lambda x: Dataset.range(x * 5, x * 5 + 5).map(work, **parallel)
    ),
}
ORDER_MATTERS = {
    "map, batch": lambda work, parallel: Dataset.range(20).map(work, **parallel).batch(3),
    "map, larger batch": lambda work, parallel: Dataset.range(20).map(work, **parallel).batch(50),
    "map, parallel batch": lambda work, parallel: Dataset.range(20).map(work, **parallel).batch(3, **parallel),
    "map, batch, prefetch": lambda work, parallel: Dataset.range(20).map(work, **parallel).batch(4).prefetch(2),
    "map, shuffle": lambda work, parallel: Dataset.range(20).map(work, **parallel).shuffle(5, seed=1),
    "map, filter, map": lambda work, parallel: (
        Dataset.range(20).map(work, **parallel).filter(lambda x: x % 3 > 0).map(lambda x: x + 1, **parallel)
    ),
    "shuffle, map, repeat": lambda work, parallel: Dataset.range(7).shuffle(7, seed=1).map(work, **parallel).repeat(3),
    "random_map, repeat": lambda work, parallel: (
        Dataset.range(7).random_map(random_pair(work), seed=3, **parallel).repeat(3)
    ),
    "map, take": lambda work, parallel: Dataset.range(10**9).map(work, **parallel).take(7),
    "map, window": lambda work, parallel: (
        Dataset.range(20).map(work, **parallel).window(4).flat_map(lambda window: window.batch(4))
    ),
    "batch of failing elements": lambda work, parallel: Dataset.range(20).map(work).batch(3, **parallel),
    "batch, drop_remainder": lambda work, parallel: Dataset.range(20).batch(3, drop_remainder=True, **parallel),
    "batch of pairs": lambda work, parallel: Dataset.range(20).map(lambda x: (work(x), f"{x}")).batch(4, **parallel),
    "batch that cannot be stacked": lambda work, parallel: (
        Dataset.range(20).map(lambda x: [0] * int(work(x) // 6) + [1]).map(np.array).batch(4, **parallel)
    ),
    "batch of batches": lambda work, parallel: Dataset.range(20).batch(2, **parallel).batch(3, **parallel),
}


@pytest.mark.parametrize("make", list(ELEMENT_BY_ELEMENT.values()), ids=list(ELEMENT_BY_ELEMENT))
@small
@given(work=works, parallel=parallels)
def test_random_delays_change_nothing_but_the_order_and_that_only_where_it_is_allowed(make, work, parallel):
    compare(make, work, parallel)


@pytest.mark.parametrize("make", list(ORDER_MATTERS.values()), ids=list(ORDER_MATTERS))
@small
@given(work=works, parallel=in_order)
def test_random_delays_change_nothing_for_what_follows(make, work, parallel):
    compare(make, work, parallel)


# interleave

INNER = {
    "a function": lambda work, number, size: Dataset.range(number * 5, number * 5 + size).map(work),
    "an array": lambda work, number, size: Dataset.from_tensor_slices(np.arange(number * 5, number * 5 + size)),
    "a generator": lambda work, number, size: Dataset.from_generator(
        lambda: map(work, range(number * 5, number * 5 + size)), output_signature=Dataset.range(1).element_spec
    ),
    "a parallel map": lambda work, number, size: Dataset.range(number * 5, number * 5 + size).map(
        work, num_parallel_calls=2
    ),
    "a prefetch": lambda work, number, size: Dataset.range(number * 5, number * 5 + size).map(work).prefetch(1),
}


def interleaved(sizes, opening, reading, inner, cycle, parallel):
    """Interleave datasets of numbers: ``opening`` is called when one is opened, and ``reading`` for its elements."""
    return Dataset.range(len(sizes)).interleave(
        lambda x: INNER[inner](reading, int(opening(x)), sizes[int(x)]), *cycle, **parallel
    )


@pytest.mark.parametrize("inner", INNER)
@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 5), max_size=7),
    opening=st.builds(Work, delays, st.frozensets(st.integers(0, 6), max_size=2)),
    reading=st.builds(Work, delays, st.frozensets(st.integers(0, 35), max_size=5)),
    cycle=st.tuples(st.integers(1, 5), st.integers(1, 4)),
    parallel=parallels,
)
def test_interleave_with_random_delays(sizes, opening, reading, inner, cycle, parallel):
    parallel["num_parallel_calls"] = min(parallel["num_parallel_calls"], cycle[0])
    expected = outcomes(iter(interleaved(sizes, opening.at_once(), reading.at_once(), inner, cycle, {})))
    found = outcomes(iter(interleaved(sizes, opening, reading, inner, cycle, parallel)))
    if parallel["deterministic"]:
        assert_elements_equal(found, expected)
    else:
        assert as_set(found) == as_set(expected)


@pytest.mark.parametrize("parallel", [ORDERED, UNORDERED], ids=str)
def test_an_interleave_of_an_input_that_fails(parallel):
    def make(work, arguments):
        return Dataset.range(6).map(work).interleave(lambda x: Dataset.range(x * 10, x * 10 + 3), 3, 2, **arguments)

    compare(make, Work(bad=frozenset({0, 3, 5})), {"num_parallel_calls": 3, **parallel})


def test_interleave_within_interleave():
    def make(work, arguments):
        def middle(x):
            return Dataset.range(4).interleave(lambda y: Dataset.range(x * 20 + y * 5, x * 20 + y * 5 + y).map(work), 2)

        return Dataset.range(5).interleave(middle, cycle_length=3, block_length=2, **arguments)

    work = Work((0.0, 0.003, 0.0, 0.001), frozenset({17, 36, 57}))
    for calls in (1, 2, 3):
        compare(make, work, {"num_parallel_calls": calls, "deterministic": True})
        compare(make, work, {"num_parallel_calls": calls, "deterministic": False})


@pytest.mark.parametrize("reads", [1, 2, 3, 9, AUTOTUNE])
def test_parallel_reads_of_files_keep_the_order_of_reading_in_turn(tmp_path, reads):
    for number in range(5):
        with io.TFRecordWriter(tmp_path / f"{number}.tfrecord") as writer:
            for record in range(number * 3):
                writer.write(b"%d %d" % (number, record))
    files = Dataset.list_files(str(tmp_path / "*.tfrecord"), shuffle=False)
    cycle = 4 if reads == AUTOTUNE else reads
    in_turn = files.interleave(TFRecordDataset, cycle_length=cycle, block_length=1)
    assert_elements_equal(list(TFRecordDataset(files, num_parallel_reads=reads)), list(in_turn))


# Settings


def first_blocked(later):
    """Function whose call for 0 returns only when ``later`` calls for other numbers have returned."""
    done = Counter(later)

    def function(x):
        if x > 0:
            done.add()
        elif not done.reached.wait(WAIT):
            raise TimeoutError("the others wait for this one")
        return x

    return function


def unblocked_by_the_consumer(make):
    """Return the first element while the call for 0 is delayed, and the set of all elements."""
    gate = threading.Event()

    def hold(x):
        if x == 0:
            gate.wait(WAIT)
        return x

    iterator = iter(make(hold))
    first = int(next(iterator))
    gate.set()
    return first, {first, *numbers(iterator)}


ALLOWED = {
    "the op": lambda hold: Dataset.range(6).map(hold, num_parallel_calls=2, deterministic=False),
    "the options": lambda hold: with_options(Dataset.range(6).map(hold, num_parallel_calls=2), deterministic=False),
    "the op, not the options": lambda hold: with_options(
        Dataset.range(6).map(hold, num_parallel_calls=2, deterministic=False), deterministic=True
    ),
    "random_map": lambda hold: Dataset.range(6).random_map(
        lambda rng, x: hold(x), num_parallel_calls=2, deterministic=False
    ),
    "the options, random_map": lambda hold: with_options(
        Dataset.range(6).random_map(lambda rng, x: hold(x), num_parallel_calls=2), deterministic=False
    ),
    "interleave": lambda hold: Dataset.range(2).interleave(
        lambda x: Dataset.range(x, 6, 2).map(hold), 2, num_parallel_calls=2, deterministic=False
    ),
    "the options, interleave": lambda hold: with_options(
        Dataset.range(2).interleave(lambda x: Dataset.range(x, 6, 2).map(hold), 2, num_parallel_calls=2),
        deterministic=False,
    ),
    "a map without a fusion": lambda hold: (
        Dataset.range(6).map(hold, num_parallel_calls=2, deterministic=False).batch(1).map(lambda batch: batch[0])
    ),
}


@pytest.mark.parametrize("make", list(ALLOWED.values()), ids=list(ALLOWED))
def test_what_is_ready_goes_first_where_that_is_allowed(make):
    first, found = unblocked_by_the_consumer(make)
    assert first > 0
    assert found == set(range(6))


FORBIDDEN = {
    "by default": lambda hold: Dataset.range(6).map(hold, num_parallel_calls=2),
    "the op": lambda hold: Dataset.range(6).map(hold, num_parallel_calls=2, deterministic=True),
    "the op, not the options": lambda hold: with_options(
        Dataset.range(6).map(hold, num_parallel_calls=2, deterministic=True), deterministic=False
    ),
    "the options": lambda hold: with_options(Dataset.range(6).map(hold, num_parallel_calls=2), deterministic=True),
    "the op, not the options, random_map": lambda hold: with_options(
        Dataset.range(6).random_map(lambda rng, x: hold(x), num_parallel_calls=2, deterministic=True),
        deterministic=False,
    ),
    "no parallel calls": lambda hold: with_options(Dataset.range(6).map(hold), deterministic=False),
}


@pytest.mark.parametrize("make", list(FORBIDDEN.values()), ids=list(FORBIDDEN))
def test_order_is_kept_where_it_must_be_although_the_first_element_comes_last(make):
    assert numbers(make(Work((0.02, 0, 0, 0, 0, 0)))) == list(range(6))


@pytest.mark.parametrize("order", [True, None])
def test_an_ordered_interleave_waits_for_the_dataset_whose_turn_it_is(order):
    dataset = Dataset.range(2).interleave(
        lambda x: Dataset.range(x, 6, 2).map(Work((0.02, 0, 0, 0, 0, 0))), 2, num_parallel_calls=2, deterministic=order
    )
    assert numbers(dataset) == list(range(6))


# Concurrent calls


@pytest.mark.parametrize("calls", [2, 4, 16])
@pytest.mark.parametrize("order", [ORDERED, UNORDERED], ids=str)
def test_as_many_calls_run_at_once_as_were_allowed(calls, order):
    meeting = Meeting(calls)
    dataset = Dataset.range(3 * calls).map(meeting, num_parallel_calls=calls, **order)
    assert sorted(numbers(dataset)) == list(range(3 * calls))


@pytest.mark.parametrize("batch", [1, 2, 5, 64])
def test_a_batch_downstream_has_its_elements_made_at_once(batch):
    meeting = Meeting(4)
    dataset = Dataset.range(12).map(meeting, num_parallel_calls=4).batch(batch)
    assert np.concatenate(list(dataset)).tolist() == list(range(12))


def test_calls_of_random_map_run_at_once():
    meeting = Meeting(3)
    dataset = Dataset.range(9).random_map(lambda rng, x: meeting(x), num_parallel_calls=3)
    assert numbers(dataset) == list(range(9))


@pytest.mark.parametrize("order", [ORDERED, UNORDERED], ids=str)
@pytest.mark.parametrize("block", [1, 3])
def test_the_datasets_of_an_interleave_are_read_at_once(order, block):
    meeting = Meeting(4)
    dataset = Dataset.range(8).interleave(
        lambda x: Dataset.range(x, 24, 8).map(meeting), 4, block, num_parallel_calls=4, **order
    )
    assert sorted(numbers(dataset)) == list(range(24))


def test_fewer_datasets_are_read_at_once_than_are_open():
    calls, meeting = Calls(), Meeting(2)

    def read(x):
        with calls:
            time.sleep(0.001)
            return meeting(x)

    dataset = Dataset.range(8).interleave(lambda x: Dataset.range(x, 64, 8).map(read), 6, 2, num_parallel_calls=2)
    assert sorted(numbers(dataset)) == list(range(64))
    assert calls.most == 2


@pytest.mark.parametrize("calls", [1, 2, 3, 5])
@pytest.mark.parametrize("seconds", [0, 0.001])
@pytest.mark.parametrize("order", [ORDERED, UNORDERED], ids=str)
@pytest.mark.parametrize("batch", [1, 32])
def test_never_more_calls_at_once_than_allowed(calls, seconds, order, batch):
    under_way = Calls()

    def function(x):
        with under_way:
            time.sleep(seconds)
            return x

    dataset = Dataset.range(100).map(function, num_parallel_calls=calls, **order).batch(batch)
    assert sorted(np.concatenate(list(dataset)).tolist()) == list(range(100))
    assert under_way.total == 100
    assert under_way.most <= calls


def test_two_parallel_maps_run_at_once_each_within_its_own_bound():
    first, second, meeting = Calls(), Calls(), threading.Barrier(2)

    def below(x):
        with first:
            time.sleep(0.001)
            if x == 5:
                meeting.wait(WAIT)
            return x

    def above(x):
        with second:
            time.sleep(0.001)
            if x == 0:
                meeting.wait(WAIT)
            return x

    dataset = Dataset.range(40).map(below, num_parallel_calls=2).map(above, num_parallel_calls=3)
    assert numbers(dataset) == list(range(40))
    assert first.most <= 2
    assert second.most <= 3


def test_a_private_pool_bounds_the_calls_of_the_whole_pipeline():
    calls, meeting = Calls(), Meeting(2)

    def function(x):
        with calls:
            time.sleep(0.001)
            return meeting(x)

    def other(x):
        with calls:
            time.sleep(0.001)
            return x

    dataset = Dataset.range(60).map(function, num_parallel_calls=4).map(other, num_parallel_calls=4)
    assert numbers(with_options(dataset, pool=2)) == list(range(60))
    assert calls.most == 2


def test_a_map_with_an_unbounded_pool_is_not_bound_by_the_private_one():
    meeting = Meeting(6)
    dataset = Dataset.range(12).map(meeting, num_parallel_calls=6, use_unbounded_threadpool=True)
    assert numbers(with_options(dataset, pool=2)) == list(range(12))


def everything_parallel(work):
    def inner(x):
        return Dataset.range(x * 6, x * 6 + 6).map(work, num_parallel_calls=4).batch(2, num_parallel_calls=2).unbatch()

    return (
        Dataset.range(8)
        .map(lambda x: x, num_parallel_calls=3)
        .interleave(inner, cycle_length=4, block_length=2, num_parallel_calls=4)
        .map(work, num_parallel_calls=4)
        .batch(3, num_parallel_calls=2)
        .prefetch(2)
    )


@pytest.mark.parametrize("pool", [1, 2, None])
def test_parallel_ops_within_parallel_ops_never_wait_for_each_others_threads(pool):
    """One thread is enough for all of them, because none holds a thread while it waits for another."""
    work = Work((0.0, 0.002, 0.0))
    expected = list(
        Dataset.range(8).interleave(lambda x: Dataset.range(x * 6, x * 6 + 6), cycle_length=4, block_length=2).batch(3)
    )
    assert_elements_equal(list(with_options(everything_parallel(work), pool=pool)), expected)


@pytest.mark.parametrize("pool", [1, None])
def test_a_parallel_function_may_iterate_over_parallel_datasets(pool):
    def function(x):
        inner = Dataset.range(x + 1).map(lambda y: y + 1, num_parallel_calls=2)
        return sum(numbers(with_options(inner, pool=pool)))

    dataset = Dataset.range(12).map(function, num_parallel_calls=3)
    assert numbers(with_options(dataset, pool=pool)) == [(x + 1) * (x + 2) // 2 for x in range(12)]


def test_a_generator_below_a_parallel_map_is_entered_by_one_thread_at_a_time():
    inside = Calls()
    source = Dataset.from_generator(once(lambda: map(Work((0.0, 0.001)), range(100)), inside))
    dataset = source.map(Work((0.001, 0.0)), num_parallel_calls=4).map(lambda x: x, num_parallel_calls=4)
    assert numbers(dataset) == list(range(100))
    assert inside.most == 1


def test_each_function_is_called_once_for_each_element():
    called = collections.Counter()
    lock = threading.Lock()

    def function(x):
        with lock:
            called[int(x)] += 1
        if x == 7:
            raise ValueError("bad")
        return x

    dataset = Dataset.range(200).map(function, num_parallel_calls=4).batch(16)
    outcomes(iter(dataset))
    assert called == dict.fromkeys(range(200), 1)


def test_looking_at_the_spec_calls_the_function_for_one_element():
    calls = Calls()

    def function(x):
        with calls:
            return x

    assert Dataset.range(9).map(function, num_parallel_calls=4).element_spec == Dataset.range(1).element_spec
    assert calls.total == 1


def test_nothing_is_called_before_the_first_element_is_wanted():
    calls, before = Calls(), set(threading.enumerate())

    def function(x):
        with calls:
            return x

    with iter(Dataset.range(9).map(function, num_parallel_calls=4).batch(2, num_parallel_calls=2)):
        assert set(threading.enumerate()) == before
    assert calls.total == 0


# Slow elements


@pytest.mark.parametrize("calls", [2, 4])
def test_a_slow_element_does_not_idle_the_others(calls):
    dataset = Dataset.range(100).map(first_blocked(8 * calls), num_parallel_calls=calls)
    assert numbers(dataset) == list(range(100))


ENDLESSLY_MANY = 20_000


def endless(function, **arguments):
    def generate():
        number = 0
        while True:
            yield number
            number += 1

    return Dataset.from_generator(generate, output_signature=Dataset.range(1).element_spec).map(function, **arguments)


@pytest.mark.parametrize("order", [ORDERED, UNORDERED], ids=str)
def test_behind_a_slow_element_not_endlessly_many_are_made_ahead(order):
    made, gate = Counter(ENDLESSLY_MANY), threading.Event()

    def function(x):
        if x == 1:
            gate.wait(WAIT)
        made.add()
        return x

    with iter(endless(function, num_parallel_calls=3, **order)) as iterator:
        assert next(iterator) == 0
        assert not made.reached.wait(0.5)
        gate.set()


MADE_AHEAD = {
    "map": lambda count: endless(count, num_parallel_calls=3),
    "map without order": lambda count: endless(count, num_parallel_calls=3, deterministic=False),
    "interleave": lambda count: Dataset.range(10**9).interleave(
        lambda x: endless(count), cycle_length=3, num_parallel_calls=3
    ),
    "batch": lambda count: endless(count).batch(10, num_parallel_calls=3),
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


@pytest.mark.parametrize("make", list(MADE_AHEAD.values()), ids=list(MADE_AHEAD))
def test_while_nobody_takes_them_not_endlessly_many_are_made_ahead(make):
    made = Counter(ENDLESSLY_MANY)

    def count(x):
        made.add()
        return x

    with iter(make(count)) as iterator:
        next(iterator)
        assert not made.reached.wait(0.5)


FIRST = {
    "map": lambda hold: Dataset.range(9).map(hold, num_parallel_calls=2),
    "map without order": lambda hold: Dataset.range(9).map(hold, num_parallel_calls=2, deterministic=False),
    "more calls": lambda hold: Dataset.range(9).map(hold, num_parallel_calls=8),
    "prefetch": lambda hold: Dataset.range(9).map(hold, num_parallel_calls=2).prefetch(4),
    "unbatched": lambda hold: Dataset.range(9).map(hold, num_parallel_calls=2).batch(1).unbatch(),
    "interleave": lambda hold: Dataset.range(9).interleave(
        lambda x: Dataset.from_tensors(x).map(hold), 2, num_parallel_calls=2
    ),
    "two maps": lambda hold: (
        Dataset.range(9).map(hold, num_parallel_calls=2).map(lambda x: x, num_parallel_calls=2).prefetch(1)
    ),
    "a slow generator": lambda hold: Dataset.from_generator(lambda: map(hold, range(9))).map(
        lambda x: x, num_parallel_calls=4
    ),
}


@pytest.mark.parametrize("make", list(FIRST.values()), ids=list(FIRST))
def test_the_first_element_comes_out_while_all_later_ones_are_held_back(make):
    gate = threading.Event()

    def hold(x):
        if x > 0 and not gate.wait(WAIT):
            raise TimeoutError("the first element has not come out")
        return x

    iterator = iter(make(hold))
    assert next(iterator) == 0
    gate.set()
    assert sorted(numbers(iterator)) == list(range(1, 9))


def test_the_first_batch_comes_out_while_the_elements_of_later_ones_are_held_back():
    gate = threading.Event()

    def hold(x):
        time.sleep(0.005)  # faster elements are returned in runs
        if x > 3 and not gate.wait(WAIT):
            raise TimeoutError("the first batch has not come out")
        return x

    iterator = iter(Dataset.range(9).map(hold, num_parallel_calls=3).batch(4, num_parallel_calls=2))
    assert next(iterator).tolist() == [0, 1, 2, 3]
    gate.set()
    assert [batch.tolist() for batch in iterator] == [[4, 5, 6, 7], [8]]


# Exceptions


def test_an_exception_of_a_parallel_call_comes_with_its_own_type_traceback_and_note_once():
    class MyError(Exception):
        pass

    def raises(x):
        if x in {3, 4}:
            raise MyError(int(x))
        return x

    dataset = Dataset.range(8).map(raises, num_parallel_calls=3, name="decoder")
    found = outcomes(iter(dataset))
    errors = [outcome for outcome in found if isinstance(outcome, Exception)]
    assert [type(error) for error in errors] == [MyError, MyError]
    assert [found.index(error) for error in errors] == [3, 4]
    for error, number in zip(errors, (3, 4), strict=True):
        frames = []
        traceback = error.__traceback__
        while traceback is not None:
            frames.append(traceback.tb_frame.f_code.co_name)
            traceback = traceback.tb_next
        assert frames[-1] == "raises"
        (note,) = error.__notes__
        assert "decoder" in note
        assert note.endswith(f"element {number}")


def test_all_may_fail():
    dataset = Dataset.range(50).map(Work(bad=frozenset(range(50))), num_parallel_calls=4)
    assert_elements_equal(outcomes(iter(dataset)), [ValueError(f"bad {x}") for x in range(50)])


def test_stop_iteration_in_a_parallel_call_ends_nothing():
    def stop(x):
        if x == 2:
            raise StopIteration
        return x

    found = outcomes(iter(Dataset.range(5).map(stop, num_parallel_calls=2)))
    assert [isinstance(outcome, RuntimeError) for outcome in found] == [False, False, True, False, False]


def test_results_of_different_structure_fail_at_their_places_as_they_do_one_at_a_time():
    def change(x):
        return (x, x) if x in {3, 6} else x

    expected = outcomes(iter(Dataset.range(9).map(change)))
    found = outcomes(iter(Dataset.range(9).map(change, num_parallel_calls=3)))
    assert [type(outcome) for outcome in found] == [type(outcome) for outcome in expected]


def test_failures_are_left_out_by_ignore_errors_wherever_they_were_made():
    dataset = Dataset.range(20).map(Work((0.0, 0.001), frozenset({0, 7, 19})), num_parallel_calls=4).ignore_errors()
    assert numbers(dataset) == [x for x in range(20) if x not in {0, 7, 19}]


# Ownership of arrays


def test_a_function_that_uses_one_array_for_each_thread_gives_elements_of_their_own():
    local = threading.local()

    def fill(x):
        if not hasattr(local, "array"):
            local.array = np.zeros(3, np.int64)
        local.array[:] = x
        return local.array

    kept = list(Dataset.range(200).map(fill, num_parallel_calls=3))
    assert [row.tolist() for row in kept] == [[x] * 3 for x in range(200)]
    batches = list(Dataset.range(200).map(fill, num_parallel_calls=3).batch(64))
    assert [row.tolist() for row in np.concatenate(batches)] == [[x] * 3 for x in range(200)]


# Resuming


RESUMED = {
    "map": lambda: Dataset.range(12).map(Work((0.0, 0.0005)), num_parallel_calls=3),
    "map that fails": lambda: Dataset.range(9).map(Work(bad=frozenset({0, 4, 5, 8})), num_parallel_calls=2),
    "map, batch": lambda: Dataset.range(12).map(Work((0.0005, 0.0)), num_parallel_calls=3).batch(5),
    "random_map": lambda: (
        Dataset.range(6).random_map(lambda rng, x: rng.random(), seed=1, num_parallel_calls=3).repeat(2)
    ),
    "shuffle, map, repeat": lambda: (
        Dataset.range(5).shuffle(5, seed=2).map(Work((0.0, 0.0005)), num_parallel_calls=3).repeat(2).shuffle(3, seed=1)
    ),
    "interleave": lambda: Dataset.range(4).interleave(
        lambda x: Dataset.range(x * 10, x * 10 + x).map(Work((0.0, 0.0005), frozenset({21}))),
        3,
        2,
        num_parallel_calls=2,
    ),
    "batch": lambda: Dataset.range(11).map(Work(bad=frozenset({4}))).batch(3, num_parallel_calls=2),
    "all of them": lambda: (
        Dataset.range(4)
        .interleave(
            lambda x: Dataset.range(x, x + 3).map(lambda y: y + 1, num_parallel_calls=2), 2, num_parallel_calls=2
        )
        .map(Work((0.0, 0.0005)), num_parallel_calls=2)
        .batch(2, num_parallel_calls=2)
        .prefetch(2)
    ),
}


@pytest.mark.parametrize("make", list(RESUMED.values()), ids=list(RESUMED))
def test_everything_that_is_promised_of_all_ops(make):
    check_operator(make, positions=6)


@pytest.mark.parametrize("taken", [0, 1, 7, 19, 20])
def test_a_resumed_iterator_without_order_gives_what_is_left_once(taken):
    def make():
        return (
            Dataset.range(10)
            .interleave(lambda x: Dataset.range(2 * x, 2 * x + 2), 3, num_parallel_calls=3, deterministic=False)
            .map(Work((0.002, 0.0, 0.001)), num_parallel_calls=4, deterministic=False)
        )

    with iter(make()) as iterator:
        found = [int(next(iterator)) for _ in range(taken)]
        state = iterator.state_dict()
        rest = numbers(iterator)
    assert sorted([*found, *rest]) == list(range(20))
    resumed = iter(make())
    resumed.load_state_dict(state)
    assert sorted([*found, *numbers(resumed)]) == list(range(20))


def test_the_state_of_a_pipeline_goes_to_one_of_another_parallelism_only_if_it_says_so():
    """Either the plans have the same fingerprint, and the position has the same meaning, or the state is rejected."""

    def make(calls):
        return Dataset.range(30).map(Work(), num_parallel_calls=calls).batch(4)

    with iter(make(2)) as iterator:
        next(iterator)
        state = iterator.state_dict()
    with iter(make(5)) as other:
        try:
            other.load_state_dict(state)
        except StateError:
            return
        assert next(other).tolist() == [4, 5, 6, 7]


# Several threads

SHARED = {
    "map": lambda work: Dataset.range(300).map(work, num_parallel_calls=3),
    "map without order": lambda work: Dataset.range(300).map(work, num_parallel_calls=3, deterministic=False),
    "interleave": lambda work: Dataset.range(30).interleave(
        lambda x: Dataset.range(x * 10, x * 10 + 10).map(work), 3, num_parallel_calls=3
    ),
    "stacked": lambda work: (
        Dataset.range(300).map(work, num_parallel_calls=2).batch(4, num_parallel_calls=2).prefetch(2).unbatch()
    ),
}


def in_threads(count, run):
    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("make", list(SHARED.values()), ids=list(SHARED))
def test_one_iterator_shared_by_threads_gives_each_element_to_exactly_one(make):
    iterator, found = iter(make(Work((0.0, 0.0002)))), [[] for _ in range(4)]
    in_threads(4, lambda number: found[number].extend(numbers(iterator)))
    assert sorted(itertools.chain(*found)) == list(range(300))


@pytest.mark.parametrize("make", list(SHARED.values()), ids=list(SHARED))
def test_threads_with_iterators_of_their_own_over_one_dataset_each_see_all(make):
    dataset, found = make(Work((0.0, 0.0002))), [[] for _ in range(3)]
    in_threads(3, lambda number: found[number].extend(numbers(dataset)))
    assert [sorted(part) for part in found] == [list(range(300))] * 3


# Processes


@pytest.mark.parametrize("parallel", [ORDERED, UNORDERED], ids=str)
def test_worker_processes_give_what_the_function_gives_here(parallel):
    expected = outcomes(iter(Dataset.range(40).map(slow_at_first)))
    found = outcomes(iter(Dataset.range(40).map(slow_at_first, num_parallel_calls=2, executor="process", **parallel)))
    if parallel["deterministic"]:
        assert_elements_equal(found, expected)
    else:
        assert as_set(found) == as_set(expected)


def test_threads_and_processes_in_one_pipeline_keep_the_order():
    dataset = (
        Dataset.range(60)
        .map(Work((0.0, 0.001)), num_parallel_calls=2, executor="thread")
        .map(double, num_parallel_calls=2, executor="process")
        .map(lambda x: x + 1, num_parallel_calls=2)
        .batch(7, num_parallel_calls=2)
        .prefetch(1)
    )
    assert np.concatenate(list(dataset)).tolist() == [2 * x + 1 for x in range(60)]


def test_the_exception_of_a_worker_process_has_its_own_type_and_place():
    found = outcomes(iter(Dataset.range(12).map(slow_at_first, num_parallel_calls=2, executor="process")))
    errors = {place: outcome for place, outcome in enumerate(found) if isinstance(outcome, Exception)}
    assert list(errors) == [3, 10]
    assert [(type(error), str(error)) for error in errors.values()] == [(ValueError, "bad 3"), (ValueError, "bad 10")]
    assert [error.__notes__[-1].rpartition(" ")[2] for error in errors.values()] == ["3", "10"]


@pytest.mark.parametrize("calls", [None, 1, 3])
@pytest.mark.parametrize("ahead", [0, 2])
def test_datasets_that_functions_make_have_the_seed_of_the_thread_that_iterates(calls, ahead):
    def shuffled(x):
        return Dataset.from_tensor_slices([x, x + 10, x + 20, x + 30]).shuffle(
            4, seed=1, reshuffle_each_iteration=False
        )

    def orders():
        dataset = Dataset.range(3).interleave(shuffled, cycle_length=2, num_parallel_calls=calls).prefetch(ahead)
        return [int(x) for x in dataset]

    try:
        found = set()
        for seed in range(5):
            set_random_seed(seed)
            expected = [int(x) for x in Dataset.range(3).interleave(shuffled, cycle_length=2)]
            assert orders() == expected
            found.add(tuple(expected))
        assert len(found) > 1  # the seed makes a difference
    finally:
        set_random_seed(None)


@pytest.mark.parametrize("count", [1, 5])
def test_a_take_that_is_left_out_is_so_whether_batches_are_made_in_parallel_or_not(count):
    """Otherwise a state of one would not fit the other."""
    one, two = (Dataset.range(5).batch(1, num_parallel_calls=calls).take(count) for calls in (None, 2))
    iterator, other = iter(one), iter(two)
    other.load_state_dict(iterator.state_dict())
    assert [batch.tolist() for batch in other] == [[i] for i in range(count)]


def test_an_exit_in_a_worker_comes_at_its_place():
    def leave(x):
        if x in {12, 40}:
            sys.exit(f"at {x}")
        return x

    for _ in range(10):
        found = []
        with contextlib.closing(iter(Dataset.range(100).map(leave, num_parallel_calls=2))) as iterator:
            while True:
                try:
                    found.append(int(next(iterator)))
                except StopIteration:
                    break
                except SystemExit as error:
                    found.append(error.code)
        assert found == [f"at {x}" if x in {12, 40} else x for x in range(100)]
