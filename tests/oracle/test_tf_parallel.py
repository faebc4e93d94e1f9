"""Tests of parallel map, interleave and batch against tf.data's: orders, failures, options, arguments.

The functions have a different delay for each element, so that calls do not end in the order in which they start.
"""

import collections
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import INT64
from compare import assert_both_refuse, assert_outcomes_equal, assert_same, attempt, oracle, outcomes, plain, to_numpy

from dataset import Dataset, io
from support.combinations import diagonals
from support.libraries import Ours, arrays, fail_at

CALLS = [1, 2, 4, -1]
ORDERED = [{}, {"deterministic": True}]
SLOW = (0.004, 0.0, 0.001)
WAIT = 10  # seconds to wait for an event that must happen

calls_and_order = [{"num_parallel_calls": calls, **order} for calls in CALLS for order in ORDERED]


def slowly(lib, *bad):
    """Return a function of numbers that has delays and fails for some numbers."""
    check = fail_at(*bad)

    def work(x):
        time.sleep(SLOW[int(x) % len(SLOW)])
        return check(x)

    return lib.call(work, INT64)


def outcomes_of(lib, dataset):
    return outcomes(iter(dataset), plain if lib.name == "dataset" else lambda value: to_numpy(lib.tf, value), 100)


def as_set(found):
    return collections.Counter(map(repr, found))


# map

PLACES = [(), (0,), (3,), (6,), (0, 1, 6), (2, 3), (0, 1, 2, 3, 4, 5, 6)]


@pytest.mark.parametrize("bad", PLACES, ids=str)
@pytest.mark.parametrize("arguments", calls_and_order, ids=str)
def test_map(arguments, bad):
    spec = "any" if len(bad) == 7 else "equal"  # which is found by running the function on an element
    assert_same(lambda lib: lib.Dataset.range(7).map(slowly(lib, *bad), **arguments), spec=spec)


@pytest.mark.parametrize("bad", [(), (0,), (3,), (0, 4, 6)], ids=str)
@pytest.mark.parametrize("calls", [2, -1])
def test_map_of_a_map_that_fails(calls, bad):
    def build(lib):
        numbers = lib.Dataset.range(7).map(slowly(lib, *bad), num_parallel_calls=calls)
        return numbers.map(slowly(lib, 1, 4), num_parallel_calls=calls)

    assert_same(build)


BEHIND = {
    "batch": lambda lib, dataset: lib.unfused(dataset).batch(3),
    "shuffled once": lambda lib, dataset: dataset.shuffle(1),
    "repeat": lambda lib, dataset: dataset.repeat(2),
    "take": lambda lib, dataset: dataset.take(4),
    "skip and prefetch": lambda lib, dataset: dataset.skip(2).prefetch(2),
    "filter": lambda lib, dataset: dataset.filter(lambda x: x % 2 == 0),
    "zip": lambda lib, dataset: lib.Dataset.zip(dataset, lib.Dataset.range(5)),
    "ignore_errors": lambda lib, dataset: dataset.ignore_errors(),
    "scan": lambda lib, dataset: dataset.scan(lib.const(0, np.int64), lambda total, x: (total + x, total + x)),
}


@pytest.mark.parametrize("bad", [(), (0,), (3, 4), (6,)], ids=str)
@pytest.mark.parametrize("behind", BEHIND)
def test_what_is_behind_a_parallel_map(behind, bad):
    assert_same(lambda lib: BEHIND[behind](lib, lib.Dataset.range(7).map(slowly(lib, *bad), num_parallel_calls=3)))


# interleave

CYCLES = [(1, 1), (2, 1), (2, 3), (3, 2), (5, 1), (9, 2)]
SIZES = {"growing": [0, 1, 2, 3, 4], "shrinking": [4, 3, 0, 1, 0], "empty": [0, 0, 0], "one": [5], "none": []}


def cycle_and_calls(cycle):
    return [calls for calls in CALLS if calls <= cycle[0]]


PARALLEL_CYCLES = [(cycle, calls) for cycle in CYCLES for calls in cycle_and_calls(cycle)]


def interleaved(lib, sizes, cycle, reading=(), **arguments):
    """Return datasets of these sizes; the numbers of each start at ten times its index."""
    table = lib.const(np.array([*sizes, 0], np.int64))
    numbers = lib.Dataset.range(len(sizes))
    read = slowly(lib, *reading)
    return numbers.interleave(lambda x: lib.Dataset.range(x * 10, x * 10 + table[x]).map(read), *cycle, **arguments)


@pytest.mark.parametrize(("sizes", "cycle"), diagonals(2, SIZES, PARALLEL_CYCLES), ids=str)
def test_interleave(sizes, cycle):
    spec = "any" if sizes in {"empty", "none"} else "equal"
    assert_same(lambda lib: interleaved(lib, SIZES[sizes], cycle[0], num_parallel_calls=cycle[1]), spec=spec)


FAILING: dict[str, Callable[..., Any]] = {
    "the datasets": lambda lib, bad, cycle, **arguments: interleaved(
        lib, SIZES["growing"], cycle, [number * 10 for number in bad], **arguments
    ),
    "the function": lambda lib, bad, cycle, **arguments: opened_by(lib, slowly(lib, *bad), cycle, **arguments),
    "the input": lambda lib, bad, cycle, **arguments: (
        lib.Dataset.range(5)
        .map(slowly(lib, *bad))
        .interleave(lambda x: lib.Dataset.from_tensors(x).repeat(2), *cycle, **arguments)
    ),
}


def opened_by(lib, opening, cycle, **arguments):
    return lib.Dataset.range(5).interleave(
        lambda x: lib.Dataset.from_tensors(opening(x)).repeat(2), *cycle, **arguments
    )


@pytest.mark.parametrize(
    ("what", "bad", "cycle"), diagonals(5, FAILING, [(0,), (1,), (2, 3), (4,), (1, 2, 3, 4)], PARALLEL_CYCLES), ids=str
)
def test_interleave_where_something_fails(what, bad, cycle):
    """A failure does not count as an element of its block, as in tf.data's interleave without parallel calls.

    In tf.data's parallel interleave, a failure ends the block and so changes the order of all later elements. Only the
    sets of elements and failures are equal.
    """
    in_turn = outcomes_of(oracle(), FAILING[what](oracle(), bad, cycle[0]))
    parallel = outcomes_of(oracle(), FAILING[what](oracle(), bad, cycle[0], num_parallel_calls=cycle[1]))
    ours = outcomes_of(Ours(), FAILING[what](Ours(), bad, cycle[0], num_parallel_calls=cycle[1]))
    assert_outcomes_equal(ours, in_turn)
    assert as_set(ours) == as_set(parallel)


def test_endless_datasets():
    assert_same(
        lambda lib: lib.Dataset.range(5).interleave(
            lambda x: lib.Dataset.from_tensors(x).repeat(), 3, 2, num_parallel_calls=3
        ),
        limit=30,
    )


@pytest.mark.parametrize("reads", [1, 2, 3, 5])
def test_parallel_reads_of_files_of_different_lengths(tmp_path, reads):
    paths = [str(tmp_path / f"{number}.tfrecord") for number in range(5)]
    for number, path in enumerate(paths):
        with io.TFRecordWriter(path) as writer:
            for record in range(7 * (number % 3)):
                writer.write(b"%d %d" % (number, record))
    assert_same(lambda lib: lib.TFRecordDataset(paths, num_parallel_reads=reads))


# batch


@pytest.mark.parametrize("arguments", calls_and_order, ids=str)
@pytest.mark.parametrize("drop", [True, False])
def test_batch(drop, arguments):
    assert_same(lambda lib: lib.Dataset.range(20).batch(3, drop, **arguments))
    assert_same(lambda lib: lib.Dataset.range(20).batch(2, drop, **arguments).batch(3, drop, **arguments))


@pytest.mark.parametrize("calls", CALLS)
@pytest.mark.parametrize("bad", [(0,), (4,), (5,), (2, 3, 6), (0, 1, 2, 3, 4, 5, 6)], ids=str)
def test_batch_of_elements_that_fail(bad, calls):
    spec = "any" if len(bad) == 7 else "equal"
    assert_same(
        lambda lib: lib.unfused(lib.Dataset.range(7).map(slowly(lib, *bad))).batch(3, num_parallel_calls=calls),
        spec=spec,
    )


@pytest.mark.parametrize("calls", CALLS)
def test_batch_of_what_cannot_be_stacked(calls):
    values = [[1], [2, 3], [4], [5], [6, 7], [8, 9], [1]]
    assert_same(lambda lib: arrays(lib, values, (None,)).batch(2, num_parallel_calls=calls))


def test_everything_in_one_pipeline():
    def build(lib):
        numbers = interleaved(lib, SIZES["growing"], (3, 2), num_parallel_calls=3)
        return numbers.map(slowly(lib), num_parallel_calls=4).batch(3, num_parallel_calls=2).prefetch(2)

    assert_same(build)


# Without order


UNORDERED = {
    "map": lambda lib, bad: lib.Dataset.range(9).map(slowly(lib, *bad), num_parallel_calls=3, deterministic=False),
    "interleave": lambda lib, bad: interleaved(
        lib, SIZES["growing"], (3, 2), bad, num_parallel_calls=3, deterministic=False
    ),
}


@pytest.mark.parametrize("op", UNORDERED)
@pytest.mark.parametrize("bad", [(), (0,), (1, 8, 20, 31)], ids=str)
def test_without_order_the_same_elements_and_failures_come_out(op, bad):
    ours, theirs = (outcomes_of(lib, UNORDERED[op](lib, bad)) for lib in (Ours(), oracle()))
    assert as_set(ours) == as_set(theirs)


def keeps_order(lib, op, arguments, option, seconds):
    """Return whether 0 is returned first, although it is delayed until another element is returned or ``seconds``."""
    gate = threading.Event()

    def hold(x):
        if x == 0:
            gate.wait(seconds)
        return x

    held, numbers = lib.call(hold, INT64), lib.Dataset.range(4)
    if op == "map":
        dataset = numbers.map(held, **arguments)
    else:
        dataset = numbers.interleave(lambda x: lib.Dataset.from_tensors(x).map(held), 2, **arguments)
    if option is not None:
        options = lib.Options()
        options.deterministic = option
        dataset = dataset.with_options(options)
    iterator = iter(dataset)
    first = int(next(iterator))
    gate.set()
    assert sorted([first, *(int(x) for x in iterator)]) == list(range(4))
    return first == 0


@pytest.mark.filterwarnings("ignore:The `deterministic` argument has no effect:UserWarning")
@pytest.mark.parametrize("op", ["map", "interleave"])
@pytest.mark.parametrize("option", [None, True, False])
@pytest.mark.parametrize("order", [None, True, False])
@pytest.mark.parametrize("calls", [None, 2])
def test_who_says_whether_order_is_kept(op, calls, order, option):
    arguments = {"num_parallel_calls": calls, "deterministic": order}
    kept = calls is None or order is True or (order is None and option is not False)
    seconds = 0.2 if kept else WAIT  # if the order is kept, no element is returned before that time
    assert keeps_order(oracle(), op, arguments, option, seconds) == kept
    assert keeps_order(Ours(), op, arguments, option, seconds) == kept


# Arguments


METHODS = {
    "map": lambda lib, **arguments: lib.Dataset.range(3).map(lambda x: x, **arguments),
    "interleave": lambda lib, **arguments: lib.Dataset.range(3).interleave(lib.Dataset.range, 2, **arguments),
    "batch": lambda lib, **arguments: lib.Dataset.range(3).batch(2, **arguments),
}


@pytest.mark.parametrize("method", ["map", "interleave"])
@pytest.mark.parametrize("calls", [0, -2, -100])
def test_counts_that_are_too_small(method, calls):
    assert_both_refuse(lambda lib: METHODS[method](lib, num_parallel_calls=calls), ValueError)


@pytest.mark.parametrize("calls", [0, -2, -100])
def test_a_count_that_is_too_small_for_batch(calls):
    """tf.data accepts it and then waits forever for the first batch."""
    assert not isinstance(attempt(lambda lib: METHODS["batch"](lib, num_parallel_calls=calls), oracle()), Exception)
    with pytest.raises(ValueError, match="num_parallel_calls"):
        METHODS["batch"](Ours(), num_parallel_calls=calls)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("calls", [2.0, "2", [2], b"1"], ids=repr)
def test_what_is_no_count(method, calls):
    assert_both_refuse(lambda lib: METHODS[method](lib, num_parallel_calls=calls), TypeError)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("calls", [np.int64(2), np.int32(2), np.array(2)], ids=repr)
def test_counts_of_other_classes(method, calls):
    assert_same(lambda lib: METHODS[method](lib, num_parallel_calls=calls))


@pytest.mark.parametrize("calls", [3, 100])
def test_more_calls_than_the_cycle_is_long(calls):
    """tf.data rejects them; here, at most as many datasets are read in parallel as are open."""

    def build(lib, **arguments):
        return lib.Dataset.range(1, 4).interleave(lambda x: lib.Dataset.from_tensors(x).repeat(x), 2, **arguments)

    assert isinstance(attempt(lambda lib: build(lib, num_parallel_calls=calls), oracle()), Exception)
    found = outcomes_of(Ours(), build(Ours(), num_parallel_calls=calls))
    assert_outcomes_equal(found, outcomes_of(oracle(), build(oracle())))


def test_an_executor_is_this_librarys_own():
    """tf.data does not have executors; here the default is threads, and other values are rejected at construction."""
    theirs = attempt(
        lambda lib: lib.Dataset.range(3).map(lambda x: x, num_parallel_calls=2, executor="thread"), oracle()
    )
    assert isinstance(theirs, TypeError)
    ours = Dataset.range(3).map(lambda x: x, num_parallel_calls=2, executor="thread")
    assert list(ours) == [0, 1, 2]
    with pytest.raises(ValueError, match="executor"):
        Dataset.range(3).map(lambda x: x, num_parallel_calls=2, executor="fiber")
