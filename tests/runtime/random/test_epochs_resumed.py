"""Tests that a training loop with one iteration per epoch continues its sequence of shuffle orders after a resume.

test_resume.py compares the epoch after a resume for every op.
"""

import pytest

from dataset import Dataset, StateError
from support.resuming import resealed

EPOCHS = 4


def ints(iterable):
    return [int(x) for x in iterable]


def shuffled(seed=1):
    return Dataset.range(20).shuffle(20, seed=seed)


def interrupted(dataset, epoch, steps):
    """Return all epochs of one run, and the state after some steps of one of them."""
    found, states = [], []
    for _ in range(EPOCHS):
        with iter(dataset) as iterator:
            begun = [next(iterator) for _ in range(steps)]
            states.append(iterator.state_dict())
            found.append(ints([*begun, *iterator]))
    return found, states[epoch]


@pytest.mark.parametrize("refused", [True, False])
def test_a_state_that_is_refused_and_going_back_within_an_epoch_use_up_no_order(refused):
    expected, state = interrupted(shuffled(), 2, 5)
    dataset = shuffled()
    iterator = iter(dataset)
    if refused:
        for bad in (resealed(state, operator={"x": 1}), {**state, "digest": "x"}, None):
            with pytest.raises(StateError):
                iterator.load_state_dict(bad)
    else:
        state = iterator.state_dict()
        for _ in range(3):
            next(iterator)
            iterator.load_state_dict(state)
    assert [ints(iterator), ints(dataset), ints(dataset)] == expected[:3]
