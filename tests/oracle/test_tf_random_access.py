"""Tests of dataset[i] against tf.data.experimental.at."""

import pytest
from compare import Ours, same, theirs

from dataset.testing import assert_elements_equal


def assert_same_elements(build):
    def elements(lib):
        options = lib.Options()
        options.experimental_optimization.apply_default_optimizations = False  # they create ops without random access
        dataset = build(lib).with_options(options)
        at, count = lib.tf.data.experimental.at, int(dataset.cardinality())
        with pytest.raises(lib.tf.errors.OpError):
            at(dataset, count)
        return [at(dataset, index) for index in range(count)]

    ours, expected = build(Ours()), theirs(elements)
    assert_elements_equal([ours[index] for index in range(len(expected))], expected)
    with pytest.raises(IndexError):
        ours[len(expected)]


CALLS = ["map(lambda x: (x, {'a': x * 2}))", "take(4)", "take(-1)", "skip(4)", "shard(4, 2)", "batch(4)", "repeat(3)"]
CALLS += ["batch(4, drop_remainder=True)", "concatenate(range(5, 9))", "prefetch(2)"]
CALLS += ["skip(1).map(lambda x: x + 1).repeat(2).shard(3, 1).take(9).batch(2)"]
SOURCES = ["range(10, 2, -2)", "from_tensor_slices(const([[1, 2], [3, 4], [5, 6]], 'int64'))"]
SOURCES += ["from_tensors(const([1, 2], 'int64'))", "zip((range(3), range(5, 9)))"]
test_every_element = same([*SOURCES, *(f"range(9).{call}" for call in CALLS)], by=assert_same_elements)
