"""Counts, and the two constants that stand for no count; tests/oracle compares them with tf.data for chains of ops."""

import pytest

from dataset import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset
from dataset.plan.cardinality import is_known, map_known, shortest, total

INF, UNKNOWN = INFINITE_CARDINALITY, UNKNOWN_CARDINALITY


def test_arithmetic_of_counts():
    assert (INF, UNKNOWN) == (-1, -2)  # as in TensorFlow
    assert [is_known(count) for count in (0, INF, UNKNOWN)] == [True, False, False]
    assert map_known(lambda n: n + 1, 2) == 3
    assert map_known(lambda n: n + 1, UNKNOWN) == UNKNOWN
    assert [total([1, 2]), total([])] == [3, 0]
    assert total([UNKNOWN, INF]) == total([INF, UNKNOWN, 0]) == INF
    assert total([UNKNOWN, 3]) == UNKNOWN
    assert [shortest([3, INF, 2]), shortest([INF, INF])] == [2, INF]
    assert shortest([UNKNOWN, INF]) == shortest([UNKNOWN, 3]) == UNKNOWN


ENDLESS, UNSURE = Dataset.range(3).repeat(), Dataset.range(10).filter(lambda x: x < 5)


@pytest.mark.parametrize(
    ("dataset", "expected"),
    [
        (Dataset.range(10).take(-5), 10),
        (Dataset.range(10).padded_batch(4), 3),
        (ENDLESS.padded_batch(4), INF),
        (Dataset.range(4).map(lambda x: pytest.fail("called")).batch(3), 2),
    ],
)
def test_cardinality_beyond_what_the_oracle_compares(dataset, expected):
    assert dataset.cardinality() == expected


def test_len_of_what_has_no_length_is_a_type_error_and_a_dataset_is_true_even_when_empty():
    with pytest.raises(TypeError, match="infinite"):
        len(ENDLESS)
    with pytest.raises(TypeError, match="unknown"):
        len(UNSURE)
    assert len(Dataset.range(4)) == 4
    assert bool(Dataset.range(0))
    assert bool(UNSURE)
