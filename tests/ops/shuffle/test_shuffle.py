"""shuffle: a random order, within a buffer. tests/oracle compares what does not depend on the random numbers."""

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from dataset import UNKNOWN_CARDINALITY, Dataset, RaggedTensor
from dataset.testing import check_laziness, check_operator
from support.op_cases import fail_at


def order(dataset):
    return [int(x) for x in dataset]


# Distributions


def assert_distributed(counts, probabilities):
    """Check Pearson's statistic: with 23 degrees of freedom, the bound is beyond the 99.99999th percentile."""
    counts = Counter(counts)
    assert set(counts) <= set(probabilities)
    total = sum(counts.values())
    statistic = sum((counts[cell] - total * p) ** 2 / (total * p) for cell, p in probabilities.items())
    assert statistic < 2 * len(probabilities) + 30


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


def test_all_orders_are_equally_likely_over_seeds_iterators_and_epochs():
    uniform = distribution(range(4), 4)
    dataset = Dataset.range(4).shuffle(4, seed=7)
    assert_distributed((tuple(order(dataset)) for _ in range(600)), uniform)
    assert_distributed((tuple(order(Dataset.range(4).shuffle(None, seed=seed))) for seed in range(600)), uniform)
    epochs = np.stack(list(Dataset.range(6).shuffle(6, seed=5).repeat(3000).batch(6)))
    assert_distributed(
        zip(*epochs[:, :2].T.tolist(), strict=True), dict.fromkeys(itertools.permutations(range(6), 2), 1 / 30)
    )
    successive = zip(epochs[:-1, 0].tolist(), epochs[1:, 0].tolist(), strict=True)
    assert_distributed(successive, dict.fromkeys(itertools.product(range(6), repeat=2), 1 / 36))
    assert_distributed(epochs[:, 5].tolist(), dict.fromkeys(range(6), 1 / 6))


@pytest.mark.parametrize(("size", "demand"), [(2, 1), (3, 3), (2, 5)])
def test_a_small_buffer_has_the_distribution_of_the_one_by_one_algorithm(size, demand):
    dataset = Dataset.range(5).shuffle(size, seed=11).batch(demand).unbatch().batch(5).repeat(1500)
    assert_distributed((tuple(batch.tolist()) for batch in dataset), distribution(range(5), size))


# Elements


@pytest.mark.parametrize("size", [1, 2, 4, 100, 10**12, UNKNOWN_CARDINALITY])
def test_returns_every_element_once(size):
    found = check_operator(lambda: Dataset.range(9).shuffle(size, 3))
    assert sorted(found) == list(range(9))
    assert size != 1 or found == list(range(9))


@pytest.mark.parametrize("size", [1, 3, 10, 100])
def test_the_order_depends_neither_on_the_demand_nor_on_the_elements(size):
    def shuffled(dataset):
        return dataset.shuffle(size, seed=4)

    one_by_one = order(shuffled(Dataset.range(57)))
    for demand in (2, 10, 57, 1000):
        assert np.concatenate(list(shuffled(Dataset.range(57)).batch(demand))).tolist() == one_by_one
    rows = np.arange(57).repeat(3).reshape(57, 3)
    others = {
        "slices": shuffled(Dataset.from_tensor_slices(rows)).map(lambda row: row[0]),
        "generator": shuffled(Dataset.from_generator(lambda: range(57))),
        "objects": shuffled(Dataset.range(57).map(lambda x: np.zeros(int(x)))).map(len),
        "text": shuffled(Dataset.range(57).map(str)).map(int),
    }
    for name, dataset in others.items():
        assert order(dataset) == one_by_one, name


def test_fills_its_buffer_and_then_takes_one_for_one():
    check_laziness(lambda numbers: numbers.shuffle(10, seed=1), lambda k: 10 + k - 1 if k else 0)
    check_laziness(lambda numbers: numbers.shuffle(1), lambda k: k)
    check_laziness(lambda numbers: numbers.shuffle(100, seed=1), lambda k: 50 if k else 0)
    check_operator(lambda: Dataset.range(3).repeat().shuffle(5, seed=1).take(9), positions=9)


ROWS = {
    "nested": {"a": np.arange(8), "b": (np.arange(16.0).reshape(8, 2), None)},
    "text": (np.array([f"{i}\0" for i in range(8)], object), np.arange(8)),
    "dates": np.arange(8).astype("datetime64[D]"),
    "ragged": RaggedTensor.from_rows([[i] * i for i in range(8)]),
    "empty": np.zeros((8, 0)),
}


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("size", [3, 8])
def test_takes_every_structure_and_dtype(rows, size):
    source = Dataset.from_tensor_slices(ROWS[rows])
    plain = list(source)
    places = order(Dataset.range(8).shuffle(size, seed=9))
    check_operator(lambda: source.shuffle(size, seed=9), [plain[place] for place in places], positions=9)
    check_operator(lambda: source.map(lambda *e: e).shuffle(size, seed=9), positions=2)


@pytest.mark.parametrize("size", [3, 10])
def test_takes_elements_whose_shapes_change(size):
    changing = Dataset.range(12).map(lambda x: np.zeros(2) if x < 6 else np.zeros(int(x)))
    plain, places = list(changing), order(Dataset.range(12).shuffle(size, seed=9))
    check_operator(lambda: changing.shuffle(size, seed=9), [plain[p] for p in places], positions=12)


@pytest.mark.parametrize("size", [1, 3, 20])
def test_failing_elements_are_raised_and_no_other_is_lost(size):
    got = check_operator(lambda: Dataset.range(10).map(fail_at(1, 7)).shuffle(size, seed=3), positions=11)
    assert sorted(str(e) for e in got if isinstance(e, ValueError)) == ["bad 1", "bad 7"]
    assert sorted(int(e) for e in got if not isinstance(e, ValueError)) == [0, 2, 3, 4, 5, 6, 8, 9]


@pytest.mark.parametrize("seed", [5, None])
def test_without_reshuffling_one_order_is_repeated(seed):
    dataset, again = (Dataset.range(30).shuffle(30, seed, reshuffle_each_iteration=False) for _ in range(2))
    first = order(dataset)
    assert order(dataset) == first
    assert order(dataset.repeat(2)) == first * 2
    assert (order(again) == first) is (seed == 5)
