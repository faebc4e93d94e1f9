"""random: random integers without end."""

import numpy as np

from dataset import Dataset, TensorSpec
from dataset.testing import check_operator


def test_gives_32_bits_that_are_equally_likely():
    dataset = Dataset.random(seed=4)
    (values,) = dataset.take(40_000).batch(40_000)
    assert dataset.element_spec == TensorSpec((), np.int64)
    assert values.dtype == np.int64
    assert 0 <= values.min() < 2**20
    assert 2**32 - 2**20 < values.max() < 2**32
    bits = (values[:, None] >> np.arange(32)) & 1
    assert (abs(bits.mean(axis=0) - 0.5) < 4 * 0.5 / 200).all()
    assert len(set(values.tolist())) > 39_990


def test_depends_neither_on_demand_nor_on_where_it_was_resumed():
    check_operator(lambda: Dataset.random(seed=1).take(30))
    check_operator(lambda: Dataset.random(seed=1, rerandomize_each_iteration=True).take(7).repeat(2))


def test_a_dataset_that_stands_twice_gives_the_same_twice_or_not():
    same, other = Dataset.random(5), Dataset.random(5, True)
    assert all(a == b for a, b in Dataset.zip(same, same).take(5))
    assert all(a != b for a, b in Dataset.zip(other, other).take(5))
