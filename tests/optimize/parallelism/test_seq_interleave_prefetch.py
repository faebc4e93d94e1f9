"""seq_interleave_prefetch: where a user asks for it, an interleave reads its datasets ahead."""

import threading
from functools import partial

import pytest

from dataset import AUTOTUNE, Dataset
from dataset.optimize.driver import optimize
from dataset.testing import assert_elements_equal, check_operator, check_rule
from support.pipelines import switched_on

asked_for = partial(switched_on, "seq_interleave_prefetch")


def numbers(x):
    return Dataset.range(10 * x, 10 * x + x)


def failing(x):
    if x == 2:
        raise ValueError("no such dataset")
    return Dataset.range(x).map(lambda y: 6 // (y - 3))


FIRES = {
    "numbers": (numbers, {}, "interleave(numbers, cycle_length=4, block_length=1) <- range(7)"),
    "blocks": (
        numbers,
        {"cycle_length": 2, "block_length": 3},
        "interleave(numbers, cycle_length=2, block_length=3) <- range(7)",
    ),
    "failures": (failing, {}, "interleave(failing, cycle_length=4, block_length=1) <- range(7)"),
}


@pytest.mark.parametrize(("function", "arguments", "plan"), FIRES.values(), ids=FIRES)
def test_fires_where_it_is_asked_for(function, arguments, plan):
    def make():
        return Dataset.range(7).interleave(function, **arguments)

    check_rule("seq_interleave_prefetch", make, plan)
    optimized = optimize(make().with_options(asked_for()).plan)
    assert optimized.plan.num_parallel_calls == AUTOTUNE
    assert "AUTOTUNE parallel calls" in make().with_options(asked_for()).explain()
    check_operator(lambda: make().with_options(asked_for()), positions=8)


NEVER = {
    "is off by default": (lambda: Dataset.range(7).interleave(numbers), False),
    "has a number": (lambda: Dataset.range(7).interleave(numbers, num_parallel_calls=2), True),
    "flat_map": (lambda: Dataset.range(7).flat_map(numbers), True),
}


@pytest.mark.parametrize(("make", "asked"), NEVER.values(), ids=NEVER)
def test_does_not_fire(make, asked):
    plan = make().plan
    optimized = optimize(make().with_options(asked_for()).plan if asked else plan)
    assert optimized.plan.label() == plan.label()
    assert "seq_interleave_prefetch" not in {fired.rule for fired in optimized.fired}


def test_all_datasets_of_the_cycle_are_read_at_once():
    barrier = threading.Barrier(3)

    def waits_for_the_others(x):
        return Dataset.range(1).map(lambda _: barrier.wait(10) >= 0 and x)

    dataset = Dataset.range(3).interleave(waits_for_the_others, cycle_length=3).with_options(asked_for())
    assert_elements_equal(list(dataset), list(Dataset.range(3)))


def test_the_order_stays_even_where_the_options_let_it_go():
    options = asked_for()
    options.deterministic = False
    found = list(Dataset.range(9).interleave(numbers, cycle_length=3).with_options(options))
    assert_elements_equal(found, list(Dataset.range(9).interleave(numbers, cycle_length=3)))
