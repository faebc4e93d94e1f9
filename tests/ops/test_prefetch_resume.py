"""prefetch: its state is a place of its input where that repeats its order, and what it holds where it does not."""

import pickle

import numpy as np
import pytest

from dataset import Dataset, StateError
from dataset.ops.prefetch import Prefetch
from dataset.runtime.state.replay_log import ReplayMarks
from dataset.testing import check_operator, outcomes
from support.resuming import check_every_place, resealed
from support.states import rest_of, state_after

pytestmark = pytest.mark.usefixtures("switch_interval")


def fail(x):
    if x % 5 == 3:
        raise ValueError(f"at {x}")
    return x * 2


SOURCES = {
    "range": lambda: Dataset.range(30),
    "generator": lambda: Dataset.from_generator(lambda: iter(range(30))),
    "exceptions": lambda: Dataset.range(30).map(fail),
    "shuffle": lambda: Dataset.range(30).map(lambda x: x + 0).shuffle(7, seed=1),
    "batch": lambda: Dataset.range(90).map(fail).ignore_errors().batch(3),
    "repeat": lambda: Dataset.range(10).shuffle(4, seed=2).repeat(3),
    "flat_map": lambda: Dataset.range(8).flat_map(lambda x: Dataset.range(x).prefetch(2)),
}


IN_ANY_ORDER = {"num_parallel_calls": 1, "deterministic": False}  # of one call, so it is the same order


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("source", SOURCES)
def test_keeps_the_contract_of_operators_by_position_and_by_value(source, adaptive):
    def prefetched(dataset):
        return Dataset(Prefetch(dataset.plan, 3, adaptive=adaptive))

    check_operator(lambda: prefetched(SOURCES[source]()), outcomes(iter(SOURCES[source]())), positions=12)
    check_operator(lambda: prefetched(SOURCES[source]().map(lambda *x: x[0], **IN_ANY_ORDER)), positions=12)


def test_an_exception_is_not_raised_again_after_a_resume():
    check_every_place(lambda: SOURCES["exceptions"]().prefetch(3), range(12))


def test_a_state_holds_no_element():
    objects = Dataset.range(20).map(lambda x: (np.full(100_000, x), pytest)).prefetch(3)  # one cannot even be saved
    for given in (1, 7):
        state = state_after(objects, given)
        assert len(pickle.dumps(state)) < 2000
        assert [int(array[0]) for array, _ in rest_of(objects, state)] == list(range(given, 20))


def test_an_input_that_cannot_say_where_it_is_says_so(monkeypatch):
    monkeypatch.setattr(ReplayMarks, "leave", lambda *_: None)
    objects = Dataset.range(90).map(lambda x: {"object": pytest, "x": x}).shuffle(10, seed=1)
    iterator = iter(objects.prefetch(2).map(lambda x: x).prefetch(2))
    next(iterator)
    with pytest.raises(StateError, match="user classes"):
        iterator.state_dict()


def test_an_input_that_has_become_shorter_has_ended():
    numbers = Dataset.range(30).prefetch(3)
    state = state_after(numbers, 0)
    later, damaged = (
        resealed(state, operator={**state["operator"], "given": [[0, count, 0]]}) for count in (10**15, -1)
    )
    assert rest_of(numbers, later) == rest_of(numbers, state_after(numbers, 0, later)) == []
    with pytest.raises(StateError, match="runs of skipped elements are invalid"):
        rest_of(numbers, damaged)
