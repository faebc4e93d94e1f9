"""shuffle: a random order, within a buffer."""

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from dataset import UNKNOWN_CARDINALITY, Dataset, Options, RaggedTensor, set_random_seed
from dataset.testing import assert_elements_equal, check_laziness, check_operator, outcomes


@pytest.fixture(autouse=True)
def no_global_seed():
    set_random_seed(None)
    yield
    set_random_seed(None)


def order(dataset):
    return [int(x) for x in dataset]


def chi_square(counts, probabilities):
    """Pearson's statistic; the degrees of freedom are one less than the number of cells."""
    total = sum(counts.values())
    return sum((counts[cell] - total * p) ** 2 / (total * p) for cell, p in probabilities.items())


def distribution(items, size):
    """The probability of each order, by the definition: draw from a buffer, refill, at the end the rest at random."""
    found = Counter()

    def go(buffer, rest, out, probability):
        if not rest:
            ends = list(itertools.permutations(buffer))
            for end in ends:
                found[(*out, *end)] += probability / len(ends)
            return
        for index, item in enumerate(buffer):
            refilled = [*buffer[:index], rest[0], *buffer[index + 1 :]]
            go(refilled, rest[1:], (*out, item), probability / len(buffer))

    go(list(items[:size]), list(items[size:]), (), Fraction(1))
    return {cell: float(p) for cell, p in found.items()}


# Twice the degrees of freedom and 30 more: with 23 of them that is beyond the 99.99999th percentile.
def bound(cells):
    return 2 * cells + 30


@pytest.mark.parametrize("size", [1, 2, 3, 4, 100, 10**12, UNKNOWN_CARDINALITY])
def test_gives_every_element_once(size):
    found = check_operator(lambda: Dataset.range(9).shuffle(size, 3))
    assert sorted(found) == list(range(9))
    assert sorted(Dataset.range(9).shuffle(size, 3, reshuffle_each_iteration=False)) == list(range(9))


@pytest.mark.parametrize("size", [1, 5])
def test_of_nothing_and_of_one_element(size):
    check_operator(lambda: Dataset.range(0).shuffle(size), [])
    check_operator(lambda: Dataset.range(1).shuffle(size), [np.int64(0)])


def test_a_buffer_of_one_changes_nothing():
    check_operator(lambda: Dataset.range(5).shuffle(1), [np.int64(i) for i in range(5)])


@pytest.mark.parametrize("size", [4, UNKNOWN_CARDINALITY])
def test_all_orders_are_equally_likely_over_seeds(size):
    counts = Counter(tuple(order(Dataset.range(4).shuffle(size, seed=seed))) for seed in range(1200))
    assert chi_square(counts, distribution(range(4), 4)) < bound(24)


def test_all_orders_are_equally_likely_over_epochs():
    everything = np.concatenate(list(Dataset.range(4).shuffle(4, seed=7).repeat(2400).batch(4)))
    counts = Counter(map(tuple, everything.reshape(-1, 4).tolist()))
    assert chi_square(counts, distribution(range(4), 4)) < bound(24)


def test_all_orders_are_equally_likely_over_iterators():
    dataset = Dataset.range(4).shuffle(4, seed=7)
    counts = Counter(tuple(order(dataset)) for _ in range(1200))
    assert chi_square(counts, distribution(range(4), 4)) < bound(24)


@pytest.mark.parametrize(("size", "demand"), [(2, 1), (3, 3), (2, 5)])
def test_a_small_buffer_has_the_distribution_of_the_one_by_one_algorithm(size, demand):
    expected = distribution(range(5), size)
    dataset = Dataset.range(5).shuffle(size, seed=11).batch(demand).unbatch().batch(5).repeat(3000)
    counts = Counter(tuple(batch.tolist()) for batch in dataset)
    assert set(counts) <= set(expected)
    assert chi_square(counts, expected) < bound(len(expected))


def test_each_place_gets_each_element_equally_often_in_a_full_shuffle():
    rows = np.stack(list(Dataset.range(20).shuffle(20, seed=5).repeat(2000).batch(20)))
    for place in (0, 1, 10, 19):
        counts = Counter(rows[:, place].tolist())
        assert chi_square(counts, dict.fromkeys(range(20), 1 / 20)) < bound(20)


def test_successive_orders_are_independent():
    rows = np.stack(list(Dataset.range(6).shuffle(6, seed=5).repeat(3000).batch(6)))
    counts = Counter(zip(rows[:-1, 0].tolist(), rows[1:, 0].tolist(), strict=True))
    cells = dict.fromkeys(itertools.product(range(6), repeat=2), 1 / 36)
    assert chi_square(counts, cells) < bound(36)


@pytest.mark.parametrize("size", [2, 7, 30])
def test_no_element_comes_more_than_a_buffer_before_its_place(size):
    places = order(Dataset.range(500).shuffle(size, seed=2))
    assert all(element - place <= size - 1 for place, element in enumerate(places))
    assert max(element - place for place, element in enumerate(places)) == size - 1  # it is not a smaller buffer
    assert max(place - element for place, element in enumerate(places)) > size  # late is not bounded


@pytest.mark.parametrize("size", [1, 3, 10, 100])
def test_the_order_is_the_same_whatever_the_demand(size):
    def make():
        return Dataset.range(57).shuffle(size, seed=4)

    one_by_one = order(make())
    for demand in (2, 3, 10, 57, 1000):
        assert np.concatenate(list(make().batch(demand))).tolist() == one_by_one


def test_the_order_does_not_depend_on_what_is_shuffled():
    numbers = order(Dataset.range(40).shuffle(7, seed=4))
    rows = np.arange(40).repeat(3).reshape(40, 3)
    sources = {
        "slices": Dataset.from_tensor_slices(rows).shuffle(7, seed=4).map(lambda row: row[0]),
        "generator": Dataset.from_generator(lambda: range(40)).shuffle(7, seed=4),
        "map": Dataset.range(40).map(int).shuffle(7, seed=4),
        "objects": Dataset.range(40).map(lambda x: np.zeros(int(x))).shuffle(7, seed=4).map(len),
        "text": Dataset.range(40).map(str).shuffle(7, seed=4).map(int),
    }
    for name, dataset in sources.items():
        assert order(dataset) == numbers, name


def test_fills_its_buffer_and_then_takes_one_for_one():
    check_laziness(lambda numbers: numbers.shuffle(10, seed=1), lambda k: 10 + k - 1 if k else 0)
    check_laziness(lambda numbers: numbers.shuffle(1), lambda k: k)
    check_laziness(lambda numbers: numbers.shuffle(100, seed=1), lambda k: 50 if k else 0)


def test_endless_data_is_fine_with_a_bounded_buffer():
    check_operator(lambda: Dataset.range(3).repeat().shuffle(5, seed=1).take(9), positions=9)


ROWS = [
    {"a": np.arange(8), "b": (np.arange(16.0).reshape(8, 2), None)},
    (np.array([f"{i}\0" for i in range(8)], object), np.arange(8)),
    np.arange(8).astype("datetime64[D]"),
    np.arange(16, dtype=np.float16).reshape(8, 2, 1),
    np.arange(8) % 2 == 0,
    RaggedTensor.from_rows([[i] * i for i in range(8)]),
    np.zeros((8, 0)),
]


@pytest.mark.parametrize("rows", ROWS, ids=lambda rows: type(rows).__name__)
@pytest.mark.parametrize("size", [3, 8])
def test_takes_every_structure_and_dtype(rows, size):
    def make():
        return Dataset.from_tensor_slices(rows)

    plain = list(make())
    places = order(Dataset.range(8).shuffle(size, seed=9))
    check_operator(lambda: make().shuffle(size, seed=9), [plain[place] for place in places], positions=9)
    check_operator(lambda: make().map(lambda *e: e).shuffle(size, seed=9), positions=2)


@pytest.mark.parametrize("size", [2, 3, 10])
def test_elements_whose_shapes_change_on_the_way_are_fine(size):
    def change(x):
        return np.zeros(2) if x < 6 else np.zeros(int(x))

    plain = list(Dataset.range(12).map(change))
    places = order(Dataset.range(12).shuffle(size, seed=9))
    check_operator(
        lambda: Dataset.range(12).map(change).shuffle(size, seed=9), [plain[p] for p in places], positions=12
    )


def test_passes_python_objects_through():
    got = list(Dataset.range(5).map(lambda x: {int(x)}).shuffle(3, seed=1))
    assert sorted(map(list, got)) == [[0], [1], [2], [3], [4]]


def test_what_a_consumer_writes_does_not_come_back():
    source = np.zeros((20, 2))
    for dataset in (
        Dataset.from_tensor_slices(source).shuffle(5, seed=1),
        Dataset.from_tensor_slices(source).map(lambda row: row + 0).shuffle(5, seed=1),
    ):
        for row in dataset.repeat(2):
            assert not row.any()
            row[:] = 1  # a shuffled row is a copy, and the user's
    assert not source.any()


# Exceptions


def test_goes_on_behind_exceptions_and_loses_nothing_else():
    def fail(x):
        if x in {1, 7}:
            raise ValueError(f"bad {x}")
        return x

    for size in (1, 3, 20):
        got = check_operator(lambda size=size: Dataset.range(10).map(fail).shuffle(size, seed=3), positions=11)
        assert sorted(str(e) for e in got if isinstance(e, ValueError)) == ["bad 1", "bad 7"]
        assert sorted(int(e) for e in got if not isinstance(e, ValueError)) == [0, 2, 3, 4, 5, 6, 8, 9]


def test_an_interrupt_loses_nothing():
    armed = [True]

    def interrupt(x):
        if x == 6 and armed:
            armed.clear()
            raise KeyboardInterrupt
        return x

    iterator = iter(Dataset.range(10).map(interrupt).shuffle(3, seed=1))
    got = []
    with pytest.raises(KeyboardInterrupt):
        got.extend(next(iterator) for _ in range(10))
    assert sorted(got + outcomes(iterator)) == list(range(10))


# Seeds and epochs: tfdata-semantics 26, 27, 29


def test_a_seed_gives_another_order_in_each_epoch_and_iterator_and_a_rebuilt_pipeline_the_same_ones():
    def build():
        return Dataset.range(30).shuffle(30, seed=5)

    one, two = build(), build()
    orders = [order(one) for _ in range(3)]
    assert len(set(map(tuple, orders))) == 3
    assert [order(two) for _ in range(3)] == orders
    epochs = np.array(order(build().repeat(3))).reshape(3, 30).tolist()
    assert len(set(map(tuple, epochs))) == 3
    assert order(build().repeat(3)) == np.concatenate(epochs).tolist()


@pytest.mark.parametrize("seed", [5, None])
def test_without_reshuffling_one_order_is_repeated(seed):
    dataset = Dataset.range(30).shuffle(30, seed=seed, reshuffle_each_iteration=False)
    first = order(dataset)
    assert order(dataset) == first
    assert order(dataset.repeat(2)) == first * 2
    if seed is None:
        assert order(Dataset.range(30).shuffle(30, reshuffle_each_iteration=False)) != first


def test_reshuffling_is_what_none_means():
    dataset = Dataset.range(30).shuffle(30, seed=5, reshuffle_each_iteration=None)
    assert dataset.plan.reshuffle_each_iteration is True
    assert order(dataset) != order(dataset)


def test_without_a_seed_everything_differs():
    dataset = Dataset.range(30).shuffle(30)
    orders = [order(dataset), order(dataset), order(Dataset.range(30).shuffle(30))]
    assert len(set(map(tuple, orders))) == 3


def test_different_seeds_give_different_orders():
    orders = {tuple(order(Dataset.range(30).shuffle(30, seed=seed))) for seed in (0, 1, -1, 2**40, np.int64(7))}
    assert len(orders) == 5


def test_the_global_seed_makes_unseeded_ops_repeatable_and_different_from_each_other():
    def build():
        return Dataset.range(30).shuffle(30), Dataset.range(30).shuffle(30)

    set_random_seed(1)
    one, two = (order(dataset) for dataset in build())
    assert one != two
    set_random_seed(1)
    assert [order(dataset) for dataset in build()] == [one, two]
    set_random_seed(2)
    assert order(build()[0]) != one


def test_the_global_seed_and_the_ops_seed_both_count():
    def with_global(seed):
        set_random_seed(seed)
        return order(Dataset.range(30).shuffle(30, seed=3))

    assert with_global(1) != with_global(2)
    assert with_global(1) == with_global(1)
    set_random_seed(1)
    first = order(Dataset.range(30).shuffle(30, seed=3))
    assert order(Dataset.range(30).shuffle(30, seed=3)) == first  # an op's own seed draws nothing


def test_finding_the_spec_uses_up_no_order():
    def build():
        return Dataset.range(30).shuffle(30, seed=1).map(lambda x: x + 1)

    one, two = build(), build()
    _ = one.element_spec
    assert order(one) == order(two)


@pytest.mark.parametrize("optimized", [True, False])
def test_the_optimizer_does_not_change_the_sequence_of_orders(optimized):
    options = Options()
    options.optimization.enabled = optimized
    dataset = Dataset.from_tensor_slices(np.arange(30)).shuffle(10, seed=1).with_options(options)
    rebuilt = Dataset.range(30).shuffle(10, seed=1)
    for _ in range(3):
        assert order(dataset) == order(rebuilt)


# Resuming


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("position", [0, 4, 7, 15])
@pytest.mark.parametrize(
    "source", [lambda: Dataset.range(10), lambda: Dataset.range(10).map(str)], ids=["range", "map"]
)
def test_a_state_goes_on_through_later_epochs_in_a_rebuilt_pipeline(source, seed, position):
    def build():
        return source().shuffle(4, seed=seed).repeat(3)

    iterator = iter(build())
    for _ in range(position):
        next(iterator)
    state = iterator.state_dict()
    resumed = iter(build())
    resumed.load_state_dict(state)
    assert_elements_equal(list(resumed), list(iterator))


def test_a_state_taken_in_a_later_iterator_brings_its_own_order():
    dataset = Dataset.range(20).shuffle(20, seed=3)
    list(dataset)
    iterator = iter(dataset)
    next(iterator)
    state = iterator.state_dict()
    rest = list(iterator)
    resumed = iter(Dataset.range(20).shuffle(20, seed=3))
    resumed.load_state_dict(state)
    assert_elements_equal(list(resumed), rest)


# Arguments


def test_knows_spec_and_cardinality():
    assert Dataset.range(6).shuffle(3).cardinality() == 6
    assert Dataset.range(6).repeat().shuffle(3).cardinality() == -1
    assert Dataset.range(6).filter(lambda x: True).shuffle(3).cardinality() == -2
    assert Dataset.range(6).batch(2).shuffle(3).element_spec == Dataset.range(6).batch(2).element_spec


@pytest.mark.parametrize("size", [0, -1, -3])
def test_refuses_a_buffer_without_room(size):
    with pytest.raises(ValueError, match=rf"shuffle\(\): buffer_size must be at least 1, got {size}"):
        Dataset.range(3).shuffle(size)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((2.0,), "buffer_size must be an int"),
        ((True,), "buffer_size must be an int"),
        ((3, 1.5), "seed must be an int"),
        ((3, "1"), "seed must be an int"),
        ((3, 1, 1), "reshuffle_each_iteration must be True or False"),
        ((3, 1, "no"), "reshuffle_each_iteration must be True or False"),
    ],
)
def test_refuses_arguments_of_the_wrong_type(arguments, words):
    with pytest.raises(TypeError, match=rf"shuffle\(\): {words}"):
        Dataset.range(3).shuffle(*arguments)


@pytest.mark.parametrize("seed", ["1", 1.0, True])
def test_refuses_a_global_seed_that_is_no_int(seed):
    with pytest.raises(TypeError, match="seed must be an int or None"):
        set_random_seed(seed)
