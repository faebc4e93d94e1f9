"""Tests of dataset[i] against tf.data.experimental.at."""

import pytest
from compare import Ours, theirs

from dataset.testing import assert_elements_equal

PLANS = {
    "range": lambda lib: lib.range(10, 2, -2),
    "slices": lambda lib: lib.from_tensor_slices(lib.const([[1, 2], [3, 4], [5, 6]], "int64")),
    "tensors": lambda lib: lib.from_tensors(lib.const([1, 2], "int64")),
    "map": lambda lib: lib.range(5).map(lambda x: (x, {"a": x * 2})),
    "take": lambda lib: lib.range(9).take(4),
    "take all": lambda lib: lib.range(9).take(-1),
    "skip": lambda lib: lib.range(9).skip(4),
    "shard": lambda lib: lib.range(9).shard(4, 2),
    "batch": lambda lib: lib.range(9).batch(4),
    "batch drop": lambda lib: lib.range(9).batch(4, drop_remainder=True),
    "zip": lambda lib: lib.zip((lib.range(3), lib.range(5, 9))),
    "concatenate": lambda lib: lib.range(3).concatenate(lib.range(5, 9)),
    "repeat": lambda lib: lib.range(3).repeat(3),
    "prefetch": lambda lib: lib.range(3).prefetch(2),
    "chain": lambda lib: lib.range(20).skip(1).map(lambda x: x + 1).repeat(2).shard(3, 1).take(9).batch(2),
}


@pytest.mark.parametrize("plan", PLANS)
def test_every_element(plan):
    def elements(lib):
        options = lib.Options()
        options.experimental_optimization.apply_default_optimizations = False  # they create ops without random access
        dataset = PLANS[plan](lib).with_options(options)
        at, count = lib.tf.data.experimental.at, int(dataset.cardinality())
        with pytest.raises(lib.tf.errors.OpError):
            at(dataset, count)
        return [at(dataset, index) for index in range(count)]

    ours, expected = PLANS[plan](Ours()), theirs(elements)
    assert_elements_equal([ours[index] for index in range(len(expected))], expected)
    with pytest.raises(IndexError):
        ours[len(expected)]
