"""Tests that a refused state and going back within an epoch use up no order. test_resume.py resumes epochs."""

import pytest

from dataset import Dataset, StateError
from support.resuming import resealed


def ints(iterable):
    return [int(x) for x in iterable]


def shuffled():
    return Dataset.range(20).shuffle(20, seed=1)


def test_a_state_that_is_refused_and_going_back_within_an_epoch_use_up_no_order():
    fresh, dataset = shuffled(), shuffled()
    iterator = iter(dataset)
    state = iterator.state_dict()
    for bad in (resealed(state, operator={"x": 1}), {**state, "digest": "x"}, None):
        with pytest.raises(StateError):
            iterator.load_state_dict(bad)
        next(iterator)
        iterator.load_state_dict(state)
    assert [ints(iterator), ints(dataset), ints(dataset)] == [ints(fresh) for _ in range(3)]
