"""Tests of parallel map, interleave and batch against tf.data's: orders, failures, options, arguments.

The functions have a different delay for each element, so that calls do not end in the order in which they start.
"""

import collections
import threading
import time

import numpy as np
import pytest
from cases import INT64
from compare import Ours, assert_outcomes_equal, attempt, in_both, outcomes_of, refused, same, theirs

from support.combinations import diagonals
from support.libraries import arrays, fail_at

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


def as_set(found):
    return collections.Counter(map(repr, found))


# map

PLACES = [(), (0,), (3,), (6,), (0, 1, 6), (2, 3), (0, 1, 2, 3, 4, 5, 6)]
test_map = same(
    lambda lib, bad, arguments: lib.range(7).map(slowly(lib, *bad), **arguments),
    PLACES,
    calls_and_order,
    spec=lambda bad, _: "any" if len(bad) == 7 else "equal",  # which is found by running the function on an element
)
BEHIND = {
    "batch": lambda lib, dataset: lib.unfused(dataset).batch(3),
    "a map that fails": lambda lib, dataset: dataset.map(slowly(lib, 1, 4), num_parallel_calls=2),
    "a tuned map that fails": lambda lib, dataset: dataset.map(slowly(lib, 1, 4), num_parallel_calls=-1),
}
test_what_is_behind_a_parallel_map = same(
    lambda lib, bad, behind: behind(lib, lib.range(7).map(slowly(lib, *bad), num_parallel_calls=3)),
    [(), (0,), (3, 4), (6,)],
    BEHIND,
)

# interleave

CYCLES = [(1, 1), (2, 1), (2, 3), (3, 2), (5, 1), (9, 2)]
SIZES = {"growing": [0, 1, 2, 3, 4], "shrinking": [4, 3, 0, 1, 0], "empty": [0, 0, 0], "one": [5], "none": []}


PARALLEL_CYCLES = [(cycle, calls) for cycle in CYCLES for calls in CALLS if calls <= cycle[0]]


def interleaved(lib, sizes, cycle, reading=(), **arguments):
    """Return datasets of these sizes; the numbers of each start at ten times its index."""
    table = lib.const(np.array([*sizes, 0], np.int64))
    numbers = lib.range(len(sizes))
    read = slowly(lib, *reading)
    return numbers.interleave(lambda x: lib.range(x * 10, x * 10 + table[x]).map(read), *cycle, **arguments)


test_interleave = same(
    lambda lib, sizes, cycle: interleaved(lib, sizes, cycle[0], num_parallel_calls=cycle[1]),
    SIZES,
    PARALLEL_CYCLES,
    step=2,
    spec=lambda sizes, _: "any" if sizes in {"empty", "none"} else "equal",
)


def opened_by(lib, numbers, opening, cycle, **arguments):
    return numbers.interleave(lambda x: lib.from_tensors(opening(x)).repeat(2), *cycle, **arguments)


FAILING = {
    "the datasets": lambda lib, bad, cycle, **arguments: interleaved(
        lib, SIZES["growing"], cycle, [number * 10 for number in bad], **arguments
    ),
    "the function": lambda lib, bad, cycle, **arguments: opened_by(
        lib, lib.range(5), slowly(lib, *bad), cycle, **arguments
    ),
    "the input": lambda lib, bad, cycle, **arguments: opened_by(
        lib, lib.range(5).map(slowly(lib, *bad)), lambda x: x, cycle, **arguments
    ),
}


@pytest.mark.parametrize(
    ("what", "bad", "cycle"), diagonals(5, FAILING, [(0,), (1,), (2, 3), (4,), (1, 2, 3, 4)], PARALLEL_CYCLES), ids=str
)
def test_interleave_where_something_fails(what, bad, cycle):
    """A failure does not count as an element of its block, as in tf.data's interleave without parallel calls.

    In tf.data's parallel interleave, a failure ends the block and so changes the order of all later elements. Only the
    sets of elements and failures are equal.
    """
    in_turn = theirs(lambda lib: outcomes_of(lib, FAILING[what](lib, bad, cycle[0])))
    ours, parallel = in_both(
        lambda lib: outcomes_of(lib, FAILING[what](lib, bad, cycle[0], num_parallel_calls=cycle[1]))
    )
    assert_outcomes_equal(ours, in_turn)
    assert as_set(ours) == as_set(parallel)


test_endless_datasets = same(
    lambda lib: lib.range(5).interleave(lambda x: lib.from_tensors(x).repeat(), 3, 2, num_parallel_calls=3), limit=30
)


# batch

test_batch = same(
    {
        "once": lambda lib, drop, arguments: lib.range(20).batch(3, drop, **arguments),
        "twice": lambda lib, drop, arguments: lib.range(20).batch(2, drop, **arguments).batch(3, drop, **arguments),
    },
    [True, False],
    calls_and_order,
)
test_batch_of_elements_that_fail = same(
    lambda lib, bad, n: lib.unfused(lib.range(7).map(slowly(lib, *bad))).batch(3, num_parallel_calls=n),
    [(0,), (4,), (5,), (2, 3, 6), (0, 1, 2, 3, 4, 5, 6)],
    CALLS,
    spec=lambda bad, _: "any" if len(bad) == 7 else "equal",
)
UNEVEN = [[1], [2, 3], [4], [5], [6, 7], [8, 9], [1]]
test_batch_of_what_cannot_be_stacked = same(
    lambda lib, calls: arrays(lib, UNEVEN, (None,)).batch(2, num_parallel_calls=calls), CALLS
)


# Without order


UNORDERED = {
    "map": lambda lib, bad: lib.range(9).map(slowly(lib, *bad), num_parallel_calls=3, deterministic=False),
    "interleave": lambda lib, bad: interleaved(
        lib, SIZES["growing"], (3, 2), bad, num_parallel_calls=3, deterministic=False
    ),
}


@pytest.mark.parametrize("op", UNORDERED)
@pytest.mark.parametrize("bad", [(), (0,), (1, 8, 20, 31)], ids=str)
def test_without_order_the_same_elements_and_failures_come_out(op, bad):
    ours, expected = in_both(lambda lib: sorted(map(repr, outcomes_of(lib, UNORDERED[op](lib, bad)))))
    assert ours == expected


def keeps_order(lib, op, arguments, option, seconds):
    """Return whether 0 is returned first, although it is delayed until another element is returned or ``seconds``."""
    gate = threading.Event()

    def hold(x):
        if x == 0:
            gate.wait(seconds)
        return x

    held, numbers = lib.call(hold, INT64), lib.range(4)
    if op == "map":
        dataset = numbers.map(held, **arguments)
    else:
        dataset = numbers.interleave(lambda x: lib.from_tensors(x).map(held), 2, **arguments)
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
    assert in_both(lambda lib: keeps_order(lib, op, arguments, option, seconds)) == (kept, kept)


# Arguments


METHODS = {
    "map": lambda lib, **arguments: lib.range(3).map(lambda x: x, **arguments),
    "interleave": lambda lib, **arguments: lib.range(3).interleave(lib.range, 2, **arguments),
    "batch": lambda lib, **arguments: lib.range(3).batch(2, **arguments),
}


test_counts_that_are_too_small_or_no_counts = refused(
    {
        ValueError: [(method, calls) for method in ("map", "interleave") for calls in (0, -2, -100)],
        TypeError: [(method, calls) for method in METHODS for calls in (2.0, "2", [2], b"1")],
    },
    lambda lib, case: METHODS[case[0]](lib, num_parallel_calls=case[1]),
)
test_counts_of_other_classes = same(
    lambda lib, method, calls: method(lib, num_parallel_calls=calls), METHODS, [np.int64(2), np.int32(2), np.array(2)]
)


@pytest.mark.parametrize("calls", [0, -2, -100])
def test_a_count_that_is_too_small_for_batch(calls):
    """tf.data accepts it and then waits forever for the first batch."""
    theirs(lambda lib: METHODS["batch"](lib, num_parallel_calls=calls).element_spec)
    with pytest.raises(ValueError, match="num_parallel_calls"):
        METHODS["batch"](Ours(), num_parallel_calls=calls)


@pytest.mark.parametrize("calls", [3, 100])
def test_more_calls_than_the_cycle_is_long(calls):
    """tf.data rejects them; here, at most as many datasets are read in parallel as are open."""

    def build(lib, **arguments):
        return lib.range(1, 4).interleave(lambda x: lib.from_tensors(x).repeat(x), 2, **arguments)

    assert isinstance(theirs(lambda lib: attempt(lambda lib: build(lib, num_parallel_calls=calls), lib)), Exception)
    found = outcomes_of(Ours(), build(Ours(), num_parallel_calls=calls))
    assert_outcomes_equal(found, theirs(lambda lib: outcomes_of(lib, build(lib))))


def test_an_executor_is_this_librarys_own():
    """tf.data does not have executors; here the default is threads, and other values are rejected at construction."""
    by = lambda executor: lambda lib: lib.range(3).map(lambda x: x, num_parallel_calls=2, executor=executor)
    assert isinstance(theirs(lambda lib: attempt(by("thread"), lib)), TypeError)
    assert list(by("thread")(Ours())) == [0, 1, 2]
    with pytest.raises(ValueError, match="executor"):
        by("fiber")(Ours())
