"""map_parallelization, parallel_batch and seq_interleave_prefetch: ops use several threads on request."""

import threading

import pytest

import dataset
from dataset import AUTOTUNE, Dataset
from dataset.ops.batch.batch import Batch
from dataset.ops.interleave.interleave import Interleave
from dataset.ops.map import Map
from dataset.ops.random_map import RandomMap
from dataset.optimize.driver import optimize
from dataset.plan.node import walk
from dataset.testing import assert_elements_equal, check_operator, check_rule, outcomes
from support.pipelines import as_written, fired, switched_on

MAPS, BATCHES, INTERLEAVES = "map_parallelization", "parallel_batch", "seq_interleave_prefetch"
OPS = {MAPS: Map | RandomMap, BATCHES: Batch, INTERLEAVES: Interleave}


def text(x):
    return str(x)


def pick(generator, x):
    return generator.integers(100) + x


@dataset.vectorized
def doubled(column):
    return column * 2


def below(x):
    return Dataset.range(10 * x, 10 * x + x)


def failing(x):
    if x == 2:
        raise ValueError("no such dataset")
    return Dataset.range(x).map(lambda y: 6 // (y - 3))


N = Dataset.range(20)
FIRES = {
    "map": (MAPS, lambda: N.map(text)),
    "random_map": (MAPS, lambda: N.random_map(pick, seed=1)),
    "two maps": (MAPS, lambda: N.map(text).map(len)),
    "batch": (BATCHES, lambda: N.batch(3)),
    "batches of batches": (BATCHES, lambda: Dataset.range(24).batch(3).batch(2)),
    "batches of a function": (BATCHES, lambda: N.map(text).batch(3)),
    "interleave": (INTERLEAVES, lambda: Dataset.range(7).interleave(below)),
    "blocks": (INTERLEAVES, lambda: Dataset.range(7).interleave(below, cycle_length=2, block_length=3)),
    "failures": (INTERLEAVES, lambda: Dataset.range(7).interleave(failing)),
}


def calls_in(data, rule):
    """Return the parallel calls of the ops of a rule, in the plan as it runs."""
    return [node.num_parallel_calls for node in walk(optimize(data.plan).plan) if isinstance(node, OPS[rule])]


@pytest.mark.parametrize(("rule", "make"), FIRES.values(), ids=FIRES)
def test_fires_on_request_and_keeps_the_order_even_if_the_options_let_it_go(rule, make):
    check_rule(rule, make, as_written(make()))
    options = switched_on(rule)
    options.deterministic = False
    assert set(calls_in(make().with_options(options), rule)) == {AUTOTUNE}
    assert "AUTOTUNE parallel calls" in make().with_options(options).explain()
    check_operator(lambda: make().with_options(options), outcomes(iter(make())), positions=8)


NEVER = {
    "a map, by default": (MAPS, N.map(text), False, [None]),
    "a map with a number": (MAPS, N.map(text, num_parallel_calls=3), True, [3]),
    "a synchronous map": (MAPS, N.map(text, synchronous=True), True, [None]),
    "a random_map with one call": (MAPS, N.random_map(pick, num_parallel_calls=1), True, [1]),
    "a batch, by default": (BATCHES, N.batch(3), False, [None]),
    "a batch with a number": (BATCHES, N.batch(3, num_parallel_calls=2), True, [2]),
    "a padded batch": (BATCHES, N.padded_batch(3), True, [None]),
    "a ragged batch": (BATCHES, N.ragged_batch(3), True, [None]),
    "an interleave, by default": (INTERLEAVES, Dataset.range(7).interleave(below), False, [None]),
    "an interleave with a number": (INTERLEAVES, Dataset.range(7).interleave(below, num_parallel_calls=2), True, [2]),
    "flat_map": (INTERLEAVES, Dataset.range(7).flat_map(below), True, []),
}


@pytest.mark.parametrize(("rule", "data", "asked", "calls"), NEVER.values(), ids=NEVER)
def test_does_not_fire(rule, data, asked, calls):
    data = data.with_options(switched_on(rule)) if asked else data
    assert rule not in fired(data)
    assert calls_in(data, rule) == calls


@pytest.mark.parametrize("function", [lambda x: x + 1, doubled])
def test_says_why_functions_on_columns_stay(function):
    optimized = optimize(N.map(function).with_options(switched_on(MAPS)).plan)
    assert optimized.plan.num_parallel_calls is None
    assert ["whole columns" in missed.reason for missed in optimized.missed] == [True]


def test_the_order_stays_where_a_call_waits_for_a_later_one():
    options = switched_on(MAPS)
    options.deterministic = False
    options.autotune.cpu_budget = 2
    options.autotune.enabled = False  # otherwise the first call is finished before the second begins
    second = threading.Event()

    def first_waits_for_the_second(x):
        if x == 0:
            assert second.wait(10)
        if x == 1:
            second.set()
        return str(x)

    data = Dataset.range(40).map(first_waits_for_the_second).with_options(options)
    assert_elements_equal(list(data), [str(x).encode() for x in range(40)])


def test_all_datasets_of_the_cycle_are_read_at_once():
    barrier = threading.Barrier(3)

    def waits_for_the_others(x):
        return Dataset.range(1).map(lambda _: barrier.wait(10) >= 0 and x)

    data = Dataset.range(3).interleave(waits_for_the_others, cycle_length=3)
    assert_elements_equal(list(data.with_options(switched_on(INTERLEAVES))), list(Dataset.range(3)))
