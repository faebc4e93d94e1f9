"""Tests of concatenate against tf.data's."""

import numpy as np
import pytest
from compare import assert_both_refuse, assert_same

from dataset import TensorSpec
from support.libraries import fail_at


def failing(lib, count, *bad):
    return lib.Dataset.range(count).map(lib.call(fail_at(*bad), TensorSpec((), np.int64)))


SOURCES = {
    "empty": lambda lib: lib.Dataset.range(0),
    "three": lambda lib: lib.Dataset.range(3),
    "endless": lambda lib: lib.Dataset.range(2).repeat(),
    "unknown": lambda lib: lib.Dataset.range(9).filter(lambda x: x % 2 == 0),
    "failing": lambda lib: failing(lib, 4, 0, 3),
}


@pytest.mark.parametrize("second", SOURCES)
@pytest.mark.parametrize("first", SOURCES)
def test_one_after_the_other(first, second):
    assert_same(lambda lib: SOURCES[first](lib).concatenate(SOURCES[second](lib)), limit=12, spec="compatible")


@pytest.mark.parametrize("batch_size", [1, 2, 4, 9])
def test_batches_go_across_the_border(batch_size):
    assert_same(lambda lib: lib.Dataset.range(3).concatenate(failing(lib, 5, 1)).batch(batch_size), spec="compatible")


def rows(lib, *shape):
    return lib.Dataset.from_tensor_slices(np.zeros(shape))


SPECS = {
    "equal shapes": lambda lib: (rows(lib, 2, 3), rows(lib, 2, 3)),
    "another size": lambda lib: (rows(lib, 2, 3), rows(lib, 2, 4)),
    "another first size": lambda lib: (rows(lib, 2, 3, 5), rows(lib, 2, 4, 5)),
    "another rank": lambda lib: (rows(lib, 2, 3), rows(lib, 2, 3, 4)),
    "a scalar and a vector": lambda lib: (rows(lib, 2), rows(lib, 2, 3)),
    "unknown and known": lambda lib: (lib.Dataset.range(4).batch(2), lib.Dataset.range(4).batch(2, True)),
    "dicts in another order": lambda lib: (
        lib.Dataset.from_tensors({"a": np.zeros(2), "b": "x"}),
        lib.Dataset.from_tensors({"b": "y", "a": np.zeros(3)}),
    ),
    "tuples": lambda lib: (lib.Dataset.range(2).enumerate(), lib.Dataset.range(2).enumerate(5)),
    "ragged": lambda lib: (
        lib.Dataset.from_tensors(lib.ragged([[1], [2, 3]])),
        lib.Dataset.from_tensors(lib.ragged([[4, 5], [6], []])),
    ),
    "sparse": lambda lib: (
        lib.Dataset.from_tensors(lib.sparse([[1]], np.array([5.0]), [3])),
        lib.Dataset.from_tensors(lib.sparse([[0]], np.array([6.0]), [4])),
    ),
    "none": lambda lib: (lib.Dataset.from_tensors((np.int64(1), None)), lib.Dataset.from_tensors((np.int64(2), None))),
}


@pytest.mark.parametrize("case", SPECS)
def test_specs_are_merged(case):
    def build(lib):
        first, second = SPECS[case](lib)
        return first.concatenate(second)

    assert_same(build)


REFUSED = {
    "dtypes": lambda lib: (lib.Dataset.range(2), lib.Dataset.range(2, output_type=np.int32)),
    "numbers and text": lambda lib: (lib.Dataset.range(2), lib.Dataset.from_tensors("a")),
    "a tuple": lambda lib: (lib.Dataset.range(2), lib.Dataset.range(2).enumerate()),
    "a tuple of one": lambda lib: (lib.Dataset.range(2), lib.Dataset.zip((lib.Dataset.range(2),))),
    "tuples of other sizes": lambda lib: (
        lib.Dataset.range(2).enumerate(),
        lib.Dataset.zip(*[lib.Dataset.range(2)] * 3),
    ),
    "a dict": lambda lib: (lib.Dataset.range(2), lib.Dataset.zip({"a": lib.Dataset.range(2)})),
    "other keys": lambda lib: (
        lib.Dataset.zip({"b": lib.Dataset.range(2)}),
        lib.Dataset.zip({"a": lib.Dataset.range(2)}),
    ),
    "more keys": lambda lib: (
        lib.Dataset.zip({"a": lib.Dataset.range(2)}),
        lib.Dataset.zip({"a": lib.Dataset.range(2), "b": lib.Dataset.range(2)}),
    ),
    "a tuple and a dict": lambda lib: (
        lib.Dataset.range(2).enumerate(),
        lib.Dataset.zip({"a": lib.Dataset.range(2), "b": lib.Dataset.range(2)}),
    ),
    "dense and sparse": lambda lib: (
        rows(lib, 2, 3),
        lib.Dataset.from_tensors(lib.sparse([[1]], np.array([5.0]), [3])),
    ),
    "a list": lambda lib: (lib.Dataset.range(2), [1, 2]),
    "a number": lambda lib: (lib.Dataset.range(2), 3),
    "none": lambda lib: (lib.Dataset.range(2), None),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case):
    def build(lib):
        first, second = REFUSED[case](lib)
        return first.concatenate(second)

    assert_both_refuse(build, TypeError)
