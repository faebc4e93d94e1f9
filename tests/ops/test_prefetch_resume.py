"""prefetch: its state is a place of its input where that repeats its order, and what it holds where it does not."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset import Dataset, StateError
from dataset.ops.prefetch import Prefetch
from dataset.runtime.state.replay_log import ReplayMarks
from dataset.testing import assert_elements_equal, outcomes
from support.resuming import advanced, check_every_place

pytestmark = pytest.mark.usefixtures("switch_interval")


def fail(x):
    if x % 5 == 3:
        raise ValueError(f"at {x}")
    return x * 2


SOURCES = {
    "range": lambda: Dataset.range(30),
    "nothing": lambda: Dataset.range(0),
    "generator": lambda: Dataset.from_generator(lambda: iter(range(30))),
    "map": lambda: Dataset.range(30).map(lambda x: (x, x + 1)),
    "exceptions": lambda: Dataset.range(30).map(fail),
    "shuffle": lambda: Dataset.range(30).map(lambda x: x + 0).shuffle(7, seed=1),
    "batch": lambda: Dataset.range(90).map(fail).ignore_errors().batch(3),
    "filter": lambda: Dataset.range(60).filter(lambda x: x % 2 == 0),
    "repeat": lambda: Dataset.range(10).shuffle(4, seed=2).repeat(3),
    "flat_map": lambda: Dataset.range(8).flat_map(lambda x: Dataset.range(x).prefetch(2)),
}


def opened(make, size=3, *, patient=False, repeats=True):
    """An iterator over ``make()`` with a prefetch; ``repeats=False`` if its input is taken not to repeat itself."""
    iterator = iter(Dataset(Prefetch(make().plan, size, adaptive=patient)))
    operator = iterator._root
    operator._context.input_is_replayable = repeats
    return iterator


def resumed(state, make, size=3, **keywords):
    iterator = opened(make, size, **keywords)
    repeats = iterator._root._context.input_is_replayable
    iterator.load_state_dict(state)
    iterator._root._context.input_is_replayable = repeats
    return iterator


KINDS = [{"patient": patient, "repeats": repeats} for patient in (False, True) for repeats in (False, True)]


@given(
    steps=st.lists(st.tuples(st.integers(0, 9), st.sampled_from(KINDS)), max_size=6), make=st.sampled_from([*SOURCES])
)
@settings(deadline=None, max_examples=60)
def test_a_state_of_each_kind_goes_to_every_other(steps, make):
    make = SOURCES[make]
    iterator, found, kind = opened(make), [], {}
    for count, kind in steps:
        found += advanced(iterator, count)
        state = pickle.loads(pickle.dumps(iterator.state_dict()))
        iterator.close()
        iterator = resumed(state, make, **kind)
    found += advanced(iterator, 1000)
    assert_elements_equal(found, outcomes(iter(make())))
    assert advanced(resumed(iterator.state_dict(), make, **kind), 10) == []


def test_an_exception_is_not_raised_again_after_a_resume():
    check_every_place(lambda: SOURCES["exceptions"]().prefetch(3), range(12))


def test_an_input_that_stops_repeating_itself_is_saved_by_value_from_then_on():
    iterator = opened(lambda: Dataset.range(30))
    first = advanced(iterator, 5)
    before = iterator.state_dict()
    iterator._root._context.input_is_replayable = False
    after = iterator.state_dict()
    for state in (before, after):
        assert_elements_equal(
            first + advanced(resumed(state, lambda: Dataset.range(30)), 100), outcomes(iter(Dataset.range(30)))
        )
    assert sum(chunk["length"] for chunk in after["operator"]["held"]) <= 3


@pytest.mark.parametrize("given", [1, 7])
def test_a_state_holds_no_element(given):
    def make():
        return Dataset.range(20).map(lambda x: (np.full(100_000, x), pytest))  # one cannot even be saved

    iterator = opened(make)
    advanced(iterator, given)
    state = iterator.state_dict()
    assert len(pickle.dumps(state)) < 2000
    assert [int(array[0]) for array, _ in advanced(resumed(state, make), 100)] == list(range(given, 20))


def test_an_input_that_cannot_say_where_it_is_says_so(monkeypatch):
    monkeypatch.setattr(ReplayMarks, "leave", lambda *_: None)
    objects = Dataset.range(90).map(lambda x: {"object": pytest, "x": x}).shuffle(10, seed=1)
    iterator = iter(objects.prefetch(2).map(lambda x: x).prefetch(2))
    next(iterator)
    with pytest.raises(StateError, match="user classes"):
        iterator.state_dict()


def opened_behind(make, behind, size=2, *, patient=False):
    """An iterator that goes on ``behind`` elements from the start, as if it had been saved there."""
    iterator = opened(make, size, patient=patient)
    operator = iterator._root
    operator.load({**operator.save(), "behind": behind})
    return iterator


@pytest.mark.parametrize("patient", [True, False])
def test_loading_runs_nothing_and_the_first_pull_no_more_than_what_is_behind(patient):
    calls = []

    def note(x):
        calls.append(int(x))
        return x

    def make():
        return Dataset.range(50).map(note).map(lambda x: x + 1).filter(lambda x: x % 2 == 0)

    iterator = opened_behind(make, 9, patient=patient)
    assert iterator.state_dict()["operator"]["behind"] == 9  # nothing has been read
    assert calls == []
    assert advanced(iterator, 1) == [20]
    iterator.close()
    assert calls == list(range(len(calls)))
    assert 20 <= len(calls) <= 20 + 4


def test_what_is_passed_over_counts_silent_exceptions_and_ends_with_the_input():
    make = SOURCES["exceptions"]
    assert_elements_equal(advanced(opened_behind(make, 4), 100), outcomes(iter(make()))[4:])  # the fourth one fails
    iterator = opened_behind(SOURCES["range"], 10**15)  # of an input that has become shorter
    assert advanced(iterator, 5) == []
    assert advanced(resumed(iterator.state_dict(), SOURCES["range"], 2), 5) == []
    with pytest.raises(StateError, match="-1 elements to skip"):
        opened_behind(SOURCES["range"], -1)


class Pressed:
    """Raises KeyboardInterrupt once at each of some elements."""

    def __init__(self, *at):
        self.left = set(at)

    def __call__(self, x):
        if int(x) in self.left:
            self.left.remove(int(x))
            raise KeyboardInterrupt
        return x


@pytest.mark.parametrize("patient", [True, False])
def test_an_interrupt_stands_in_the_place_of_no_element(patient):
    def make(*at):
        press = Pressed(*at)
        return lambda: Dataset.range(12).map(press)

    iterator, found, pressed = opened(make(2, 7), patient=patient), [], 0
    while True:
        try:
            found.append(int(next(iterator)))
        except StopIteration:
            break
        except KeyboardInterrupt:
            pressed += 1
        rest = advanced(resumed(iterator.state_dict(), make()), 100)
        assert [int(x) for x in rest] == list(range(len(found), 12))
    assert (found, pressed) == (list(range(12)), 2)
