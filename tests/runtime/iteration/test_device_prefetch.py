"""Tests of prefetching to devices: how far it reads ahead, positions of exceptions, states, released references."""

import collections
import dataclasses
import gc
import json
import pickle
import threading
import weakref

import numpy as np
import pytest

from dataset import ClosedError, Dataset, StateError
from dataset.dataset import device_iterator
from dataset.runtime.iteration.iterator import DatasetIterator
from dataset.testing import no_leaks

COUNTS = [0, 1, 2, 5]


class BadNumberError(Exception):
    """The error that the tests raise."""


def tenfold(element):
    """Convert an element."""
    return element * 10, element


def opened(dataset, count, convert=tenfold):
    return device_iterator(dataset, convert, count, DatasetIterator)


def fail_at(*bad):
    def check(x):
        if x in bad:
            raise BadNumberError(int(x))
        return x

    return check


def results(iterator):
    """Return numbers, and the types of exceptions, in order."""
    found = []
    while True:
        try:
            found.append(int(next(iterator)))
        except StopIteration:
            return found
        except Exception as error:
            found.append(type(error))


@pytest.mark.parametrize("count", COUNTS)
def test_it_gives_what_the_conversion_gives(count):
    assert results(opened(Dataset.range(4), count)) == [0, 10, 20, 30]


@pytest.mark.parametrize("count", COUNTS)
def test_it_asks_for_as_many_elements_more_as_it_was_told(count):
    taken = []

    def numbers():
        for number in range(100):
            taken.append(number)
            yield number

    iterator = opened(Dataset.from_generator(numbers), count)
    assert not taken
    for given in range(1, 8):
        next(iterator)
        assert len(taken) == given + count


@pytest.mark.parametrize("count", COUNTS)
def test_after_the_end_it_stays_at_the_end(count):
    iterator = opened(Dataset.range(2), count)
    assert results(iterator) == [0, 10]
    assert results(iterator) == []


@pytest.mark.parametrize("count", COUNTS)
def test_an_exception_takes_the_place_of_its_element(count):
    iterator = opened(Dataset.range(5).map(fail_at(0, 2, 3)), count)
    assert results(iterator) == [BadNumberError, 10, BadNumberError, BadNumberError, 40]


@pytest.mark.parametrize("count", COUNTS)
def test_so_does_one_of_the_conversion(count):
    def convert(x):
        return fail_at(1)(x) * 10, x

    assert results(opened(Dataset.range(3), count, convert)) == [0, BadNumberError, 20]


def test_an_exception_that_waited_still_says_where_it_was_raised():
    iterator = opened(Dataset.range(2).map(fail_at(1)), 1)
    next(iterator)
    with pytest.raises(BadNumberError) as caught:
        next(iterator)
    assert caught.traceback[-1].name == "check"
    assert any("element 1" in note for note in caught.value.__notes__)


def test_an_interrupt_comes_out_at_once_and_what_was_read_ahead_stays():
    pressed = []

    def press(x):
        if x == 2 and not pressed:
            pressed.append(x)
            raise KeyboardInterrupt
        return x * 10, x

    iterator = opened(Dataset.range(4), 2, press)
    with pytest.raises(KeyboardInterrupt):
        next(iterator)
    assert results(iterator) == [0, 10, 30]  # without the element whose conversion was interrupted


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("position", [0, 1, 3, 6])
def test_a_state_belongs_to_the_element_handed_out_last(count, position):
    dataset = Dataset.range(6).shuffle(4, seed=3).map(fail_at(4)).prefetch(2)
    iterator = opened(dataset, count)
    for _ in range(position):
        outcomes_of_one(iterator)
    state = iterator.state_dict()
    expected = outcomes_left(iterator)
    for other in COUNTS:
        resumed = opened(dataset, other)
        resumed.load_state_dict(state)
        assert outcomes_left(resumed) == expected


def outcomes_of_one(iterator):
    try:
        return int(next(iterator))
    except StopIteration:
        return None
    except Exception as error:
        return str(error)[-1:]  # a user-defined type is restored from a state as text


def outcomes_left(iterator):
    found = []
    while (one := outcomes_of_one(iterator)) is not None:
        found.append(one)
    return found


def test_taking_a_state_does_not_disturb():
    iterator = opened(Dataset.range(5), 2)
    found = []
    for value in iterator:
        found.append(int(value))
        iterator.state_dict()
    assert found == [0, 10, 20, 30, 40]


def test_a_state_can_be_loaded_into_the_middle_of_a_pass():
    iterator = opened(Dataset.range(5), 2)
    next(iterator)
    state = iterator.state_dict()
    assert results(iterator) == [10, 20, 30, 40]
    iterator.load_state_dict(state)
    assert results(iterator) == [10, 20, 30, 40]


def test_a_state_of_the_end_is_the_end():
    iterator = opened(Dataset.range(2), 1)
    results(iterator)
    state = iterator.state_dict()
    resumed = opened(Dataset.range(2), 1)
    resumed.load_state_dict(state)
    assert results(resumed) == []


Pair = collections.namedtuple("Pair", "x y")  # noqa: PYI024  # the plain kind


@dataclasses.dataclass
class Record:
    x: object
    y: object


@pytest.mark.parametrize("make", [Pair, Record, lambda x, y: {"b": x, "a": (y, None)}])
def test_what_is_read_ahead_is_saved_whatever_its_structure(make):
    dataset = Dataset.range(4).map(lambda i: make(np.full((2, 3), i, np.float32), i))
    iterator = opened(dataset, 2, lambda element: (element, element))
    next(iterator)
    state = iterator.state_dict()
    resumed = opened(dataset, 2, lambda element: (element, element))
    resumed.load_state_dict(state)
    for one, other in zip(list(resumed), list(iterator), strict=True):
        assert type(one) is type(other)
        assert repr(one) == repr(other)


def test_a_state_is_plain_data():
    iterator = opened(Dataset.range(5).map(fail_at(1)), 2)
    next(iterator)
    assert json.dumps(iterator.state_dict(), default=lambda value: value.tolist())


def test_a_state_that_does_not_fit_is_refused_and_changes_nothing():
    iterator = opened(Dataset.range(5), 1)
    next(iterator)
    good = iterator.state_dict()
    other = opened(Dataset.range(5).batch(2), 1, lambda x: (x, x)).state_dict()
    moved = {**good, "operator": {**good["operator"], "behind": 3}}
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
    for call in (lambda: next(iterator), iterator.state_dict, lambda: next(iterator)):
        with pytest.raises(ClosedError):
            call()


def test_a_with_block_closes():
    with no_leaks(), opened(Dataset.range(100).map(lambda x: x + 1).prefetch(3), 2) as iterator:
        next(iterator)
    with pytest.raises(ClosedError):
        next(iterator)


@pytest.mark.parametrize("bad", [(), (1,), (0, 1, 2, 3)])
def test_dropping_it_ends_the_threads_without_the_garbage_collector(bad):
    """A buffered exception refers to frames; they must not refer to the iterator."""
    with no_leaks():
        before = threading.active_count()
        iterator = opened(Dataset.range(100).map(fail_at(*bad)).prefetch(2), 2)
        dropped = weakref.ref(iterator)
        gc.disable()
        try:
            outcomes_of_one(iterator)
            assert threading.active_count() > before
            del iterator
            assert dropped() is None
        finally:
            gc.enable()


def test_each_element_goes_to_one_of_several_threads():
    iterator = opened(Dataset.range(2000), 3)
    found = []

    def take():
        found.extend(list(iterator))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(int, found)) == list(range(0, 20000, 10))


def test_it_shows_the_statistics_of_the_iterator_below():
    iterator = opened(Dataset.range(5), 1)
    list(iterator)
    assert iterator.stats().elements == 5
    assert len(iterator.tuning_log()) == 0


def by_value(iterator):
    """As for an input without a deterministic order."""
    iterator._root._context.input_is_replayable = False
    return iterator


@pytest.mark.parametrize("value", [False, True], ids=["by place", "by value"])
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("step", [0, 1, 3])
def test_several_resumes_in_a_row_go_on_exactly(count, value, step):
    dataset = Dataset.range(20).shuffle(8, seed=2, reshuffle_each_iteration=False).map(fail_at(3, 4, 11)).prefetch(2)
    expected = outcomes_left(opened(dataset, count))
    iterator, found = opened(dataset, count), []
    for _ in range(8):
        if value:
            by_value(iterator)
        state = pickle.loads(pickle.dumps(iterator.state_dict()))
        iterator.close()
        iterator = opened(dataset, count)
        iterator.load_state_dict(state)
        found += [outcomes_of_one(iterator) for _ in range(step)]
    found = [one for one in found if one is not None]
    assert found + outcomes_left(iterator) == expected


def test_a_state_holds_no_element_where_the_input_repeats_itself():
    dataset = Dataset.range(20).map(lambda x: np.full(10_000, x))
    iterator = opened(dataset, 5, lambda x: (x, x))
    next(iterator)
    by_place = iterator.state_dict()
    assert by_place["operator"]["held"] == []
    assert len(pickle.dumps(by_place)) < 2000
    assert len(by_value(iterator).state_dict()["operator"]["held"]) == 5


@pytest.mark.parametrize("bad", [(), (2, 3)])
def test_what_is_passed_over_behind_a_state_is_not_converted(bad):
    converted, made = [], []

    def note(element):
        converted.append(int(element))
        return element * 10, element

    dataset = Dataset.range(30).map(fail_at(*bad)).map(lambda x: made.append(int(x)) or x)
    iterator = opened(dataset, 2, note)
    iterator._root.load_state_dict({**iterator._root.state_dict(), "behind": 7})
    assert made == []
    assert next(iterator) == 70
    assert converted == [7, 8, 9]
    assert iterator.state_dict()["operator"]["behind"] <= 8


def test_an_interrupt_while_elements_are_passed_over_loses_none():
    pressed = []

    def press(x):
        if x in (1, 4) and int(x) not in pressed:
            pressed.append(int(x))
            raise KeyboardInterrupt
        return x

    iterator = opened(Dataset.range(6).map(press), 1)
    iterator._root.load_state_dict({**iterator._root.state_dict(), "behind": 3})
    found = []
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            found += list(iterator)
    found += list(iterator)
    assert [int(x) for x in found] == [30, 40, 50]


def test_an_element_whose_conversion_was_interrupted_is_not_counted_for_another():
    pressed = []

    def press(x):
        if x == 2 and not pressed:
            pressed.append(x)
            raise KeyboardInterrupt
        return x * 10, x

    dataset = Dataset.range(8)
    iterator = opened(dataset, 2, press)
    with pytest.raises(KeyboardInterrupt):
        next(iterator)
    assert [int(next(iterator)) for _ in range(3)] == [0, 10, 30]
    resumed = opened(dataset, 2)
    resumed.load_state_dict(iterator.state_dict())
    assert results(resumed) == results(iterator) == [40, 50, 60, 70]


def test_elements_that_no_state_can_hold_are_made_again():
    dataset = Dataset.range(6).map(lambda x: {"x": object(), "number": x})
    iterator = opened(dataset, 1, lambda x: (x["number"], x))
    next(iterator)
    resumed = opened(dataset, 1, lambda x: (x["number"], x))
    resumed.load_state_dict(iterator.state_dict())
    assert results(resumed) == [1, 2, 3, 4, 5]
    with pytest.raises(StateError):
        by_value(iterator).state_dict()
