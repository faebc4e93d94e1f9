"""Tests of shuffle against tf.data's.

The random numbers of the libraries differ, so the tests compare which passes have equal orders: [a b], [a a] and so on.
"""

import numpy as np
import pytest
from cases import ELEMENTS, SOURCES, failing
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


def new_iterators(lib, shuffled):
    dataset = shuffled(lib)
    return [order(dataset) for _ in range(4)]


def repeat_behind(lib, shuffled):
    return passes_of(shuffled(lib).repeat(4), 4)


def repeat_behind_and_new_iterators(lib, shuffled):
    dataset = shuffled(lib).repeat(2)
    return [one for _ in range(3) for one in passes_of(dataset, 2)]


def passes_of(dataset, count):
    iterator = iter(dataset)
    return [order(iterator) for _ in range(count)]


def open_at_the_same_time(lib, shuffled):
    dataset = shuffled(lib).repeat(2)
    first, second = iter(dataset), iter(dataset)
    return [order(second), order(first), order(first), order(second)]


def rebuilt(lib, shuffled):
    return [*new_iterators(lib, shuffled), *new_iterators(lib, shuffled)]


def rebuilt_and_repeated(lib, shuffled):
    return [*passes_of(shuffled(lib).repeat(), 3), *passes_of(shuffled(lib).repeat(), 3)]


def used_by_two_chains(lib, shuffled):
    dataset = shuffled(lib)
    one, other = dataset.map(lambda x: x), dataset.take(SIZE)
    return [order(one), order(other), order(one), order(other), order(dataset)]


def used_by_two_chains_that_repeat(lib, shuffled):
    dataset = shuffled(lib)
    return [*passes_of(dataset.repeat(2), 2), *passes_of(dataset.prefetch(1).repeat(2), 2)]


def concatenated_with_itself(lib, shuffled):
    dataset = shuffled(lib)
    return [one for _ in range(2) for one in passes_of(dataset.concatenate(dataset), 2)]


def zipped_with_itself(lib, shuffled):
    dataset = shuffled(lib)
    return list(zip(*order(lib.zip(dataset, dataset)), strict=True))


def behind_a_cache(lib, shuffled):
    return passes_of(shuffled(lib).cache().repeat(3), 3)


def in_a_flat_map(lib, shuffled):
    return passes_of(lib.range(3).flat_map(lambda x: shuffled(lib)), 3)


def with_a_global_seed(lib, shuffled):
    found = []
    for seed, count in ((5, 2), (5, 2), (6, 1)):
        lib.set_random_seed(seed)
        found += [one for _ in range(count) for one in new_iterators(lib, shuffled)[:2]]
    return found


def with_a_global_seed_set_behind(lib, shuffled):
    dataset = shuffled(lib)
    found = [order(dataset)]
    lib.set_random_seed(5)
    return [*found, order(dataset), *new_iterators(lib, shuffled)[:1]]


USES = [new_iterators, repeat_behind, repeat_behind_and_new_iterators, open_at_the_same_time, rebuilt]
USES += [rebuilt_and_repeated, used_by_two_chains, used_by_two_chains_that_repeat, concatenated_with_itself]
USES += [zipped_with_itself, behind_a_cache, in_a_flat_map, with_a_global_seed, with_a_global_seed_set_behind]

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


def name_of(value):
    return getattr(value, "__name__", value)


@pytest.mark.parametrize(("arguments", "use"), diagonals(2, SHUFFLES, USES), ids=name_of)
def test_which_orders_are_equal(arguments, use):
    arguments = {"buffer_size": SIZE, **SHUFFLES[arguments]}

    def shuffled(lib):
        return lib.range(SIZE).shuffle(**arguments)

    def used(lib):
        orders = use(lib, shuffled)
        assert all(sorted(one[:SIZE]) == list(range(SIZE)) for one in orders)
        return pattern(orders)

    ours, theirs = in_both(used)
    assert ours == theirs


@pytest.mark.parametrize("use", USES, ids=name_of)
def test_which_orders_of_two_shuffles_are_equal(use):
    def shuffled(lib):
        return lib.range(SIZE).shuffle(SIZE, seed=1).shuffle(7, seed=2, reshuffle_each_iteration=False)

    ours, theirs = in_both(lambda lib: pattern(use(lib, shuffled)))
    assert ours == theirs


def test_which_orders_are_equal_for_different_arguments():
    seeds = [{"seed": 1}, {"seed": 2}, {"seed": 1}, {"seed": 2**40}, {"seed": np.int64(1)}, {"seed": 1, "name": "x"}]
    ours, theirs = in_both(
        lambda lib: pattern([order(lib.range(SIZE).shuffle(SIZE, **arguments)) for arguments in seeds])
    )
    assert ours == theirs


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
        orders = [order(dataset) for _ in range(200)]
        assert all(number < place + size for one in orders for place, number in enumerate(one))
        # With this seed, every element of a full buffer is the first one in some pass.
        assert {one[0] for one in orders} == set(range(min(size, SIZE)))

    in_both(check)


@pytest.mark.parametrize("size", [1, 3, 100, -2])
@pytest.mark.parametrize("source", [source for source in SOURCES if source != "endless"])
def test_sources(source, size):
    def in_order(lib):
        dataset = SOURCES[source](lib).shuffle(size, seed=1)
        found = outcomes(iter(dataset), int, 100)
        return int(dataset.cardinality()), sorted(x for x in found if x != FAILED), found.count(FAILED)

    ours, theirs = in_both(in_order)
    assert ours == theirs


test_a_buffer_of_one_changes_nothing = same(
    lambda lib, bad: failing(lib, *bad).shuffle(1), [(), (0,), (3,), (6,), (0, 1, 5, 6)]
)
test_nor_of_endless_data = same(lambda lib: lib.range(3).repeat().shuffle(1), limit=12)


@pytest.mark.parametrize("bad", [(0,), (3,), (6,), (0, 1), (5, 6), (0, 1, 2, 4, 5, 6)], ids=str)
@pytest.mark.parametrize("size", [2, 3, 7, 20])
def test_places_of_failures(size, bad):
    """A failure is returned when it occurs: while the buffer is filled or refilled."""

    def places(lib):
        found = outcomes(iter(failing(lib, *bad).shuffle(size, seed=1)), int, 100)
        return [x == FAILED for x in found]

    ours, theirs = in_both(places)
    assert ours == theirs


test_structures = same(lambda lib, element: lib.from_tensors(element(lib)).repeat(3).shuffle(2, seed=1), ELEMENTS)
WRONG_TYPES = [{"buffer_size": 2.0}, {"buffer_size": "2"}, {"seed": 1.5}, {"seed": "1"}]
WRONG_TYPES += [{"reshuffle_each_iteration": "no"}]
test_what_is_refused = refused(
    {ValueError: [{"buffer_size": size} for size in (0, -1, -3)], TypeError: WRONG_TYPES},
    lambda lib, arguments: lib.range(5).shuffle(**{"buffer_size": 3, **arguments}),
)
