"""Tests that chains without observable side effects run in long steps, which changes only their cost."""

import numpy as np

from dataset import Dataset
from dataset.testing import check_operator


def test_elements_one_by_one():
    numbers = np.arange(5000) * 2 + 1
    chain = lambda: Dataset.range(5000).map(lambda x: x * 2).map(lambda x: x + 1).filter(lambda x: x % 3 == 0)
    check_operator(chain, list(numbers[numbers % 3 == 0]), positions=4)


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
