"""filter_fusion, map_and_filter_fusion and filter_parallelization: fewer passes, the same elements."""

from functools import partial

import numpy as np
import pytest

import dataset
from dataset import AUTOTUNE, Dataset, Options
from dataset.optimize.driver import optimize
from dataset.testing import assert_elements_equal, check_operator, check_rule, outcomes
from support.pipelines import fired, no_rules, switched_on

LARGE = (600, 600)


def number(x):
    return float(bytes(str(x), "ascii"))  # bytes() keeps it from running on columns


def picture(x):
    return np.full(LARGE, number(x))


def corner(image):
    return image[0, 0]


def corner_of(x):
    return corner(picture(x))


def odd(x):
    return bool(number(np.ravel(x)[0]) % 2)


def not_three(x):
    return number(np.ravel(x)[0]) != 3


@dataset.vectorized
def even(x):
    return x % 2 == 0


def numbers():
    return Dataset.range(13)


parallel = partial(switched_on, "filter_parallelization")


CHAINS = {
    "three filters": lambda: numbers().filter(odd).filter(not_three).filter(odd),
    "map, filter, filter": lambda: numbers().map(picture).filter(odd).filter(not_three),
    "map, map, filter": lambda: numbers().map(picture).map(corner).filter(odd),
    "filter, map": lambda: numbers().filter(odd).map(picture),
    "vectorized": lambda: numbers().map(corner_of).filter(even),
    "columns": lambda: numbers().map(lambda x: x + 1).filter(lambda x: x > 2),
    "parallel map": lambda: numbers().map(picture, num_parallel_calls=2).filter(odd),
    "an op between": lambda: numbers().map(picture).take(9).filter(odd),
}
FUSED = {
    "three filters": ["filter_fusion"] * 2,
    "map, filter, filter": ["map_and_filter_fusion", "filter_fusion"],
    "map, map, filter": ["map_fusion", "map_and_filter_fusion"],
    "columns": ["map_and_filter_fusion"],
}


def test_the_rules_alone():
    two = lambda: numbers().filter(odd).filter(not_three)
    check_rule("filter_fusion", two, "filter(not_three) <- filter(odd) <- range(13)")
    mapped = lambda: numbers().map(picture).filter(odd)
    check_rule("map_and_filter_fusion", mapped, "filter(odd) <- map(picture) <- range(13)")
    check_rule("filter_parallelization", lambda: numbers().filter(odd), "filter(odd) <- range(13)")


def test_says_what_would_have_to_be_allowed():
    (miss,) = (miss for miss in optimize(CHAINS["parallel map"]().plan).missed if miss.rule != "map_vectorization")
    assert "map(picture) below it has different parallel settings (2 parallel calls; here one call" in str(miss)


def test_the_opt_in_makes_filters_parallel_and_joins_them():
    data = numbers().map(picture, num_parallel_calls=AUTOTUNE).filter(odd)
    assert fired(data) == []
    assert fired(data, parallel()) == ["filter_parallelization", "map_and_filter_fusion"]
    assert fired(numbers().filter(odd), parallel()) == ["filter_parallelization"]
    assert "filter_parallelization" not in fired(numbers().filter(even), parallel())
    assert "filter_parallelization" not in fired(numbers().filter(lambda x: x > 2), parallel())
    assert "AUTOTUNE parallel calls" in numbers().filter(odd).with_options(parallel()).explain()
    two = numbers().filter(odd).filter(not_three)
    assert fired(two, parallel()) == ["filter_parallelization"] * 2  # the second counts what the first lets through


def fail_at(function, *bad):
    def failing(x):
        if int(np.ravel(x)[0]) in bad:
            raise ValueError(f"for {int(np.ravel(x)[0])}")
        return function(x)

    return failing


def not_a_bool(x):
    return 1 if int(np.ravel(x)[0]) == 5 else odd(x)


OUTCOMES = CHAINS | {
    "failing filters": lambda: numbers().filter(fail_at(odd, 4, 5)).filter(fail_at(not_three, 7)),
    "failing map and filter": lambda: numbers().map(fail_at(picture, 4, 5)).filter(fail_at(odd, 0, 7, 12)),
    "all": lambda: (
        numbers().map(fail_at(picture, 9)).map(corner).filter(fail_at(odd, 1, 2)).filter(fail_at(not_three, 5))
    ),
    "no bool": lambda: numbers().map(picture).filter(not_a_bool),
}


def notes(found):
    return [outcome.__notes__ for outcome in found if isinstance(outcome, Exception)]


@pytest.mark.parametrize("options", [Options, parallel], ids=["default", "parallel"])
@pytest.mark.parametrize("case", OUTCOMES)
def test_outcomes_and_notes_are_the_same(case, options):
    data = OUTCOMES[case]()
    if case in CHAINS:
        assert [rule for rule in fired(data) if rule != "map_vectorization"] == FUSED.get(case, [])
    plain = outcomes(iter(data.with_options(no_rules())))
    found = outcomes(iter(data.with_options(options())))
    assert_elements_equal(found, plain)
    assert notes(found) == notes(plain)
    batches = outcomes(iter(data.batch(3).with_options(no_rules())))
    assert_elements_equal(outcomes(iter(data.batch(3).with_options(options()))), batches)


@pytest.mark.parametrize("options", [Options, parallel], ids=["default", "parallel"])
def test_keeps_the_contract_of_operators(options):
    check_operator(lambda: OUTCOMES["all"]().with_options(options()), positions=5)
