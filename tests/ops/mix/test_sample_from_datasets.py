"""sample_from_datasets: datasets mixed at random, or in exact shares. tests/oracle compares what is deterministic."""

from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset import Dataset, SpecError, TensorSpec
from dataset.testing import check_laziness, check_operator
from support.combinations import diagonals
from support.op_cases import fail_at, ints

mix = Dataset.sample_from_datasets


def endless(count):
    return [Dataset.from_tensors(i).repeat() for i in range(count)]


def picked(dataset, count=20_000):
    return next(iter(dataset.batch(count)))


def weights_dataset(*rows):
    return Dataset.from_tensor_slices(np.array(rows, np.float64))


def assert_shares(picks, weights):
    """Chi-square against the weights; the bound holds for 999 of 1000 seeds, and the seeds are fixed."""
    expected = len(picks) * np.array(weights, float) / np.sum(weights)
    used = expected > 0
    got = np.bincount(picks, minlength=len(weights))
    assert not got[~used].any()
    square = ((got[used] - expected[used]) ** 2 / expected[used]).sum()
    assert square < {1: 1e-9, 2: 10.83, 3: 13.82, 4: 16.27}[int(used.sum())], (got, expected)


@pytest.mark.parametrize("weights", [None, [0.9, 0.1], (3, 1.0, 6), np.array([1, 0, 2.0, 1]), [1e-300, 1e-300]])
@pytest.mark.parametrize("seed", [0, 1])
def test_picks_in_proportion_to_the_weights_and_independently(weights, seed):
    count = 2 if weights is None else len(weights)
    picks = picked(mix(endless(count), weights, seed))
    assert_shares(picks, [1] * count if weights is None else weights)
    if weights is None:
        assert_shares(picks[1:] * 2 + picks[:-1], [1, 1, 1, 1])


def test_the_proportion_of_the_others_stays_after_the_end_of_one():
    picks = picked(mix([Dataset.range(50).map(lambda x: 0), *endless(3)[1:]], [0.98, 0.015, 0.005], seed=2))
    assert (picks == 0).sum() == 50
    assert_shares(picks[picks > 0] - 1, [3, 1])


def test_keeps_the_contract_of_an_op_after_the_end_of_one():
    check_operator(lambda: mix([Dataset.range(30), Dataset.range(100, 105), Dataset.range(0)], seed=1), positions=10)


def numbers_taken(start, taken, count=40):
    def numbers():
        for i in range(count):
            taken.append(i)
            yield start + i

    return Dataset.from_generator(numbers, output_signature=TensorSpec((), np.int64))


@pytest.mark.parametrize(("demand", "stop", "exact"), diagonals(2, [1, 3, 8, 100], [True, False], [True, False]))
def test_takes_no_element_that_it_does_not_return(demand, stop, exact):
    taken = [[], [], []]
    sources = [numbers_taken(100 * i, taken[i], count) for i, count in enumerate((40, 4, 30))]
    options = {"exact": True} if exact else {"seed": 3}
    returned = 0
    for batch in mix(sources, stop_on_empty_dataset=stop, **options).batch(demand):
        returned += len(batch)
        assert sum(map(len, taken)) == returned
    check_laziness(lambda numbers: mix([numbers], weights_dataset([1.0]).repeat()), lambda k: k, size=20)


# Weights as a dataset


def test_a_dataset_of_weights_has_those_of_each_element():
    two = [Dataset.range(4), Dataset.range(10, 14)]
    check_operator(lambda: mix(two, weights_dataset([1, 0], [0, 2], [0, 0.1], [1e300, 0])), ints(0, 10, 11, 1))
    failing = Dataset.range(4).map(fail_at(1)).map(lambda x: np.array([1.0, 0.0]))  # takes no element where it fails
    check_operator(lambda: mix([Dataset.range(9)] * 2, failing), [np.int64(0), ValueError("bad 1"), *ints(1, 2)])
    picks = picked(mix(endless(2), weights_dataset([0.9, 0.1], [0.3, 0.7]).repeat(), seed=1))
    assert_shares(picks[::2], [0.9, 0.1])
    assert_shares(picks[1::2], [0.3, 0.7])


@pytest.mark.parametrize("wrong", [[0, 0], [-1, 1], [np.nan, 1], [np.inf, 1]])
def test_wrong_weights_fail_in_their_place(wrong):
    two = [Dataset.range(4), Dataset.range(10, 14)]
    got = check_operator(lambda: mix(two, weights_dataset([1, 0], wrong, [0, 1]), seed=1))
    assert [got[0], got[2]] == [0, 10]
    assert isinstance(got[1], SpecError)
    assert "weights 1 must be a vector of 2 finite numbers that are at least 0 and not all 0, got" in str(got[1])


# Exact shares


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.one_of(st.integers(1, 50), st.floats(0.001, 1000), st.sampled_from([0.1, 0.3, 1 / 3, 1e-9, 1e12])),
        min_size=2,
        max_size=6,
    ),
    st.integers(1, 400),
)
def test_exact_shares_are_kept_to_within_one_element_at_every_prefix(weights, count):
    picks = picked(mix(endless(len(weights)), weights, exact=True), count)
    exact = [Fraction(repr(float(weight))) for weight in weights]
    for index, weight in enumerate(exact):
        share = weight / sum(exact)
        assert all(abs(got - (n + 1) * share) < 1 for n, got in enumerate(accumulate(map(int, picks == index))))


def test_exact_shares_draw_nothing_so_processes_agree_on_them_without_a_seed():
    def mixed(_):
        return mix([Dataset.range(4), Dataset.range(10, 14)], exact=True)

    dataset = Dataset.range(2).flat_map(mixed)
    shares = [list(dataset.shard_by_process(rank, 2, by="elements")) for rank in range(2)]
    assert shares == [ints(0, 1, 2, 3) * 2, ints(10, 11, 12, 13) * 2]


def test_exact_shares_are_counted_anew_after_the_end_of_one():
    sources = [Dataset.range(2), Dataset.range(10, 16), Dataset.range(20, 30)]
    got = check_operator(lambda: mix(sources, [2, 1, 1], exact=True))
    assert [int(x) for x in got] == [0, 10, 1, 20, *(i for k in range(1, 6) for i in (10 + k, 20 + k)), 26, 27, 28, 29]
    check_operator(lambda: mix(sources, [2, 1, 1], exact=True, stop_on_empty_dataset=True), got[:4])
