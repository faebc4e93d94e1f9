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


def resumed(dataset, state):
    iterator = iter(dataset)
    iterator.load_state_dict(state)
    return iterator


def test_a_resumed_run_is_resumed_as_the_first_was():
    expected, state = interrupted(shuffled(None), 1, 7)
    for _ in range(3):
        iterator = resumed(shuffled(None), state)
        state = iterator.state_dict()
    assert ints(iterator) == expected[1][7:]
    dataset = shuffled(None)
    assert ints(resumed(dataset, iterator.state_dict())) == []  # after the end
    assert [ints(dataset), ints(dataset)] == expected[2:]


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


def test_two_iterators_beside_each_other_keep_their_own_orders():
    expected, state = interrupted(shuffled(), 1, 7)
    dataset = shuffled()
    first, second = iter(dataset), iter(dataset)
    begun = int(next(second))
    first.load_state_dict(state)
    assert [begun, *ints(second)] == expected[1]
    assert ints(first) == expected[1][7:]
    assert ints(dataset) == expected[2]
