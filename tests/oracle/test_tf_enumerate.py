"""Tests of enumerate against tf.data's."""

import numpy as np
import pytest
from compare import assert_both_refuse, assert_same

from dataset import TensorSpec
from support.libraries import fail_at

SOURCES = {
    "three": lambda lib: lib.Dataset.range(3),
    "empty": lambda lib: lib.Dataset.range(0),
    "endless": lambda lib: lib.Dataset.range(2).repeat(),
    "unknown": lambda lib: lib.Dataset.range(9).filter(lambda x: x % 4 == 0),
    "failing": lambda lib: lib.Dataset.range(6).map(lib.call(fail_at(0, 2, 5), TensorSpec((), np.int64))),
    "tuples": lambda lib: lib.Dataset.zip(lib.Dataset.range(3), lib.Dataset.range(3)),
    "tuples of one": lambda lib: lib.Dataset.zip((lib.Dataset.range(3),)),
    "dicts": lambda lib: lib.Dataset.from_tensor_slices({"a": ["x", "y"], "b": np.zeros((2, 3))}),
    "enumerated": lambda lib: lib.Dataset.range(3).enumerate(7),
    "ragged": lambda lib: lib.Dataset.from_tensors(lib.ragged([[1], [2, 3]])),
}


@pytest.mark.parametrize("start", [0, 1, -3, 2**40, np.int32(5)], ids=str)
@pytest.mark.parametrize("source", SOURCES)
def test_starts(source, start):
    assert_same(lambda lib: SOURCES[source](lib).enumerate(start), limit=8, spec="compatible")


def test_the_ends_of_64_bits():
    assert_same(lambda lib: lib.Dataset.range(3).enumerate(-(2**63)))
    for start in (2**63 - 1, 2**63 - 3):
        assert_same(lambda lib, start=start: lib.Dataset.range(5).enumerate(start), cardinality=False)


@pytest.mark.parametrize("batch_size", [1, 2, 4])
def test_batches_of_failures(batch_size):
    assert_same(lambda lib: SOURCES["failing"](lib).enumerate(5).batch(batch_size), spec="compatible")


@pytest.mark.parametrize("start", [1.0, "0", None, [1], 2**63, -(2**63) - 1], ids=str)
def test_what_is_refused(start):
    assert_both_refuse(lambda lib: lib.Dataset.range(3).enumerate(start), (TypeError, ValueError))
