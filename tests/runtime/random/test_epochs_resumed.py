"""Tests that a training loop with one iteration per epoch continues its sequence of shuffle orders after a resume."""

import pytest

from dataset import Dataset, StateError
from dataset.testing import outcomes
from support.resuming import resealed

EPOCHS = 4


def ints(iterable):
    return [int(x) for x in iterable]


SEEDED = {
    "shuffle": lambda: Dataset.range(20).shuffle(20, seed=1),
    "batched": lambda: Dataset.range(20).shuffle(20, seed=1).map(lambda x: x + 1).prefetch(2),
    "repeated": lambda: Dataset.range(10).shuffle(10, seed=1).repeat(2),
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
    "shuffle": lambda: Dataset.range(20).shuffle(20),
    "fixed": lambda: Dataset.range(20).shuffle(20, reshuffle_each_iteration=False),
    "two": lambda: Dataset.zip(Dataset.range(20).shuffle(20), Dataset.range(20).shuffle(20)).map(
        lambda a, b: 100 * a + b
    ),
}
PLACES = [(0, 0), (0, 1), (0, 20), (1, 0), (1, 7), (2, 19), (2, 20)]


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


@pytest.mark.parametrize(("epoch", "steps"), PLACES)
@pytest.mark.parametrize("name", [*SEEDED, *(f"unseeded {name}" for name in UNSEEDED)])
def test_the_epochs_after_a_resume_are_those_of_the_run_that_was_not_interrupted(name, epoch, steps):
    make = UNSEEDED[name.removeprefix("unseeded ")] if name.startswith("unseeded") else SEEDED[name]
    expected, state = interrupted(make, epoch, steps)
    dataset = make()  # simulates another process
    for number in range(epoch, EPOCHS):
        iterator = iter(dataset)
        if number == epoch:
            iterator.load_state_dict(state)
        assert ints(iterator) == expected[number][steps if number == epoch else 0 :]


def test_a_resumed_run_is_resumed_as_the_first_was():
    make = UNSEEDED["shuffle"]
    expected, state = interrupted(make, 1, 7)
    for _ in range(3):
        iterator = iter(make())
        iterator.load_state_dict(state)
        state = iterator.state_dict()
    dataset = make()
    iterator = iter(dataset)
    iterator.load_state_dict(state)
    assert ints(iterator) == expected[1][7:]
    state = iterator.state_dict()  # after the end
    dataset = make()
    iterator = iter(dataset)
    iterator.load_state_dict(state)
    assert ints(iterator) == []
    assert [ints(dataset), ints(dataset)] == expected[2:]


def test_the_state_that_is_loaded_last_counts():
    make = SEEDED["shuffle"]
    expected, early = interrupted(make, 0, 5)
    _, late = interrupted(make, 2, 5)
    dataset = make()
    iterator = iter(dataset)
    for state in (late, early, late, early):
        iterator.load_state_dict(state)
    assert ints(iterator) == expected[0][5:]
    assert ints(dataset) == expected[1]


def test_a_state_that_is_refused_changes_no_order():
    make = SEEDED["shuffle"]
    expected, state = interrupted(make, 2, 5)
    wrong = resealed(state, operator={"x": 1})
    dataset = make()
    iterator = iter(dataset)
    for bad in (wrong, {**state, "digest": "x"}, None):
        with pytest.raises(StateError):
            iterator.load_state_dict(bad)
    assert [ints(iterator), ints(dataset), ints(dataset)] == expected[:3]


def test_going_back_within_an_epoch_uses_up_no_order():
    make = SEEDED["shuffle"]
    expected, _ = interrupted(make, 0, 5)
    dataset = make()
    iterator = iter(dataset)
    state = iterator.state_dict()
    for _ in range(3):
        next(iterator)
        iterator.load_state_dict(state)
    assert [ints(iterator), ints(dataset), ints(dataset)] == expected[:3]


def test_no_order_comes_twice_in_a_process_that_goes_back():
    make = SEEDED["shuffle"]
    expected, state = interrupted(make, 0, 5)
    dataset = make()
    first, second = iter(dataset), iter(dataset)
    assert [ints(first), ints(second)] == expected[:2]
    first.load_state_dict(state)
    assert ints(first) == expected[0][5:]
    assert ints(dataset) == expected[2]


def test_two_iterators_beside_each_other_keep_their_own_orders():
    make = SEEDED["shuffle"]
    expected, state = interrupted(make, 1, 7)
    dataset = make()
    first, second = iter(dataset), iter(dataset)
    found = [int(next(second))]
    first.load_state_dict(state)
    found += ints(second)
    assert found == expected[1]
    assert ints(first) == expected[1][7:]
    assert ints(dataset) == expected[2]


def test_other_datasets_are_not_touched():
    make = SEEDED["shuffle"]
    expected, state = interrupted(make, 2, 7)
    dataset, other = make(), make()
    iter(dataset).load_state_dict(state)
    assert ints(other) == expected[0]


def test_a_look_at_the_spec_uses_up_nothing():
    make = UNSEEDED["two"]
    expected, state = interrupted(make, 1, 7)
    dataset = make()
    assert dataset.element_spec
    iterator = iter(dataset)
    iterator.load_state_dict(state)
    assert dataset.element_spec
    assert [ints(iterator), ints(dataset)] == [expected[1][7:], expected[2]]
    assert len(outcomes(iter(dataset))) == 20
