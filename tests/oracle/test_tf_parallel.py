"""Tests of parallel map, interleave and batch against tf.data's: orders, failures, options, arguments.

The functions have a different delay for each element, so that calls do not end in the order in which they start.
"""

import collections
import threading
import time

import numpy as np
import pytest
from compare import INT64, Ours, assert_outcomes_equal, attempt, in_both, outcomes_of, programs, refused, same, theirs

from support.combinations import diagonals
from support.libraries import fail_at

CALLS = [1, 2, 4, -1]
PARALLEL = [{"num_parallel_calls": calls, **order} for calls in CALLS for order in ({}, {"deterministic": True})]
SLOW = (0.004, 0.0, 0.001)
WAIT = 10  # seconds to wait for an event that must happen


def slowly(lib, *bad):
    """Return a function of numbers that has delays and fails for some numbers."""
    check = fail_at(*bad)

    def work(x):
        time.sleep(SLOW[int(x) % len(SLOW)])
        return check(x)

    return lib.call(work, INT64)


def spec(bad, *_):
    """Return how to compare a spec that is found by running the function on an element."""
    return "any" if len(bad) == 7 else "equal"


# map

BAD = [(), (0,), (3,), (6,), (0, 1, 6), (2, 3), (0, 1, 2, 3, 4, 5, 6)]
test_map = same("range(7).map(slowly(*bad), **parallel)", bad=BAD, parallel=PARALLEL, spec=spec)
test_what_is_behind_a_parallel_map = same(
    {
        "batch": "unfused(range(7).map(slowly(*bad), num_parallel_calls=3)).batch(3)",
        "a map that fails": "range(7).map(slowly(*bad), num_parallel_calls=3).map(slowly(1, 4), num_parallel_calls=-1)",
    },
    bad=[(), (0,), (3, 4), (6,)],
)

# interleave

CYCLES = [(1, 1), (2, 1), (2, 3), (3, 2), (5, 1), (9, 2)]
CYCLES = [(cycle, calls) for cycle in CYCLES for calls in CALLS if calls <= cycle[0]]
SIZES = {"growing": [0, 1, 2, 3, 4], "shrinking": [4, 3, 0, 1, 0], "empty": [0, 0, 0], "one": [5], "none": []}


def interleaved(lib, sizes, cycle, reading=(), **arguments):
    """Return datasets of these sizes; the numbers of each start at ten times its index."""
    table = lib.const(np.array([*sizes, 0], np.int64))
    read = slowly(lib, *reading)
    inner = lambda x: lib.range(x * 10, x * 10 + table[x]).map(read)
    return lib.range(len(sizes)).interleave(inner, *cycle, **arguments)


test_interleave = same(
    "interleaved(sizes, cycle[0], num_parallel_calls=cycle[1])",
    sizes=SIZES,
    cycle=CYCLES,
    step=2,
    spec=lambda sizes, _: "any" if sizes in {"empty", "none"} else "equal",
)
FAILING = programs(
    datasets="interleaved(SIZES['growing'], cycle, [number * 10 for number in bad], **more)",
    function="range(5).interleave(lambda x: from_tensors(slowly(*bad)(x)).repeat(2), *cycle, **more)",
    input="range(5).map(slowly(*bad)).interleave(lambda x: from_tensors(x).repeat(2), *cycle, **more)",
)


@pytest.mark.parametrize(
    ("what", "bad", "cycle"), diagonals(5, FAILING, [(0,), (1,), (2, 3), (4,), (1, 2, 3, 4)], CYCLES), ids=str
)
def test_interleave_where_something_fails(what, bad, cycle):
    """A failure does not count as an element of its block, as in tf.data's interleave without parallel calls.

    In tf.data's parallel interleave, a failure ends the block and so changes the order of all later elements. Only the
    sets of elements and failures are equal.
    """
    build = lambda lib, **more: FAILING[what].run(lib, {"bad": bad, "cycle": cycle[0], "more": more})
    in_turn = theirs(lambda lib: outcomes_of(lib, build(lib)))
    ours, parallel = in_both(lambda lib: outcomes_of(lib, build(lib, num_parallel_calls=cycle[1])))
    assert_outcomes_equal(ours, in_turn)
    assert collections.Counter(map(repr, ours)) == collections.Counter(map(repr, parallel))


test_endless_datasets = same(
    "range(5).interleave(lambda x: from_tensors(x).repeat(), 3, 2, num_parallel_calls=3)", limit=30
)

# batch

test_batch = same(
    ["range(20).batch(3, drop, **parallel)", "range(20).batch(2, drop, **parallel).batch(3, drop, **parallel)"],
    drop=[True, False],
    parallel=PARALLEL,
)
test_batch_of_elements_that_fail = same(
    "unfused(range(7).map(slowly(*bad))).batch(3, num_parallel_calls=n)", bad=[*BAD[3:], (5,)], n=CALLS, spec=spec
)
UNEVEN = [[1], [2, 3], [4], [5], [6, 7], [8, 9], [1]]
test_batch_of_what_cannot_be_stacked = same("arrays(UNEVEN, (None,)).batch(2, num_parallel_calls=n)", n=CALLS)

# Without order

UNORDERED = {
    "map": lambda lib, bad, **more: lib.range(9).map(slowly(lib, *bad), **more),
    "interleave": lambda lib, bad, **more: interleaved(lib, SIZES["growing"], (3, 2), bad, **more),
}


@pytest.mark.parametrize("op", UNORDERED)
@pytest.mark.parametrize("bad", [(), (0,), (1, 8, 20, 31)], ids=str)
def test_without_order_the_same_elements_and_failures_come_out(op, bad):
    build = lambda lib: UNORDERED[op](lib, bad, num_parallel_calls=3, deterministic=False)
    ours, expected = in_both(lambda lib: sorted(map(repr, outcomes_of(lib, build(lib)))))
    assert ours == expected


def keeps_order(lib, op, arguments, option, seconds):
    """Return whether 0 is returned first, although it is delayed until another element is returned or ``seconds``."""
    gate = threading.Event()

    def hold(x):
        if x == 0:
            gate.wait(seconds)
        return x

    held, options = lib.call(hold, INT64), lib.Options()
    if op == "map":
        dataset = lib.range(4).map(held, **arguments)
    else:
        dataset = lib.range(4).interleave(lambda x: lib.from_tensors(x).map(held), 2, **arguments)
    if option is not None:
        options.deterministic = option
    iterator = iter(dataset.with_options(options))
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

METHODS = ["map(lambda x: x, num_parallel_calls={})", "interleave(range, 2, num_parallel_calls={})"]
METHODS += ["batch(2, num_parallel_calls={})"]
test_counts_that_are_too_small_or_no_counts = refused(
    {
        ValueError: ["range(3)." + method.format(calls) for method in METHODS[:2] for calls in (0, -2, -100)],
        TypeError: [
            "range(3)." + method.format(calls) for method in METHODS for calls in ("2.0", "'2'", "[2]", "b'1'")
        ],
    }
)
test_counts_of_other_classes = same(
    ["range(3)." + method.format("calls") for method in METHODS], calls=[np.int64(2), np.int32(2), np.array(2)]
)


@pytest.mark.parametrize("calls", [0, -2, -100])
def test_a_count_that_is_too_small_for_batch(calls):
    """tf.data accepts it and then waits forever for the first batch."""
    theirs(lambda lib: lib.range(3).batch(2, num_parallel_calls=calls).element_spec)
    with pytest.raises(ValueError, match="num_parallel_calls"):
        Ours().range(3).batch(2, num_parallel_calls=calls)


@pytest.mark.parametrize("calls", [3, 100])
def test_more_calls_than_the_cycle_is_long(calls):
    """tf.data rejects them; here, at most as many datasets are read in parallel as are open."""

    def build(lib, **arguments):
        return lib.range(1, 4).interleave(lambda x: lib.from_tensors(x).repeat(x), 2, **arguments)

    assert isinstance(theirs(lambda lib: attempt(lambda lib: build(lib, num_parallel_calls=calls), lib)), Exception)
    found = outcomes_of(Ours(), build(Ours(), num_parallel_calls=calls))
    assert_outcomes_equal(found, theirs(lambda lib: outcomes_of(lib, build(lib))))
