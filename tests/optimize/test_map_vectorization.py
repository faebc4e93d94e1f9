"""map_vectorization: arithmetic that is safe to run on whole columns is run there."""

import operator
from functools import partial

import numpy as np
import pytest

from dataset import Dataset, Options
from dataset.optimize.driver import optimize
from dataset.testing import assert_elements_equal, check_rule, outcomes

TWO = 2


def named(x):
    return x + 1


class Adder:
    def __call__(self, x):
        return x + 1

    def add(self, x):
        return x + 1


def closure(value):
    return lambda x: x + value


def generator(x):
    yield x


async def coroutine(x):
    return x


FIRES = [
    lambda x: x + 1,
    lambda x: 2 * x - 3,
    lambda x: x / 4,
    lambda x: x // 4 % 3,
    lambda x: (x & 3) | (x ^ 5),
    lambda x: x << 2 >> 1,
    lambda x: -x,
    lambda x: ~x,
    lambda x: x > 3,
    lambda x: (x, x * 0.5),
    lambda x: x,
]

NEVER = [
    lambda x: x + TWO,
    int,
    lambda x: x.sum(),
    lambda x: x[0],
    lambda x: x**2,
    lambda x: x if x > 2 else 0,
    lambda x: x > 1 and x < 3,
    lambda x: 1 < x < 3,
    lambda x: not x,
    lambda x: [x, x],
    lambda x: {"a": x},
    lambda x: f"{x}",
    lambda x: (x, None),
    lambda x: x + 1j,
    lambda x: (y := x) + y,
    lambda x, y=1: x + y,
    lambda *x: x,
    lambda x: len(x),  # noqa: PLW0108  # a call inside a lambda
    closure(1),
    generator,
    coroutine,
    Adder(),
    Adder().add,
    partial(operator.add, 1),
    np.negative,
    str,
    abs,
]


def fires(dataset):
    return [fired.rule for fired in optimize(dataset.plan).fired] == ["map_vectorization"]


@pytest.mark.parametrize("function", FIRES)
def test_fires(function):
    assert fires(Dataset.range(9).map(function))
    check_rule("map_vectorization", lambda: Dataset.range(9).map(function), "map(<lambda>) <- range(9)")
    check_rule(
        "map_vectorization",
        lambda: Dataset.range(9).map(function).batch(4),
        "batch(4) <- map(<lambda>) <- range(9)",
    )


def test_fires_for_named_functions_and_several_arguments_and_filters():
    assert fires(Dataset.range(9).map(named))
    assert fires(Dataset.range(9).filter(lambda x: x % 3 != 1).batch(4))
    check_rule("map_vectorization", lambda: Dataset.range(9).map(named), "map(named) <- range(9)")
    check_rule(
        "map_vectorization",
        lambda: Dataset.range(9).enumerate(3).map(lambda i, x: (i * x, i > x)).batch(4),
        "batch(4) <- map(<lambda>) <- enumerate <- range(9)",
    )
    check_rule(
        "map_vectorization",
        lambda: Dataset.range(9).filter(lambda x: x % 3 != 1).batch(4),
        "batch(4) <- filter(<lambda>) <- range(9)",
    )


@pytest.mark.parametrize("function", NEVER)
def test_does_not_fire(function):
    assert not fires(Dataset.range(9).map(function))
    assert not fires(Dataset.range(9).filter(function))


def test_does_not_fire_for_functions_with_effects():
    calls = []
    dataset = Dataset.range(6).map(lambda x: calls.append(int(x)) or x).batch(3)
    assert len(list(dataset)) == 2
    assert calls == list(range(6))
    check_rule("map_vectorization", lambda: Dataset.range(6).map(str).batch(2), "batch(2) <- map(str) <- range(6)")


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + 1,
        lambda x: x * x,
        lambda x: x // 3,
        lambda x: x % 3,
        lambda x: x / 7,
        lambda x: -x,
        lambda x: (x, x > 2),
        lambda x: x + 0.5,
        lambda x: x & 3,
        lambda x: x << 1,
        lambda x: 5,
        lambda x: (x, 5),
        lambda x: x,
        lambda x, y: x + y,
    ],
)
@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i8", "u8", "f2", "f4", "f8", "c8", "M8[D]", "O"])
def test_gives_the_same_for_every_dtype(function, dtype):
    """Also where the function fails for this dtype."""
    numbers = np.arange(1, 11).astype(dtype)

    def make():
        return Dataset.from_tensor_slices(numbers).map(function).batch(4)

    options = Options()
    options.optimization.enabled = False
    assert_elements_equal(outcomes(iter(make())), outcomes(iter(make().with_options(options))))


@pytest.mark.parametrize(
    "rows", [np.ones((6, 2)), ["a", "b", "c"], {"a": [1, 2, 3]}, ([1, 2, 3], np.ones((3, 2)))], ids=repr
)
def test_elements_that_are_no_numbers_are_still_passed_one_by_one(rows):
    check_rule(
        "map_vectorization",
        lambda: Dataset.from_tensor_slices(rows).map(lambda *x: x).batch(2),
        "batch(2) <- map(<lambda>) <- from_tensor_slices",
    )


def test_an_element_that_fails_later_fails_alone():
    def make():
        return Dataset.range(8).map(lambda x: 2**62 if x == 5 else int(x)).map(lambda x: x * 4).batch(2)

    with np.errstate(over="raise"):
        check_rule("map_vectorization", make, "batch(2) <- map(<lambda>) <- map(<lambda>) <- range(8)")


def test_a_division_by_zero_is_the_same_value_or_error():
    def make():
        return Dataset.range(-3, 3).map(lambda x: 6 // x).batch(2)

    for setting in ("ignore", "raise"):
        with np.errstate(all=setting):
            check_rule("map_vectorization", make, "batch(2) <- map(<lambda>) <- range(-3, 3)")
