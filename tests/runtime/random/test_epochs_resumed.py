"""Tests that a training loop with one iteration per epoch continues its sequence of shuffle orders after a resume."""

import pytest

from dataset import Dataset, StateError
from support.resuming import resealed

EPOCHS = 4


def ints(iterable):
    return [int(x) for x in iterable]


SEEDED = {
    "shuffle": lambda: Dataset.range(20).shuffle(20, seed=1),
    "repeated": lambda: Dataset.range(10).shuffle(10, seed=1).repeat(2).prefetch(2),
    "twice": lambda: Dataset.range(20).shuffle(20, seed=1).shuffle(20, seed=2),
    "cached": lambda: Dataset.range(20).map(lambda x: x).cache().shuffle(20, seed=1),
    "fixed": lambda: Dataset.range(20).shuffle(20, seed=1, reshuffle_each_iteration=False),
    "random_map": lambda: Dataset.range(20).random_map(lambda rng, x: rng.integers(10**6) + x, seed=1),
    "mixed": lambda: Dataset.sample_from_datasets(
        [Dataset.range(20).shuffle(9, seed=3), Dataset.range(20)], seed=1
    ).take(20),
    "none": lambda: Dataset.range(20),
}
UNSEEDED = {
    "unseeded shuffle": lambda: Dataset.range(20).shuffle(20),
    "unseeded and fixed": lambda: Dataset.range(20).shuffle(20, reshuffle_each_iteration=False),
    "unseeded and two": lambda: Dataset.zip(Dataset.range(20).shuffle(20), Dataset.range(20).shuffle(20)).map(
        lambda a, b: 100 * a + b
    ),
}
PLACES = [(0, 0), (0, 1), (0, 20), (1, 7), (2, 20)]


def interrupted(make, epoch, steps):
    """Return all epochs of one run, and the state after some steps of one of them."""
    dataset, found, state = make(), [], None
    for number in range(EPOCHS):
        iterator = iter(dataset)
        found.append([])
        if (number, steps) == (epoch, 0):
            state = iterator.state_dict()
        for element in iterator:
            found[-1].append(int(element))
            if (number, len(found[-1])) == (epoch, steps):
                if steps == 20:
                    assert next(iterator, None) is None
                state = iterator.state_dict()
    return found, state


def resumed(dataset, state):
    iterator = iter(dataset)
    iterator.load_state_dict(state)
    return iterator


@pytest.mark.parametrize("name", [*SEEDED, *UNSEEDED])
def test_the_epochs_after_a_resume_are_those_of_the_run_that_was_not_interrupted(name):
    make = (SEEDED | UNSEEDED)[name]
    for epoch, steps in PLACES:
        expected, state = interrupted(make, epoch, steps)
        dataset = make()  # simulates another process
        assert ints(resumed(dataset, state)) == expected[epoch][steps:]
        assert [ints(dataset) for _ in range(epoch + 1, EPOCHS)] == expected[epoch + 1 :]


def test_a_resumed_run_is_resumed_as_the_first_was():
    make = UNSEEDED["unseeded shuffle"]
    expected, state = interrupted(make, 1, 7)
    for _ in range(3):
        iterator = resumed(make(), state)
        state = iterator.state_dict()
    assert ints(iterator) == expected[1][7:]
    dataset = make()
    assert ints(resumed(dataset, iterator.state_dict())) == []  # after the end
    assert [ints(dataset), ints(dataset)] == expected[2:]


@pytest.mark.parametrize("refused", [True, False])
def test_a_state_that_is_refused_and_going_back_within_an_epoch_use_up_no_order(refused):
    make = SEEDED["shuffle"]
    expected, state = interrupted(make, 2, 5)
    dataset = make()
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
    make = SEEDED["shuffle"]
    expected, state = interrupted(make, 1, 7)
    dataset = make()
    first, second = iter(dataset), iter(dataset)
    begun = int(next(second))
    first.load_state_dict(state)
    assert [begun, *ints(second)] == expected[1]
    assert ints(first) == expected[1][7:]
    assert ints(dataset) == expected[2]
