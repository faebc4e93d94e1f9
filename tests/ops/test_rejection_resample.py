"""rejection_resample: classes in wanted shares."""

import numpy as np
import pytest

from dataset import Dataset, SpecError
from dataset.testing import check_operator, outcomes
from support.combinations import diagonals


def labelled_data(shares, count=3000, seed=0):
    classes = np.random.default_rng(seed).choice(len(shares), size=count, p=shares)
    return Dataset.from_tensor_slices((classes, np.arange(count)))


def resampled(shares, target, *, given=True, seed=1, count=3000):
    data = labelled_data(shares, count)
    return data.rejection_resample(lambda label, _: label, target, shares if given else None, seed)


def shares_of(dataset, classes):
    labels = np.array([label for label, _ in dataset])
    return np.bincount(labels, minlength=classes) / len(labels)


CASES = [
    ([0.6, 0.4], [0.5, 0.5]),
    ([0.5, 0.5], [0.05, 0.95]),
    ([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]),
    ([0.7, 0.3, 0.0], [0.3, 0.7, 0.0]),
]


@pytest.mark.parametrize(("case", "given"), diagonals(2, CASES, [True, False]), ids=str)
def test_reaches_the_wanted_shares(case, given):
    shares, target = case
    got = shares_of(resampled(shares, target, given=given), len(target))
    assert abs(got - target).max() < 0.05  # two passes over 3000 elements


def test_what_comes_out_are_elements_with_their_class_in_their_order():
    dataset = resampled([0.5, 0.5], [0.3, 0.7], count=400)
    data = dict(enumerate(labelled_data([0.5, 0.5], 400)))
    numbers = []
    for label, (same, number) in dataset:
        assert label == same == data[int(number)][0]
        numbers.append(int(number))
    # Two passes side by side, each in order: any element comes at most twice.
    assert max(np.bincount(numbers)) == 2


@pytest.mark.parametrize(("target", "given"), diagonals(2, [[0.3, 0.7], [0.0, 1.0], [0.5, 0.5]], [True, False]))
def test_keeps_the_whole_contract(target, given):
    check_operator(lambda: resampled([0.5, 0.5], target, given=given, count=30), positions=10)


def test_the_function_is_called_once_per_pass():
    calls = []

    def label(x):
        calls.append(int(x))
        return x % 2

    n = len(list(Dataset.range(100).rejection_resample(label, [0.5, 0.5], [0.5, 0.5])))
    assert calls == list(range(n))
    calls.clear()
    iterator = iter(Dataset.range(100).rejection_resample(label, [0.3, 0.7], [0.5, 0.5], seed=1))
    assert calls == []
    next(iterator)
    assert 1 <= len(calls) < 10


@pytest.mark.parametrize("target", [[0.2, 0.8], [0.5, 0.5]])
@pytest.mark.parametrize(
    ("label", "error", "words"),
    [
        (lambda x: 2, ValueError, "a class from 0 to 1, an index of target_dist, got 2"),
        (lambda x: 0.0, SpecError, "class_func must return an int scalar, got 0.0 of type float"),
        (lambda x: None, SpecError, "int scalar"),
    ],
)
def test_what_is_no_class_fails_in_its_place(target, label, error, words):
    got = outcomes(iter(Dataset.range(3).rejection_resample(label, target, [0.5, 0.5], seed=1)))
    assert got
    assert all(isinstance(x, error) for x in got)
    assert words in str(got[0])
    assert "in rejection_resample(" in got[0].__notes__[0]


@pytest.mark.parametrize("initial", [None, [0.9, 0.1]])
def test_empty_data_give_nothing_and_endless_data_have_no_end(initial):
    check_operator(lambda: Dataset.range(0).rejection_resample(lambda x: 0, [0.2, 0.8], initial), [])
    endless = labelled_data([0.9, 0.1]).repeat()
    dataset = endless.rejection_resample(lambda label, _: label, [0.5, 0.5], initial, seed=1)
    assert abs(shares_of(dataset.take(800), 2)[0] - 0.5) < 0.08
