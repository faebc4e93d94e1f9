"""Exceptions of users' functions: out at their place, once, with the user's traceback and one note that says where."""

import traceback

import numpy as np
import pytest

from dataset import Dataset
from dataset.testing import check_operator, outcomes
from support.combinations import diagonals

SIZE = 7


class OwnError(Exception):
    """An exception of the user's."""


def explode(x):
    raise OwnError(int(x))


def guarded(*bad):
    """A function that gives its argument but raises for these."""

    def check(x):
        return explode(x) if int(x) in bad else x

    return check


def even(*bad):
    check = guarded(*bad)
    return lambda x: bool(check(x) % 2 == 0)


def generate(bad):
    for x in range(SIZE):
        yield guarded(bad)(x)


PIPELINES = {
    "map": lambda bad: Dataset.range(SIZE).map(guarded(bad)),
    "map to tuples": lambda bad: Dataset.range(SIZE).map(lambda x: (guarded(bad)(x), np.ones(2))),
    "map of tuples": lambda bad: Dataset.range(SIZE).enumerate().map(lambda i, x: guarded(bad)(x)),
    "filter": lambda bad: Dataset.range(SIZE).filter(even(bad)),
    "filter of tuples": lambda bad: Dataset.range(SIZE).enumerate().filter(lambda i, x: even(bad)(x)),
    "function of flat_map": lambda bad: Dataset.range(SIZE).flat_map(lambda x: Dataset.from_tensors(guarded(bad)(x))),
    "function of interleave": lambda bad: Dataset.range(SIZE).interleave(
        lambda x: Dataset.from_tensors(guarded(bad)(x)), cycle_length=2
    ),
    "map inside flat_map": lambda bad: Dataset.range(1).flat_map(lambda x: Dataset.range(SIZE).map(guarded(bad))),
    "map inside interleave": lambda bad: Dataset.range(1).interleave(lambda x: Dataset.range(SIZE).map(guarded(bad))),
    "map inside twice": lambda bad: Dataset.range(1).flat_map(
        lambda x: Dataset.range(1).interleave(lambda y: Dataset.range(SIZE).map(guarded(bad)))
    ),
    "generator": lambda bad: Dataset.from_generator(generate, args=(bad,)),
}

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


@pytest.mark.parametrize(("name", "bad"), diagonals(3, PIPELINES, [0, 3, SIZE - 1]))
def test_comes_out_at_its_place(name, bad):
    found = check_operator(lambda: PIPELINES[name](bad))
    places = ["failed" if isinstance(x, Exception) else number_of(x) for x in found]
    assert places == ["failed" if x == bad else x for x in expected_elements(name, bad)]


def notes_of(error):
    """The notes of an exception, without the one that says that it has ended a generator."""
    return [note for note in error.__notes__ if not note.startswith("this exception ended the generator")]


@pytest.mark.parametrize(("name", "behind", "bad"), diagonals(3, PIPELINES, BEHIND, [0, 3, SIZE - 1]))
def test_is_the_users_own_with_traceback_and_one_note(name, behind, bad):
    found = outcomes(iter(BEHIND[behind](PIPELINES[name](bad))))
    (error,) = [x for x in found if isinstance(x, Exception)]
    assert type(error) is OwnError
    assert error.args == (bad,)
    frames = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert frames[-1] == "explode"
    (note,) = notes_of(error)
    assert note.startswith("in ")
    assert "test_user_errors.py" in note
    assert note.endswith(f"element {bad}")


@pytest.mark.parametrize(("name", "bad", "batch"), diagonals(3, PIPELINES, [0, 3, SIZE - 1], [2, 3, SIZE, 100]))
def test_takes_its_batch_with_it_and_no_other(name, bad, batch):
    found = outcomes(iter(PIPELINES[name](bad).batch(batch)))
    errors = [x for x in found if isinstance(x, Exception)]
    assert len(errors) == 1
    assert len(notes_of(errors[0])) == 1


@pytest.mark.parametrize("bad", [0, 3, SIZE - 1])
def test_ends_a_reduce_with_one_note(bad):
    with pytest.raises(OwnError) as caught:
        Dataset.range(SIZE).reduce(np.int64(0), lambda total, x: total + guarded(bad)(x))
    (note,) = caught.value.__notes__
    assert note.startswith("in reduce(")
    assert note.endswith(f"element {bad}")
    with pytest.raises(OwnError) as caught:
        PIPELINES["map"](bad).reduce(np.int64(0), lambda total, x: total + x)
    (note,) = caught.value.__notes__
    assert note.startswith("in map(")
    assert [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)][-1] == "explode"


@pytest.mark.parametrize("name", [name for name in PIPELINES if name != "generator"])
def test_every_element_may_fail(name):
    def make():
        function = guarded(*range(SIZE))
        table = {
            "map": lambda ds: ds.map(function),
            "filter": lambda ds: ds.filter(function),
            "flat_map": lambda ds: ds.flat_map(function),
            "interleave": lambda ds: ds.interleave(function),
        }
        return next(make for op, make in table.items() if op in name)(Dataset.range(SIZE))

    found = check_operator(make)
    assert [error.args for error in found] == [(x,) for x in range(SIZE)]


@pytest.mark.parametrize("name", PIPELINES)
def test_an_exception_is_met_again_in_the_next_pass(name):
    dataset = PIPELINES[name](3)
    passes = [outcomes(iter(dataset)) for _ in range(2)]
    first, second = (next(x for x in one if isinstance(x, Exception)) for one in passes)
    assert first is not second
    assert len(notes_of(first)) == len(notes_of(second)) == 1
    assert [len(one) for one in passes] == [len(expected_elements(name, 3))] * 2


def test_one_exception_object_that_is_raised_again_and_again_says_where_it_was_raised_last():
    error = OwnError("shared")

    def fail(x):
        raise error

    found = outcomes(iter(Dataset.range(3).map(fail)))
    assert found == [error] * 3
    assert error.__notes__[-1].endswith("element 2")
