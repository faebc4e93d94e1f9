"""Tests of prefetching to devices: how far it reads ahead, positions of exceptions, states, released references."""

import contextlib
import itertools
import json
import pickle
import threading
import weakref

import numpy as np
import pytest

from dataset import ClosedError, Dataset, StateError
from dataset.dataset import device_iterator
from dataset.runtime.iteration.iterator import DatasetIterator
from dataset.testing import no_leaks, outcomes
from support.op_cases import fail_at
from support.pipelines import Pair, Record
from support.resuming import advanced

COUNTS = [0, 1, 2, 5]


def tenfold(element):
    """Convert an element."""
    return element * 10, element


def opened(dataset, count, convert=tenfold):
    return device_iterator(dataset, convert, count, DatasetIterator)


def results(iterator):
    """Return numbers, and the types of exceptions, in order."""
    return [type(found) if isinstance(found, Exception) else int(found) for found in outcomes(iterator)]


@pytest.mark.parametrize("count", COUNTS)
def test_an_exception_of_the_input_or_the_conversion_takes_the_place_of_its_element(count):
    def convert(x):
        return fail_at(1)(x) * 10, x

    iterator = opened(Dataset.range(6).map(fail_at(0, 3, 4)), count, convert)
    assert results(iterator) == [ValueError, ValueError, 20, ValueError, ValueError, 50]
    assert results(iterator) == []


@pytest.mark.parametrize("count", COUNTS)
def test_it_requests_as_many_elements_more_as_its_count(count):
    taken = []
    dataset = Dataset.from_generator(lambda: (taken.append(number) or number for number in range(100)))
    iterator = opened(dataset, count)
    assert not taken
    for given in range(1, 8):
        next(iterator)
        assert len(taken) == given + count


def test_an_interrupt_comes_out_at_once_and_what_was_read_ahead_stays():
    pressed, dataset = [], Dataset.range(8)

    def press(x):
        if x == 2 and not pressed:
            pressed.append(x)
            raise KeyboardInterrupt
        return x * 10, x

    iterator = opened(dataset, 2, press)
    with pytest.raises(KeyboardInterrupt):
        next(iterator)
    # The element whose conversion was interrupted is lost, and not counted for another.
    assert [int(next(iterator)) for _ in range(3)] == [0, 10, 30]
    after = resumed(dataset, 2, iterator.state_dict())
    assert results(after) == results(iterator) == [40, 50, 60, 70]


def resumed(dataset, count, state, convert=tenfold):
    iterator = opened(dataset, count, convert)
    iterator.load_state_dict(state)
    return iterator


def shown(found):
    return list(map(str, found))


@pytest.mark.parametrize("make", [Pair, Record, lambda x, y: {"b": x, "a": (y, None)}])
def test_what_is_read_ahead_is_saved_whatever_its_structure(make):
    def same(element):
        return element, element

    dataset = Dataset.range(4).map(lambda i: make(np.full((2, 3), i, np.float32), i))
    iterator = opened(dataset, 2, same)
    next(iterator)
    for state in (iterator.state_dict(), by_value(iterator).state_dict()):
        left = list(resumed(dataset, 2, state, same))
        assert [(type(one), repr(one)) for one in left] == [(type(one), repr(one)) for one in list(dataset)[1:]]


def test_a_state_that_does_not_fit_is_refused_and_changes_nothing():
    iterator = opened(Dataset.range(5), 1)
    next(iterator)
    good = iterator.state_dict()
    other = opened(Dataset.range(5).batch(2), 1, lambda x: (x, x)).state_dict()
    moved = {**good, "operator": {**good["operator"], "given": [[0, 3, 0]]}}
    bad = [None, {}, iter(Dataset.range(5)).state_dict(), other, {**good, "version": 9}, moved]
    for state in bad:
        with pytest.raises(StateError):
            iterator.load_state_dict(state)
    assert results(iterator) == [10, 20, 30, 40]


def test_a_closed_iterator_says_so_whatever_was_read_ahead():
    iterator = opened(Dataset.range(5), 2)
    next(iterator)
    iterator.close()
    iterator.close()
    with no_leaks(), opened(Dataset.range(100).map(lambda x: x + 1).prefetch(3), 2) as left:
        next(left)
    for call in (lambda: next(iterator), iterator.state_dict, lambda: next(iterator), lambda: next(left)):
        with pytest.raises(ClosedError):
            call()


@pytest.mark.parametrize("bad", [(), (1,), (0, 1, 2, 3)])
@pytest.mark.usefixtures("no_collector")
def test_dropping_it_ends_the_threads_without_the_garbage_collector(bad):
    """A buffered exception refers to frames; they must not refer to the iterator."""
    with no_leaks():
        before = set(threading.enumerate())
        iterator = opened(Dataset.range(100).map(fail_at(*bad)).prefetch(2), 2)
        dropped = weakref.ref(iterator)
        with contextlib.suppress(ValueError):
            next(iterator)
        assert set(threading.enumerate()) - before
        del iterator
        assert dropped() is None


def by_value(iterator):
    """As for an input without a deterministic order."""
    iterator._root._context.input_is_replayable = False
    return iterator


@pytest.mark.parametrize("values", [(False,), (True,), (True, False)], ids=["by position", "by value", "in turn"])
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("step", [0, 1, 3])
def test_several_resumes_in_a_row_continue_exactly_also_with_other_counts(count, values, step):
    dataset = Dataset.range(20).shuffle(8, seed=2, reshuffle_each_iteration=False).map(fail_at(3, 4, 11)).prefetch(2)
    expected = shown(outcomes(opened(dataset, count)))
    iterator, found = opened(dataset, count), []
    for number, value in zip(range(8), itertools.cycle(values), strict=False):
        if value:
            by_value(iterator)
        state = iterator.state_dict()
        assert json.dumps(state, default=lambda value: value.tolist())  # plain data
        iterator.close()
        iterator = resumed(dataset, COUNTS[(COUNTS.index(count) + number) % 4], pickle.loads(pickle.dumps(state)))
        found += shown(advanced(iterator, step))
    assert found + shown(outcomes(iterator)) == expected
    assert outcomes(resumed(dataset, count, iterator.state_dict())) == []


def test_a_state_holds_no_element_where_the_input_repeats_itself():
    dataset = Dataset.range(20).map(lambda x: np.full(10_000, x))
    iterator = opened(dataset, 5, lambda x: (x, x))
    next(iterator)
    by_place = iterator.state_dict()
    assert "held" not in by_place["operator"]
    assert len(pickle.dumps(by_place)) < 2000
    assert len(by_value(iterator).state_dict()["operator"]["held"]["items"]) == 5


def test_elements_that_no_state_can_hold_are_recomputed():
    def number(x):
        return x["number"], x

    dataset = Dataset.range(6).map(lambda x: {"x": object(), "number": x})
    iterator = opened(dataset, 1, number)
    next(iterator)
    assert results(resumed(dataset, 1, iterator.state_dict(), number)) == [1, 2, 3, 4, 5]
    with pytest.raises(StateError):
        by_value(iterator).state_dict()
