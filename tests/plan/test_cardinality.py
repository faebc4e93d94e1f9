"""Counts, and the two constants that stand for no count; the table is what tf.data 2.21 says."""

import numpy as np
import pytest

from dataset import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset
from dataset.plan.cardinality import is_known, map_known, shortest, total

INF, UNKNOWN = INFINITE_CARDINALITY, UNKNOWN_CARDINALITY


def unknown():
    return Dataset.range(10).filter(lambda x: x < 5)


def endless():
    return Dataset.range(3).repeat()


def test_the_constants_have_the_values_of_tensorflow():
    assert (INF, UNKNOWN) == (-1, -2)


def test_arithmetic_of_counts():
    assert is_known(0)
    assert not is_known(INF)
    assert not is_known(UNKNOWN)
    assert map_known(lambda n: n + 1, 2) == 3
    assert map_known(lambda n: n + 1, UNKNOWN) == UNKNOWN
    assert total([1, 2]) == 3
    assert total([]) == 0
    assert total([UNKNOWN, INF]) == total([INF, UNKNOWN, 0]) == INF
    assert total([UNKNOWN, 3]) == UNKNOWN
    assert shortest([3, INF, 2]) == 2
    assert shortest([INF, INF]) == INF
    assert shortest([UNKNOWN, INF]) == shortest([UNKNOWN, 3]) == UNKNOWN


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: Dataset.range(0), 0),
        (lambda: Dataset.range(10, 0, -3), 4),
        (lambda: Dataset.range(0).repeat(), 0),
        (lambda: Dataset.range(3).repeat(-5), INF),
        (lambda: Dataset.range(3).repeat(0), 0),
        (lambda: Dataset.range(3).repeat(4), 12),
        (lambda: unknown().repeat(), INF),
        (lambda: unknown().repeat(0), 0),
        (lambda: endless().repeat(3), INF),
        (lambda: endless().repeat(0), 0),
        (lambda: Dataset.range(10).take(3), 3),
        (lambda: Dataset.range(10).take(-5), 10),
        (lambda: Dataset.range(10).take(30), 10),
        (lambda: endless().take(3), 3),
        (lambda: endless().take(-1), INF),
        (lambda: unknown().take(3), UNKNOWN),
        (lambda: unknown().take(0), UNKNOWN),
        (lambda: Dataset.range(10).skip(3), 7),
        (lambda: Dataset.range(10).skip(30), 0),
        (lambda: Dataset.range(10).skip(-1), 0),
        (lambda: endless().skip(3), INF),
        (lambda: unknown().skip(3), UNKNOWN),
        (lambda: Dataset.range(10).shard(3, 0), 4),
        (lambda: Dataset.range(10).shard(3, 1), 3),
        (lambda: endless().shard(3, 1), INF),
        (lambda: Dataset.range(10).batch(4), 3),
        (lambda: Dataset.range(10).batch(4, drop_remainder=True), 2),
        (lambda: endless().batch(4), INF),
        (lambda: unknown().batch(4), UNKNOWN),
        (lambda: Dataset.range(10).padded_batch(4), 3),
        (lambda: Dataset.range(10).batch(2).unbatch(), UNKNOWN),
        (lambda: Dataset.range(10).batch(3, drop_remainder=True).unbatch(), 9),
        (lambda: Dataset.range(10).map(lambda x: x), 10),
        (lambda: Dataset.range(10).filter(lambda x: True), UNKNOWN),
        (lambda: endless().filter(lambda x: True), UNKNOWN),
        (lambda: Dataset.range(10).flat_map(Dataset.range), UNKNOWN),
        (lambda: Dataset.range(10).interleave(Dataset.range), UNKNOWN),
        (lambda: Dataset.zip(Dataset.range(3), endless()), 3),
        (lambda: Dataset.zip(endless(), endless()), INF),
        (lambda: Dataset.zip(unknown(), endless()), UNKNOWN),
        (lambda: Dataset.range(3).concatenate(Dataset.range(4)), 7),
        (lambda: unknown().concatenate(endless()), INF),
        (lambda: unknown().concatenate(Dataset.range(4)), UNKNOWN),
        (lambda: Dataset.from_generator(lambda: iter([1])), UNKNOWN),
        (lambda: Dataset.from_tensors([1, 2]), 1),
        (lambda: Dataset.from_tensor_slices(np.zeros((5, 2))), 5),
        (lambda: Dataset.range(5).shuffle(3).cache().prefetch(2).enumerate(), 5),
    ],
)
def test_cardinality_is_that_of_tf_data(make, expected):
    assert make().cardinality() == expected


def test_asking_for_the_cardinality_runs_nothing():
    def fail(x):
        raise AssertionError("called")

    assert Dataset.range(4).map(fail).batch(3).cardinality() == 2


def test_len_of_what_has_no_length_is_a_type_error():
    with pytest.raises(TypeError, match="infinite"):
        len(endless())
    with pytest.raises(TypeError, match="unknown"):
        len(unknown())
    assert len(Dataset.range(4)) == 4


def test_a_dataset_is_true_even_when_empty():
    assert bool(Dataset.range(0))
    assert bool(unknown())
