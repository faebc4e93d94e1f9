"""Tests of zip against tf.data's."""

from collections import OrderedDict

import numpy as np
import pytest
from compare import FAILED, assert_both_refuse, assert_same

from dataset import TensorSpec
from support.libraries import fail_at
from support.pipelines import Pair


def numbers(lib, *arguments):
    return lib.Dataset.range(*arguments)


def failing(lib, count, *bad):
    return lib.Dataset.range(count).map(lib.call(fail_at(*bad), TensorSpec((), np.int64)))


NESTINGS = {
    "one": lambda lib: lib.Dataset.zip(numbers(lib, 3)),
    "two arguments": lambda lib: lib.Dataset.zip(numbers(lib, 3), numbers(lib, 10, 20)),
    "three arguments": lambda lib: lib.Dataset.zip(numbers(lib, 3), numbers(lib, 3), numbers(lib, 2)),
    "a tuple": lambda lib: lib.Dataset.zip((numbers(lib, 3), numbers(lib, 2))),
    "a tuple of one": lambda lib: lib.Dataset.zip((numbers(lib, 3),)),
    "tuples as arguments": lambda lib: lib.Dataset.zip((numbers(lib, 3), numbers(lib, 2)), numbers(lib, 4)),
    "nested": lambda lib: lib.Dataset.zip((numbers(lib, 3), (numbers(lib, 2), (numbers(lib, 4),)))),
    "a dict": lambda lib: lib.Dataset.zip({"b": numbers(lib, 3), "a": numbers(lib, 5, 9)}),
    "an ordered dict": lambda lib: lib.Dataset.zip(OrderedDict([("b", numbers(lib, 3)), ("a", numbers(lib, 5, 9))])),
    "a dict in a tuple": lambda lib: lib.Dataset.zip(({"a": numbers(lib, 3)}, numbers(lib, 2))),
    "a named tuple": lambda lib: lib.Dataset.zip(Pair(numbers(lib, 3), numbers(lib, 2))),
    "datasets=": lambda lib: lib.Dataset.zip(datasets=(numbers(lib, 3), numbers(lib, 2))),
    "datasets= of one": lambda lib: lib.Dataset.zip(datasets=numbers(lib, 3)),
    "datasets= of a dict": lambda lib: lib.Dataset.zip(datasets={"a": numbers(lib, 3)}),
    "zips": lambda lib: lib.Dataset.zip(lib.Dataset.zip(numbers(lib, 3)), lib.Dataset.zip(numbers(lib, 3))),
    "structures": lambda lib: lib.Dataset.zip(
        lib.Dataset.from_tensor_slices({"s": ["a", "b"], "n": (np.arange(2.0), np.arange(2))}), numbers(lib, 5).batch(2)
    ),
    "tensors of every kind": lambda lib: lib.Dataset.zip(
        lib.Dataset.from_tensors(lib.ragged([[1], [2, 3]])),
        lib.Dataset.from_tensors(lib.sparse([[1]], np.array([5.0]), [3])),
    ),
    "a name": lambda lib: lib.Dataset.zip(numbers(lib, 3), name="pairs"),
}


@pytest.mark.parametrize("nesting", NESTINGS)
def test_nestings(nesting):
    assert_same(NESTINGS[nesting], spec="compatible" if nesting == "tensors of every kind" else "equal")


SOURCES = {
    "empty": lambda lib: numbers(lib, 0),
    "three": lambda lib: numbers(lib, 3),
    "five": lambda lib: numbers(lib, 5),
    "endless": lambda lib: numbers(lib, 2).repeat(),
    "unknown": lambda lib: numbers(lib, 9).filter(lambda x: x % 2 == 0),
    "unknown and endless": lambda lib: numbers(lib, 9).repeat().filter(lambda x: x % 2 == 0),
    "failing": lambda lib: failing(lib, 5, 0, 2),
    "failing at the end": lambda lib: failing(lib, 4, 3),
}


@pytest.mark.parametrize("second", SOURCES)
@pytest.mark.parametrize("first", SOURCES)
def test_lengths_and_failures(first, second):
    assert_same(lambda lib: lib.Dataset.zip(SOURCES[first](lib), SOURCES[second](lib)), limit=12, spec="compatible")


@pytest.mark.parametrize(
    "failures",
    [((5,), (2,)), ((2,), (5,)), ((2,), (2,)), ((0, 1, 2), (3,)), ((8,), (0, 8)), ((), (1, 3, 5)), ((7,), (6, 7))],
)
@pytest.mark.parametrize("batch_size", [None, 1, 4, 20])
def test_failures_in_both_keep_them_in_step(failures, batch_size):
    def build(lib):
        dataset = lib.Dataset.zip(*(failing(lib, 9, *bad) for bad in failures), lib.Dataset.range(9))
        return dataset if batch_size is None else dataset.batch(batch_size)

    found = assert_same(build, spec="any")
    assert FAILED in found


REFUSED = {
    "nothing": lambda lib: lib.Dataset.zip(),
    "a list": lambda lib: lib.Dataset.zip([numbers(lib, 3), numbers(lib, 3)]),
    "a list in a tuple": lambda lib: lib.Dataset.zip((numbers(lib, 3), [numbers(lib, 3)])),
    "both ways": lambda lib: lib.Dataset.zip(numbers(lib, 3), datasets=numbers(lib, 3)),
    "a number": lambda lib: lib.Dataset.zip(numbers(lib, 3), 3),
    "an array": lambda lib: lib.Dataset.zip((numbers(lib, 3), np.arange(3))),
    "an empty tuple": lambda lib: lib.Dataset.zip(()),
    "an empty dict": lambda lib: lib.Dataset.zip({}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case):
    assert_both_refuse(REFUSED[case], (TypeError, ValueError))
