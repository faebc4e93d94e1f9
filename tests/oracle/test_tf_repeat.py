"""Tests of repeat against tf.data's."""

import numpy as np
import pytest
from compare import assert_both_refuse, assert_same

from dataset import TensorSpec
from support.combinations import diagonals
from support.libraries import fail_at

SOURCES = {
    "three": lambda lib: lib.Dataset.range(3),
    "one": lambda lib: lib.Dataset.from_tensors({"a": np.arange(2), "s": "x"}),
    "empty": lambda lib: lib.Dataset.range(0),
    "endless": lambda lib: lib.Dataset.range(2).repeat(),
    "unknown": lambda lib: lib.Dataset.range(9).filter(lambda x: x % 4 == 0),
    "unknown and empty": lambda lib: lib.Dataset.range(9).filter(lambda x: x < 0),
    "failing": lambda lib: lib.Dataset.range(3).map(lib.call(fail_at(0, 2), TensorSpec((), np.int64))),
    "batches": lambda lib: lib.Dataset.range(5).batch(2),
    "repeated": lambda lib: lib.Dataset.range(2).repeat(2),
    "never": lambda lib: lib.Dataset.range(2).repeat(0),
}


@pytest.mark.parametrize(("source", "count"), diagonals(2, SOURCES, [None, 0, 1, 2, 3, -1, -5, np.int64(2)]), ids=str)
def test_counts(source, count):
    assert_same(lambda lib: SOURCES[source](lib).repeat(count), limit=14, spec="compatible")


def test_the_default_is_without_end():
    assert_same(lambda lib: lib.Dataset.range(2).repeat(), limit=7)


def test_failures_alone_without_end():
    def build(lib):
        return lib.Dataset.range(2).map(lib.call(fail_at(0, 1), TensorSpec((), np.int64))).repeat()

    assert_same(build, limit=7, spec="any")


@pytest.mark.parametrize("batch_size", [1, 2, 4, 20])
def test_batches_go_across_passes(batch_size):
    assert_same(lambda lib: lib.Dataset.range(3).repeat(3).batch(batch_size))
    assert_same(lambda lib: SOURCES["failing"](lib).repeat(3).batch(batch_size), spec="compatible")


@pytest.mark.parametrize("count", [2.0, "2", [2], [1, 2]], ids=str)
def test_what_is_refused(count):
    assert_both_refuse(lambda lib: lib.Dataset.range(3).repeat(count), (TypeError, ValueError))
