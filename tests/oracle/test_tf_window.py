"""Tests of window against tf.data's."""

import itertools

import numpy as np
import pytest
from compare import assert_both_refuse, assert_same, oracle

from dataset import Dataset, TensorSpec
from support.combinations import diagonals
from support.libraries import fail_at

SHAPES = [
    {"size": 1},
    {"size": 3},
    {"size": 9},
    {"size": 3, "shift": 1},
    {"size": 3, "shift": 2},
    {"size": 2, "shift": 3},
    {"size": 2, "shift": 7},
    {"size": 2, "shift": 20},
    {"size": 3, "stride": 2},
    {"size": 3, "shift": 1, "stride": 2},
    {"size": 2, "shift": 5, "stride": 3},
    {"size": 2, "stride": 9},
]

SOURCES = {
    "range": lambda lib: lib.Dataset.range(7),
    "one element": lambda lib: lib.Dataset.range(1),
    "empty": lambda lib: lib.Dataset.range(0),
    "endless": lambda lib: lib.Dataset.range(3).repeat(),
    "unknown": lambda lib: lib.Dataset.range(13).filter(lambda x: x % 2 == 0),
    "arrays": lambda lib: lib.Dataset.range(7).batch(2),
    "empty arrays": lambda lib: lib.Dataset.from_tensor_slices(np.zeros((5, 0), np.int64)),
    "texts": lambda lib: lib.Dataset.from_tensor_slices(np.array([b"a", b"b\0", b""], object)),
    "pairs": lambda lib: lib.Dataset.zip(lib.Dataset.range(5), lib.Dataset.range(5, 9)),
    "dicts": lambda lib: lib.Dataset.zip({"b": lib.Dataset.range(4), "a": (lib.Dataset.range(5).batch(2),)}),
}


@pytest.mark.parametrize(("source", "shape", "drop_remainder"), diagonals(4, SOURCES, SHAPES, [False, True]), ids=str)
def test_windows(source, shape, drop_remainder):
    assert_same(lambda lib: SOURCES[source](lib).window(**shape, drop_remainder=drop_remainder), limit=8)


def test_cardinality_whatever_the_numbers():
    table = itertools.product(range(12), range(1, 5), range(1, 7), range(1, 4), [False, True])
    for n, size, shift, stride, drop_remainder in table:
        ours = Dataset.range(n).window(size, shift, stride, drop_remainder)
        theirs = oracle().Dataset.range(n).window(size, shift, stride, drop_remainder)
        assert ours.cardinality() == int(theirs.cardinality()), (n, size, shift, stride, drop_remainder)


@pytest.mark.parametrize(
    ("shape", "bad", "drop_remainder"),
    diagonals(4, SHAPES, [(0,), (1,), (3,), (6,), (1, 2), (0, 6), (0, 1, 2, 3, 4, 5, 6)], [False, True]),
    ids=str,
)
def test_elements_that_fail_take_each_of_their_windows_with_them(shape, bad, drop_remainder):
    def build(lib):
        numbers = lib.Dataset.range(7).map(lib.call(fail_at(*bad), TensorSpec((), np.int64)))
        return numbers.window(**shape, drop_remainder=drop_remainder)

    assert_same(build, spec="any" if len(bad) == 7 else "equal")


@pytest.mark.parametrize(
    "arguments",
    [{"size": 0}, {"size": -1}, {"size": 2, "shift": 0}, {"size": 2, "shift": -2}, {"size": 2, "stride": 0}],
    ids=str,
)
def test_what_is_no_number_of_elements(arguments):
    assert_both_refuse(lambda lib: lib.Dataset.range(5).window(**arguments), ValueError)


@pytest.mark.parametrize(
    "arguments",
    [{"size": 2.0}, {"size": "2"}, {"size": None}, {"size": 2, "shift": 2.0}, {"size": 2, "drop_remainder": 1}],
    ids=str,
)
def test_what_is_no_number(arguments):
    assert_both_refuse(lambda lib: lib.Dataset.range(5).window(**arguments), (TypeError, ValueError))
