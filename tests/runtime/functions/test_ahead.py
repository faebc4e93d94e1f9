"""Tests that chains without observable side effects run in long steps, which changes only their cost."""

import numpy as np

from dataset import Dataset
from dataset.testing import assert_elements_equal, check_operator, outcomes
from support.pipelines import unoptimized


def chain(count=5000):
    return Dataset.range(count).map(lambda x: x * 2).map(lambda x: x + 1).filter(lambda x: x % 3 == 0)


def expected(count=5000):
    numbers = np.arange(count) * 2 + 1
    return list(numbers[numbers % 3 == 0])


def test_elements_one_by_one_and_in_batches():
    check_operator(chain, expected(), positions=4)
    for size in (1, 7, 1000):
        batched = chain().batch(size)
        assert_elements_equal(outcomes(iter(batched)), outcomes(iter(unoptimized(batched))))


def test_a_first_element_does_not_make_thousands():
    iterator = iter(Dataset.range(10**9).map(lambda x: x + 1))
    assert next(iterator) == 1
    assert "held" not in iterator.state_dict()["operator"]


def test_objects_with_operators_of_their_own_are_not_run_ahead():
    calls = []

    class Number:
        def __add__(self, other):
            calls.append(other)
            return other

    dataset = Dataset.from_generator(lambda: iter([Number()] * 9)).map(lambda x: x + 1)
    next(iter(dataset))
    assert len(calls) == 1
