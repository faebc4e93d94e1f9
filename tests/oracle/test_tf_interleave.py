"""Tests of interleave against tf.data's."""

import numpy as np
import pytest
from cases import ELEMENTS, INT64, SOURCES, failing
from compare import assert_both_refuse, assert_same, attempt, oracle

from dataset import Dataset
from support.combinations import diagonals
from support.libraries import fail_at

CYCLES = [(1, 1), (1, 3), (2, 1), (2, 2), (2, 5), (3, 2), (4, 1), (16, 3)]

INNER = {
    "as many as its number": lambda lib, x: lib.Dataset.from_tensors(x).repeat(x),
    "fewer and fewer": lambda lib, x: lib.Dataset.range(x, 7),
    "all empty": lambda lib, x: lib.Dataset.range(0),
    "unknown": lambda lib, x: lib.Dataset.range(5).filter(lambda y: y != x),
    "failing": lambda lib, x: failing(lib, 0, 2, size=4),
}


@pytest.mark.parametrize("cycle", CYCLES, ids=str)
@pytest.mark.parametrize("inner", INNER)
def test_cycles(inner, cycle):
    spec = "any" if inner == "all empty" else "equal"
    assert_same(lambda lib: lib.Dataset.range(1, 6).interleave(lambda x: INNER[inner](lib, x), *cycle), spec=spec)


@pytest.mark.parametrize("cycle", [(1, 1), (2, 1), (3, 2)], ids=str)
@pytest.mark.parametrize("source", SOURCES)
def test_sources(source, cycle):
    spec = "any" if "empty" in source else "equal"
    assert_same(
        lambda lib: SOURCES[source](lib).interleave(lambda x: lib.Dataset.range(x, x + 3), *cycle),
        limit=30,
        spec=spec,
    )


@pytest.mark.parametrize("element", ELEMENTS)
def test_structures(element):
    assert_same(
        lambda lib: lib.Dataset.range(2).interleave(
            lambda x: lib.Dataset.from_tensors(ELEMENTS[element](lib)).repeat(2), 2
        ),
        spec="compatible",
    )


@pytest.mark.parametrize("element", ["tuple", "tuple of one", "None in a tuple", "named tuple", "nested"])
def test_arguments(element):
    assert_same(
        lambda lib: (
            lib.Dataset.from_tensors(ELEMENTS[element](lib))
            .repeat(3)
            .interleave(lambda *args: lib.Dataset.from_tensors(args), cycle_length=2)
        )
    )


def test_endless_inner_datasets():
    assert_same(
        lambda lib: lib.Dataset.range(5).interleave(lambda x: lib.Dataset.from_tensors(x).repeat(), 3, 2), limit=30
    )


PLACES = [(0,), (1,), (2,), (4,), (0, 4), (1, 2, 3), (0, 1, 2, 3)]


@pytest.mark.parametrize(
    ("cycle", "bad"), diagonals(2, [(1, 1), (1, 2), (2, 1), (2, 2), (3, 2), (9, 1)], PLACES), ids=str
)
def test_failures_of_the_source(cycle, bad):
    assert_same(
        lambda lib: failing(lib, *bad, size=5).interleave(lambda x: lib.Dataset.from_tensors(x).repeat(3), *cycle)
    )


@pytest.mark.parametrize(
    ("cycle", "bad"), diagonals(2, [(1, 1), (2, 1), (2, 2), (3, 2), (3, 3), (9, 1)], PLACES), ids=str
)
def test_failures_inside(cycle, bad):
    assert_same(
        lambda lib: lib.Dataset.range(5).interleave(
            lambda x: lib.Dataset.range(x, x + 3).map(lib.call(fail_at(*bad), INT64)), *cycle
        )
    )


@pytest.mark.parametrize(("cycle", "bad"), diagonals(2, [(1, 1), (2, 1), (2, 2), (3, 2), (9, 1)], PLACES), ids=str)
def test_failures_of_the_function(cycle, bad):
    check = fail_at(*bad)
    assert_same(
        lambda lib: lib.Dataset.range(5).interleave(
            lambda x: lib.Dataset.from_tensors(lib.call(check, INT64)(x)).repeat(2), *cycle
        )
    )


@pytest.mark.parametrize("calls", [1, 2, -1])
@pytest.mark.parametrize("cycle", [(1, 1), (2, 2), (3, 1)], ids=str)
def test_parallel_calls(cycle, calls):
    def build(lib, **arguments):
        return lib.Dataset.range(1, 6).interleave(
            lambda x: lib.Dataset.from_tensors(x).repeat(x), *cycle, num_parallel_calls=calls, **arguments
        )

    if calls <= cycle[0]:
        assert_same(build)
        assert_same(lambda lib: build(lib, deterministic=True))


def test_a_cycle_that_is_left_to_the_library():
    """tf.data uses the number of cores; with equal elements, the difference cannot be observed."""
    for cycle in (None, -1):
        assert_same(lambda lib, cycle=cycle: lib.Dataset.range(1).interleave(lambda x: lib.Dataset.range(4), cycle))
    assert_same(lambda lib: lib.Dataset.range(1).interleave(lambda x: lib.Dataset.range(4), block_length=None))


@pytest.mark.parametrize("arguments", [{"cycle_length": 0}, {"cycle_length": -2}, {"block_length": 0}], ids=str)
def test_numbers_that_are_too_small(arguments):
    arguments = {"cycle_length": 2, **arguments}
    assert_both_refuse(lambda lib: lib.Dataset.range(3).interleave(lib.Dataset.range, **arguments), ValueError)


@pytest.mark.parametrize(
    "arguments",
    [
        {"cycle_length": 2.0},
        {"cycle_length": "2"},
        {"cycle_length": 2, "block_length": 1.5},
        {"num_parallel_calls": "2"},
    ],
    ids=str,
)
def test_what_is_no_number(arguments):
    assert_both_refuse(lambda lib: lib.Dataset.range(3).interleave(lib.Dataset.range, **arguments), TypeError)


@pytest.mark.parametrize("calls", [0, -2])
def test_too_few_parallel_calls(calls):
    assert_both_refuse(
        lambda lib: lib.Dataset.range(3).interleave(lib.Dataset.range, 2, num_parallel_calls=calls), ValueError
    )


@pytest.mark.parametrize("result", [lambda x: x, lambda x: None, lambda x: (x,)])
def test_what_is_no_dataset(result):
    """tf.data traces the function at construction; here it is first called when an element is requested."""
    assert isinstance(attempt(lambda lib: lib.Dataset.range(3).interleave(result), oracle()), Exception)
    with pytest.raises(TypeError, match="must return a Dataset"):
        next(iter(Dataset.range(3).interleave(result)))


@pytest.mark.parametrize("function", [None, 3, "abs"], ids=repr)
def test_what_is_no_function(function):
    assert_both_refuse(lambda lib: lib.Dataset.range(3).interleave(function, np.int64(2)), TypeError)
