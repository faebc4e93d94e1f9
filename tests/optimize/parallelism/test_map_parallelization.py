"""map_parallelization: where a user asks for it, functions are called from several threads."""

import threading
from functools import partial

import pytest

import dataset
from dataset import AUTOTUNE, Dataset
from dataset.ops.map import Map
from dataset.ops.random_map import RandomMap
from dataset.optimize.driver import optimize
from dataset.plan.node import walk
from dataset.testing import assert_elements_equal, check_operator, check_rule
from support.pipelines import switched_on

asked_for = partial(switched_on, "map_parallelization")


def text(x):
    return str(x)


def pick(generator, x):
    return generator.integers(100) + x


@dataset.vectorized
def doubled(column):
    return column * 2


FIRES = {
    "map": (lambda: Dataset.range(20).map(text), "map(text) <- range(20)"),
    "random_map": (lambda: Dataset.range(20).random_map(pick, seed=1), "random_map(pick, seed=1) <- range(20)"),
    "twice": (lambda: Dataset.range(20).map(text).map(len), "map(len) <- map(text) <- range(20)"),
}


@pytest.mark.parametrize(("make", "plan"), FIRES.values(), ids=FIRES)
def test_fires_where_it_is_asked_for(make, plan):
    check_rule("map_parallelization", make, plan)
    maps = [node for node in walk(optimize(make().with_options(asked_for()).plan).plan) if not node.traits.pure]
    assert [node.num_parallel_calls for node in maps] == [AUTOTUNE] * len(maps)
    assert "AUTOTUNE parallel calls" in make().with_options(asked_for()).explain()
    check_operator(lambda: make().with_options(asked_for()), positions=5)


NEVER = {
    "is off by default": (lambda: Dataset.range(20).map(text), False, None),
    "has a number": (lambda: Dataset.range(20).map(text, num_parallel_calls=3), True, 3),
    "must be synchronous": (lambda: Dataset.range(20).map(text, synchronous=True), True, None),
    "has one call": (lambda: Dataset.range(20).random_map(pick, num_parallel_calls=1), True, 1),
}


@pytest.mark.parametrize(("make", "asked", "calls"), NEVER.values(), ids=NEVER)
def test_does_not_fire(make, asked, calls):
    plan = make().with_options(asked_for()).plan if asked else make().plan
    optimized = optimize(plan)
    assert not [fired for fired in optimized.fired if fired.rule == "map_parallelization"]
    assert [n.num_parallel_calls for n in walk(optimized.plan) if isinstance(n, Map | RandomMap)] == [calls]


@pytest.mark.parametrize("function", [lambda x: x + 1, doubled])
def test_says_why_functions_on_columns_stay(function):
    optimized = optimize(Dataset.range(20).map(function).with_options(asked_for()).plan)
    assert optimized.plan.num_parallel_calls is None
    assert ["whole columns" in missed.reason for missed in optimized.missed] == [True]


def test_the_order_stays_even_where_the_options_let_it_go():
    options = asked_for()
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

    dataset = Dataset.range(40).map(first_waits_for_the_second).with_options(options)
    assert_elements_equal(list(dataset), [str(x).encode() for x in range(40)])
