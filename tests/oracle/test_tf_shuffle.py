"""Tests of shuffle against tf.data's.

The random numbers of the libraries differ, so the tests compare which passes have equal orders: [a b], [a a] and so on.
"""

import numpy as np
import pytest
from cases import ELEMENTS, FINITE
from compare import FAILED, in_both, outcomes, refused, same

from support.combinations import diagonals

SIZE = 30  # this many elements do not have the same order twice by chance


def order(elements, count=SIZE):
    """Return the next ``count`` elements, as a tuple of ints or of tuples of ints."""
    some = [element for _, element in zip(range(count), elements, strict=False)]
    return tuple(tuple(map(int, element)) if isinstance(element, tuple) else int(element) for element in some)


def pattern(passes):
    """Return for each pass the number of the first pass with the same order."""
    return [passes.index(one) for one in passes]


def passes_of(dataset, count):
    """Return the orders of passes that follow one another."""
    iterator = iter(dataset)
    return [order(iterator) for _ in range(count)]


def several(datasets, count):
    return [one for dataset in datasets for one in passes_of(dataset, count)]


def new_iterators(dataset, count=4):
    return [order(dataset) for _ in range(count)]


def open_at_the_same_time(dataset):
    first, second = iter(dataset), iter(dataset)
    return [order(second), order(first), order(first), order(second)]


def with_a_global_seed(lib, shuffled):
    found = []
    for seed, count in ((5, 2), (5, 2), (6, 1)):
        lib.set_random_seed(seed)
        found += [one for _ in range(count) for one in new_iterators(shuffled(lib), 2)]
    return found


def with_a_global_seed_set_behind(lib, shuffled):
    dataset = shuffled(lib)
    found = [order(dataset)]
    lib.set_random_seed(5)
    return [*found, order(dataset), order(shuffled(lib))]


def in_two_chains(dataset):
    one, other = dataset.map(lambda x: x), dataset.take(SIZE)
    return [order(one), order(other), order(one), order(other), order(dataset)]


def two_that_repeat(dataset):
    return several([dataset.repeat(2), dataset.prefetch(1).repeat(2)], 2)


USES = {
    "new iterators": lambda lib, shuffled: new_iterators(shuffled(lib)),
    "repeat": lambda lib, shuffled: passes_of(shuffled(lib).repeat(4), 4),
    "repeat and new iterators": lambda lib, shuffled: several([shuffled(lib).repeat(2)] * 3, 2),
    "open at the same time": lambda lib, shuffled: open_at_the_same_time(shuffled(lib).repeat(2)),
    "rebuilt": lambda lib, shuffled: new_iterators(shuffled(lib)) + new_iterators(shuffled(lib)),
    "rebuilt and repeated": lambda lib, shuffled: several([shuffled(lib).repeat() for _ in range(2)], 3),
    "two chains": lambda lib, shuffled: in_two_chains(shuffled(lib)),
    "two chains that repeat": lambda lib, shuffled: two_that_repeat(shuffled(lib)),
    "concatenated with itself": lambda lib, shuffled: several([shuffled(lib).apply(lambda d: d.concatenate(d))] * 2, 2),
    "zipped with itself": lambda lib, shuffled: list(zip(*order(lib.zip(*[shuffled(lib)] * 2)), strict=True)),
    "behind a cache": lambda lib, shuffled: passes_of(shuffled(lib).cache().repeat(3), 3),
    "in a flat_map": lambda lib, shuffled: passes_of(lib.range(3).flat_map(lambda x: shuffled(lib)), 3),
    "with a global seed": with_a_global_seed,
    "with a global seed set behind": with_a_global_seed_set_behind,
}

SHUFFLES = {
    "no seed": {},
    "a seed": {"seed": 7},
    "no seed, one order": {"reshuffle_each_iteration": False},
    "a seed, one order": {"seed": 7, "reshuffle_each_iteration": False},
    "seed 0": {"seed": 0},
    "seed -1": {"seed": -1},
    "a small buffer": {"seed": 7, "buffer_size": 5},
    "all": {"seed": 7, "buffer_size": -2},
    "reshuffled": {"seed": 7, "reshuffle_each_iteration": True},
    "reshuffled by default": {"seed": 7, "reshuffle_each_iteration": None},
}


def assert_same_patterns(use, shuffled):
    def used(lib):
        orders = use(lib, shuffled)
        assert all(sorted(one[:SIZE]) == list(range(SIZE)) for one in orders)
        return pattern(orders)

    ours, theirs = in_both(used)
    assert ours == theirs


@pytest.mark.parametrize(("arguments", "use"), diagonals(2, SHUFFLES, USES))
def test_which_orders_are_equal(arguments, use):
    arguments = {"buffer_size": SIZE, **SHUFFLES[arguments]}
    assert_same_patterns(USES[use], lambda lib: lib.range(SIZE).shuffle(**arguments))


@pytest.mark.parametrize("use", USES)
def test_which_orders_of_two_shuffles_are_equal(use):
    twice = lambda lib: lib.range(SIZE).shuffle(SIZE, seed=1).shuffle(7, seed=2, reshuffle_each_iteration=False)
    assert_same_patterns(USES[use], twice)


def test_which_orders_are_equal_for_different_arguments():
    seeds = [{"seed": 1}, {"seed": 2}, {"seed": 1}, {"seed": 2**40}, {"seed": np.int64(1)}, {"seed": 1, "name": "x"}]
    use = lambda lib, shuffled: [order(shuffled(lib).shuffle(SIZE, **arguments)) for arguments in seeds]
    assert_same_patterns(use, lambda lib: lib.range(SIZE))


@pytest.mark.parametrize("size", [1, 2, 5, SIZE - 1, SIZE, 100, -2])
def test_repeat_before(size):
    def passes(lib):
        dataset = lib.range(SIZE).repeat(3).shuffle(size, seed=3)
        found = [order(dataset, 3 * SIZE), order(dataset, 3 * SIZE)]
        return pattern(found), sorted(found[0])

    ours, theirs = in_both(passes)
    assert ours == theirs


@pytest.mark.parametrize("size", [1, 2, 5, SIZE - 1, SIZE, 100])
def test_no_element_comes_earlier_than_the_buffer_allows(size):
    """The k-th element was drawn when ``size + k`` elements had been read."""

    def check(lib):
        dataset = lib.range(SIZE).shuffle(size, seed=7)
        orders = new_iterators(dataset, 200)
        assert all(number < place + size for one in orders for place, number in enumerate(one))
        # With this seed, every element of a full buffer is the first one in some pass.
        assert {one[0] for one in orders} == set(range(min(size, SIZE)))

    in_both(check)


def assert_same_elements_and_places_of_failures(build):
    """A failure is returned when it occurs: while the buffer is filled or refilled."""

    def observed(lib):
        dataset = build(lib)
        found = outcomes(iter(dataset), int, 100)
        return int(dataset.cardinality()), [x == FAILED for x in found], sorted(x for x in found if x != FAILED)

    ours, theirs = in_both(observed)
    assert ours == theirs


test_sources = same(
    "source.shuffle(size, seed=1)",
    source=FINITE,
    size=[1, 3, 100, -2],
    by=assert_same_elements_and_places_of_failures,
)
test_places_of_failures = same(
    "failing(*bad).shuffle(size, seed=1)",
    bad=[(0,), (3,), (6,), (0, 1), (5, 6), (0, 1, 2, 4, 5, 6)],
    size=[2, 3, 7, 20],
    by=assert_same_elements_and_places_of_failures,
)
test_a_buffer_of_one_changes_nothing = same("failing(*bad).shuffle(1)", bad=[(), (0,), (3,), (6,), (0, 1, 5, 6)])
test_nor_of_endless_data = same("range(3).repeat().shuffle(1)", limit=12)
test_structures = same("from_tensors(element).repeat(3).shuffle(2, seed=1)", element=ELEMENTS)
WRONG_TYPES = [{"buffer_size": 2.0}, {"buffer_size": "2"}, {"seed": 1.5}, {"seed": "1"}]
WRONG_TYPES += [{"reshuffle_each_iteration": "no"}]
test_what_is_refused = refused(
    {ValueError: [{"buffer_size": size} for size in (0, -1, -3)], TypeError: WRONG_TYPES},
    "range(5).shuffle(**{'buffer_size': 3, **case})",
)
