"""random_map: each element through a function that draws random numbers, repeatably."""

import re

import numpy as np
import pytest

from dataset import Dataset, SpecError, TensorSpec, set_random_seed, vectorized
from dataset.testing import assert_elements_equal, check_laziness, check_operator, outcomes
from support.op_cases import fail_at, ints


def draw(rng, x):
    return x, rng.integers(1 << 40), rng.random()


def draws(dataset):
    """The second item of each element, an exception in the place of one that fails."""
    return [found if isinstance(found, Exception) else int(found[1]) for found in outcomes(iter(dataset))]


def test_draws_the_same_whatever_the_demand_and_after_a_resume():
    check_operator(lambda: Dataset.range(40).random_map(draw, seed=3))
    check_operator(lambda: Dataset.range(10).random_map(draw, seed=3).repeat(3))
    check_operator(lambda: Dataset.range(10).random_map(draw, seed=3).batch(4).repeat(2))
    check_operator(lambda: Dataset.range(20).shuffle(5, seed=1).random_map(draw, seed=1).prefetch(3).repeat(2))
    check_operator(lambda: Dataset.range(0).random_map(draw, seed=3), [])


def test_a_pipeline_built_again_repeats_the_sequence_of_draws():
    first, second = (Dataset.range(5).random_map(draw, seed=3) for _ in range(2))
    passes = [draws(first) for _ in range(3)]
    assert passes == [draws(second) for _ in range(3)]
    assert len({tuple(found) for found in passes}) == 3


def test_each_epoch_draws_other_numbers():
    found = draws(Dataset.range(5).random_map(draw, seed=3).repeat(4))
    assert len(set(found)) == 20


def test_a_resumed_iterator_goes_on_into_the_same_epochs():
    dataset = Dataset.range(5).random_map(draw, seed=3).repeat(3)
    draws(dataset)
    iterator = iter(dataset)  # the second one
    for _ in range(7):
        next(iterator)
    state = iterator.state_dict()
    rest = outcomes(iterator)
    rebuilt = iter(Dataset.range(5).random_map(draw, seed=3).repeat(3))
    rebuilt.load_state_dict(state)
    assert_elements_equal(outcomes(rebuilt), rest)


def test_a_resumed_pipeline_without_a_seed_draws_what_the_saved_one_would_have():
    iterator = iter(Dataset.range(6).random_map(draw).repeat(2))
    next(iterator)
    state = iterator.state_dict()
    rebuilt = iter(Dataset.range(6).random_map(draw).repeat(2))
    rebuilt.load_state_dict(state)
    assert_elements_equal(outcomes(rebuilt), outcomes(iterator))


def test_inner_datasets_draw_and_are_resumed():
    def inner(n):
        return Dataset.range(n).random_map(draw, seed=4).repeat(2)

    check_operator(lambda: Dataset.range(4).flat_map(inner))
    check_operator(lambda: Dataset.range(4).interleave(inner, cycle_length=2))


def test_seeds_and_ops_are_independent():
    a, b = (draws(Dataset.range(50).random_map(draw, seed=seed)) for seed in (1, 2))
    assert not set(a) & set(b)
    twice = (
        Dataset.range(50)
        .random_map(lambda rng, x: rng.random(), seed=1)
        .random_map(lambda rng, x: (x, rng.random()), seed=2)
    )
    assert all(first != second for first, second in twice)


def test_without_a_seed_follows_the_global_one():
    def run(seed):
        set_random_seed(seed)
        pipelines = [Dataset.range(5).random_map(draw) for _ in range(2)]
        return [draws(pipeline) for pipeline in pipelines]

    try:
        first, second = run(7)
        assert first != second
        assert run(7) == [first, second]
        assert run(8) != [first, second]
        set_random_seed(7)
        seeded = draws(Dataset.range(5).random_map(draw, seed=1))
    finally:
        set_random_seed(None)
    assert seeded != draws(Dataset.range(5).random_map(draw, seed=1))
    assert draws(Dataset.range(5).random_map(draw)) != draws(Dataset.range(5).random_map(draw))


def test_what_an_element_draws_does_not_depend_on_the_others():
    whole = draws(Dataset.range(9).random_map(draw, seed=3))

    def some_draw_more(rng, x):
        rng.random(int(x) * 100)
        return x, x

    def sometimes_fails(rng, x):
        return draw(rng, fail_at(2, 3)(x))

    assert draws(Dataset.range(9).random_map(some_draw_more, seed=3)) == list(range(9))
    for dataset in (
        Dataset.range(9).map(fail_at(2, 3)).random_map(draw, seed=3),
        Dataset.range(9).random_map(sometimes_fails, seed=3),
    ):
        found = draws(dataset)
        assert [isinstance(one, ValueError) for one in found] == [x in {2, 3} for x in range(9)]
        assert found[:2] + found[4:] == whole[:2] + whole[4:]


def test_failures_come_at_their_place_and_are_resumed_over():
    def fails(rng, x):
        return rng.random() + fail_at(2)(x)

    source = Dataset.range(8).map(fail_at(5))
    got = check_operator(lambda: source.random_map(fails, seed=3))
    assert [str(one) for one in got if isinstance(one, Exception)] == ["bad 2", "bad 5"]


@pytest.mark.parametrize("demand", [1, 4])
def test_an_exception_has_the_note_of_map(demand):
    def fails(rng, x):
        return fail_at(2)(x)

    with pytest.raises(ValueError, match="bad 2") as caught:
        list(Dataset.range(4).random_map(fails, seed=5, name="augment").batch(demand))
    (note,) = caught.value.__notes__
    place = r"in random_map\(.*fails, seed=5\) named 'augment' from test_random_map.py:\d+, element 2"
    assert re.fullmatch(place, note)


def test_passes_the_items_of_a_tuple_as_arguments_behind_the_generator():
    pairs = Dataset.range(3).enumerate(10)
    check_operator(lambda: pairs.random_map(lambda rng, i, x: i + x, seed=1), ints(10, 12, 14))
    dicts = Dataset.from_tensor_slices({"a": [1, 2]})
    check_operator(lambda: dicts.random_map(lambda rng, e: (type(rng).__name__, e["a"]), seed=1), [
        (b"Generator", np.int64(1)),
        (b"Generator", np.int64(2)),
    ])  # fmt: skip


def test_a_generator_that_is_kept_is_never_used_again():
    kept = []

    def keep(rng, x):
        kept.append((rng, rng.random(2)))
        return x

    list(Dataset.range(6).random_map(keep, seed=3).batch(3))
    after = [rng.random(2).tolist() for rng, _ in kept]
    again = []

    def draw_four(rng, x):
        again.append(rng.random(4))
        return x

    list(Dataset.range(6).random_map(draw_four, seed=3))
    assert [before.tolist() + later for (_, before), later in zip(kept, after, strict=True)] == [
        four.tolist() for four in again
    ]
    assert len({id(rng.bit_generator) for rng, _ in kept}) == 6


def test_generators_can_spawn():
    def child(rng, x):
        one, other = rng.spawn(2)
        (third,) = rng.spawn(1)
        return one.random(), other.random(), third.random()

    got = check_operator(lambda: Dataset.range(3).random_map(child, seed=1))
    assert len({float(value) for triple in got for value in triple}) == 9


def test_draws_are_uniform_and_independent_between_elements():
    first = np.array([float(x) for x in Dataset.range(4000).random_map(lambda rng, x: rng.random(), seed=11)])
    assert abs(first.mean() - 0.5) < 0.02
    assert np.histogram(first, 10, (0, 1))[0].min() > 300
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 0.05
    second = np.array([float(x) for x in Dataset.range(4000).random_map(lambda rng, x: rng.random(2)[1], seed=11)])
    assert abs(np.corrcoef(first[1:], second[:-1])[0, 1]) < 0.05
    assert len({*first, *second}) == 8000


def test_takes_what_it_gives():
    check_laziness(lambda numbers: numbers.random_map(draw, seed=1), lambda k: k)


def test_another_structure_is_an_error_as_in_map():
    got = outcomes(iter(Dataset.range(3).random_map(lambda rng, x: (x, x) if x == 1 else x, seed=1)))
    assert isinstance(got[1], SpecError)
    assert "random_map(<lambda>, seed=1) returned (*, *)" in str(got[1])
    with pytest.raises(SpecError, match="must return an element, got None"):
        next(iter(Dataset.range(3).random_map(lambda rng, x: None)))


def test_asking_for_the_spec_uses_up_no_draws():
    dataset, other = (Dataset.range(3).random_map(draw, seed=1) for _ in range(2))
    scalar = TensorSpec((), np.int64)
    assert dataset.element_spec == (scalar, scalar, TensorSpec((), np.float64))
    assert draws(dataset) == draws(other)
    assert dataset.cardinality() == 3
    assert dataset.repeat().cardinality() == -1


def test_the_optimizer_leaves_the_draws_alone():
    dataset = Dataset.range(4).take(-1).random_map(lambda rng, x: x + 1, seed=1)
    assert "on columns" not in dataset.explain()
    assert dataset.explain().splitlines()[1].startswith("  random_map(<lambda>, seed=1)")


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((None,), TypeError, "map_func must be a function"),
        ((draw, 1.5), TypeError, "seed must be an int"),
        ((draw, "1"), TypeError, "seed must be an int"),
        ((draw, 1, 0), ValueError, "num_parallel_calls must be at least 1"),
        ((draw, 1, None, "no"), TypeError, "deterministic must be True or False"),
        ((vectorized(lambda rng, x: x),), TypeError, "marked as vectorized"),
    ],
)
def test_refuses_wrong_arguments(arguments, error, words):
    with pytest.raises(error, match=rf"random_map\(\): .*{words}"):
        Dataset.range(3).random_map(*arguments)
