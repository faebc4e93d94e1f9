"""random_map: each element through a function that draws random numbers, repeatably."""

import re

import numpy as np
import pytest

from dataset import Dataset, TensorSpec, set_random_seed
from dataset.testing import check_laziness, check_operator, outcomes
from support.op_cases import fail_at


def draw(rng, x):
    return x, rng.integers(1 << 40), rng.random()


def drawn(count, seed=3):
    return Dataset.range(count).random_map(draw, seed)


def draws(dataset):
    """The second item of each element, an exception in the place of one that fails."""
    return [found if isinstance(found, Exception) else int(found[1]) for found in outcomes(iter(dataset))]


@pytest.mark.parametrize(
    "make",
    [
        lambda: drawn(10).batch(4).repeat(2),
        lambda: Dataset.range(20).shuffle(5, seed=1).random_map(draw, seed=1).prefetch(3).repeat(2),
        lambda: Dataset.range(4).interleave(lambda n: drawn(n).repeat(2), cycle_length=2),
    ],
)
def test_draws_the_same_whatever_the_demand_and_after_a_resume(make):
    check_operator(make, positions=20)


def test_a_pipeline_built_again_repeats_the_sequence_of_draws_of_its_epochs():
    first, second = drawn(5), drawn(5)
    passes = [draws(first) for _ in range(3)]
    assert passes == [draws(second) for _ in range(3)]
    assert len({tuple(found) for found in passes}) == 3
    assert len(set(draws(drawn(5).repeat(4)))) == 20


def test_seeds_and_ops_are_independent():
    assert not set(draws(drawn(50, 1))) & set(draws(drawn(50, 2)))
    twice = Dataset.range(50).random_map(lambda rng, x: rng.random(), seed=1)
    assert all(first != second for first, second in twice.random_map(lambda rng, x: (x, rng.random()), seed=2))


def test_without_a_seed_follows_the_global_one():
    def run(seed):
        set_random_seed(seed)
        return draws(drawn(5, None)), draws(drawn(5, None)), draws(drawn(5, 100))

    assert run(7) == run(7) != run(8)
    assert len(set(map(tuple, run(7)))) == 3
    seeded = run(7)[2]
    set_random_seed(None)
    assert seeded != draws(drawn(5, 100))
    assert draws(drawn(5, None)) != draws(drawn(5, None))


def test_what_an_element_draws_does_not_depend_on_the_others():
    whole = draws(drawn(9))

    def sometimes_draws_more(rng, x):
        values = draw(rng, fail_at(2, 3)(x))
        rng.random(int(x) * 100)
        return values

    for dataset in (
        Dataset.range(9).map(fail_at(2, 3)).random_map(draw, seed=3),
        Dataset.range(9).random_map(sometimes_draws_more, seed=3),
    ):
        found = draws(dataset)
        assert [isinstance(one, ValueError) for one in found] == [x in {2, 3} for x in range(9)]
        assert found[:2] + found[4:] == whole[:2] + whole[4:]


def test_failures_come_at_their_place_and_are_resumed_over():
    source = Dataset.range(8).map(fail_at(5))
    got = check_operator(lambda: source.random_map(lambda rng, x: rng.random() + fail_at(2)(x), seed=3))
    assert [str(one) for one in got if isinstance(one, Exception)] == ["bad 2", "bad 5"]
    named = source.random_map(lambda rng, x: fail_at(2)(x), seed=5, name="augment").batch(4)
    (note,) = outcomes(iter(named))[0].__notes__
    assert re.fullmatch(r"in random_map\(.*, seed=5\) named 'augment' from test_random_map.py:\d+, element 2", note)


def test_a_generator_that_is_kept_is_never_used_again():
    kept = []

    def keep(rng, x):
        kept.append((rng, rng.random(2)))
        return x

    list(Dataset.range(6).random_map(keep, seed=3).batch(3))
    fours = [[*before, *rng.random(2)] for rng, before in kept]
    again = list(Dataset.range(6).random_map(lambda rng, x: rng.random(4), seed=3))
    assert fours == [four.tolist() for four in again]
    assert len({id(rng.bit_generator) for rng, _ in kept}) == 6


def test_the_spec_is_found_without_using_up_draws():
    dataset, other = drawn(3), drawn(3)
    scalar = TensorSpec((), np.int64)
    assert dataset.element_spec == (scalar, scalar, TensorSpec((), np.float64))
    assert draws(dataset) == draws(other)
    assert dataset.cardinality() == 3
    check_laziness(lambda numbers: numbers.random_map(draw, seed=1), lambda k: k)
