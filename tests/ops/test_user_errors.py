"""Exceptions of users' functions: out at their place, once, with the user's traceback and one note that says where."""

import queue
import threading
import traceback

import numpy as np
import pytest

from dataset import Dataset, vectorized
from dataset.testing import check_operator, outcomes
from support.combinations import diagonals

SIZE = 7


class OwnError(Exception):
    """An exception of the user's."""


def explode(error):
    raise error


def guarded(*bad):
    """A function that gives its argument but raises for these."""
    return lambda x: explode(OwnError(int(x))) if int(x) in bad else x


def stopping(at, error):
    return lambda x: explode(error) if x == at else x


def interrupting(at, interrupt):
    """A function that raises an interrupt, but only the first time."""
    armed = [True]
    return lambda x: explode(interrupt) if x == at and armed and armed.pop() else x


def is_even(check):
    return lambda x: bool(check(x) % 2 == 0)


def generate(check):
    for x in range(SIZE):
        yield check(x)


def numbers():
    return Dataset.range(SIZE)


PIPELINES = {
    "map": lambda check: numbers().map(check),
    "map to tuples": lambda check: numbers().map(lambda x: (check(x), np.ones(2))),
    "map by threads": lambda check: numbers().map(check, num_parallel_calls=2),
    "map of columns": lambda check: numbers().map(vectorized(lambda xs: np.array([check(x) for x in xs]))),
    "map of tuples": lambda check: numbers().enumerate().map(lambda i, x: check(x)),
    "random_map": lambda check: numbers().random_map(lambda rng, x: check(x), seed=1),
    "scan": lambda check: numbers().scan(0, lambda state, x: (state + 1, check(x))),
    "filter": lambda check: numbers().filter(is_even(check)),
    "filter of tuples": lambda check: numbers().enumerate().filter(lambda i, x: is_even(check)(x)),
    "take_while": lambda check: numbers().take_while(lambda x: check(x) >= 0),
    "flat_map": lambda check: numbers().flat_map(lambda x: Dataset.from_tensors(check(x))),
    "interleave": lambda check: numbers().interleave(lambda x: Dataset.from_tensors(check(x)), cycle_length=2),
    "map inside flat_map": lambda check: Dataset.range(1).flat_map(lambda x: numbers().map(check)),
    "map inside interleave": lambda check: Dataset.range(1).interleave(lambda x: numbers().map(check)),
    "map inside interleave by threads": lambda check: Dataset.range(1).interleave(
        lambda x: numbers().map(check), num_parallel_calls=2
    ),
    "map inside twice": lambda check: Dataset.range(1).flat_map(
        lambda x: Dataset.range(1).interleave(lambda y: numbers().map(check))
    ),
    "generator": lambda check: Dataset.from_generator(lambda: generate(check)),
}
RETRIED = [name for name in PIPELINES if name != "map by threads"]  # after an interrupt
WITHOUT_END = [name for name in PIPELINES if name != "generator"]  # those that an exception does not end

BEHIND = {
    "nothing": lambda dataset: dataset,
    "map": lambda dataset: dataset.map(lambda *x: x[0]),
    "filter": lambda dataset: dataset.filter(lambda *x: True),
    "flat_map": lambda dataset: dataset.flat_map(Dataset.from_tensors),
    "take, skip, shard": lambda dataset: dataset.take(100).skip(0).shard(1, 0),
    "cache": lambda dataset: dataset.cache(),
    "prefetch": lambda dataset: dataset.prefetch(2),
    "zip and enumerate": lambda dataset: Dataset.zip(dataset.enumerate()),
    "unbatched batches of one": lambda dataset: dataset.batch(1).unbatch(),
}


def expected_elements(name, bad):
    numbers = range(bad + 1) if name == "generator" else range(SIZE)
    return [x for x in numbers if "filter" not in name or x % 2 == 0 or x == bad]


def number_of(element):
    while isinstance(element, tuple):
        element = element[-1] if not isinstance(element[-1], np.ndarray) else element[0]
    return int(element)


def places_in(found):
    return ["failed" if isinstance(x, Exception) else number_of(x) for x in found]


@pytest.mark.parametrize(("name", "bad"), diagonals(3, PIPELINES, [0, 3, SIZE - 1]))
def test_comes_out_at_its_place(name, bad):
    found = check_operator(lambda: PIPELINES[name](guarded(bad)))
    assert places_in(found) == ["failed" if x == bad else x for x in expected_elements(name, bad)]


def notes_of(error):
    """The notes of an exception, without the one that says that it has ended a generator."""
    return [note for note in error.__notes__ if not note.startswith("this exception ended the generator")]


@pytest.mark.parametrize(("name", "behind", "bad"), diagonals(3, PIPELINES, BEHIND, [0, 3, SIZE - 1]))
def test_is_the_users_own_with_traceback_and_one_note(name, behind, bad):
    found = outcomes(iter(BEHIND[behind](PIPELINES[name](guarded(bad)))))
    (error,) = [x for x in found if isinstance(x, Exception)]
    assert type(error) is OwnError
    assert error.args == (bad,)
    assert traceback.extract_tb(error.__traceback__)[-1].name == "explode"
    (note,) = notes_of(error)
    assert note.startswith("in from_generator(" if name == "generator" else f"in {name.split()[0]}(")
    assert "test_user_errors.py:" in note
    assert note.endswith(f"element {bad}")


@pytest.mark.parametrize("error", [StopIteration, GeneratorExit])
@pytest.mark.parametrize("name", WITHOUT_END)
def test_what_would_end_a_loop_ends_nothing(name, error):
    for batch in (1, 2):
        found = outcomes(iter(PIPELINES[name](stopping(2, error)).batch(batch).unbatch()))
        assert [type(x) for x in found if isinstance(x, Exception)] == [RuntimeError]
    found = outcomes(iter(PIPELINES[name](stopping(2, error))))
    assert places_in(found) == ["failed" if x == 2 else x for x in expected_elements(name, 2)]


@pytest.mark.parametrize(("name", "at", "interrupt"), diagonals(2, RETRIED, [0, 2, 3], [KeyboardInterrupt, SystemExit]))
def test_an_interrupt_comes_at_once_and_loses_no_element(name, at, interrupt):
    iterator = iter(PIPELINES[name](interrupting(at, interrupt)).ignore_errors().batch(4).unbatch())
    with pytest.raises(interrupt):
        next(iterator)
    assert places_in(iterator) == [x for x in range(SIZE) if "filter" not in name or x % 2 == 0]


@pytest.mark.parametrize("op", [lambda x: x.prefetch(4), lambda x: x.map(int, num_parallel_calls=2)])
def test_an_interrupt_that_waits_is_not_part_of_a_state(op):
    numbers, reached = queue.Queue(), threading.Event()
    for x in range(1000):  # more than is read ahead, as saving waits for a read in progress
        numbers.put(x)

    def interrupted(x):
        if x == 2 and not reached.is_set():
            reached.set()
            raise KeyboardInterrupt
        return x

    dataset = op(Dataset.from_queue(numbers).map(interrupted))
    with iter(dataset) as iterator:
        assert next(iterator) == 0
        assert reached.wait(60)
        state = iterator.state_dict()
    with iter(dataset) as resumed:
        resumed.load_state_dict(state)
        assert [next(resumed) for _ in range(5)] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("bad", [0, 3, SIZE - 1])
def test_ends_a_reduce_with_one_note(bad):
    with pytest.raises(OwnError) as caught:
        numbers().reduce(np.int64(0), lambda total, x: total + guarded(bad)(x))
    (note,) = caught.value.__notes__
    assert note.startswith("in reduce(")
    assert note.endswith(f"element {bad}")
    with pytest.raises(OwnError) as caught:
        PIPELINES["map"](guarded(bad)).reduce(np.int64(0), lambda total, x: total + x)
    (note,) = caught.value.__notes__
    assert note.startswith("in map(")
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "explode"


@pytest.mark.parametrize("name", WITHOUT_END)
def test_every_element_may_fail(name):
    found = check_operator(lambda: PIPELINES[name](guarded(*range(SIZE))))
    assert [error.args for error in found] == [(x,) for x in range(SIZE)]


def test_one_exception_object_that_is_raised_again_and_again_says_where_it_was_raised_last():
    error = OwnError("shared")
    found = outcomes(iter(Dataset.range(3).map(lambda x: explode(error))))
    assert found == [error] * 3
    assert error.__notes__[-1].endswith("element 2")
