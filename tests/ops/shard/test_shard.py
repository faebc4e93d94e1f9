"""shard: every n-th element."""

import numpy as np
import pytest

from dataset import Dataset
from dataset.testing import check_laziness, check_operator
from support.op_cases import fail_at


@pytest.mark.parametrize("shards", [1, 2, 3, 10, 11])
def test_the_shards_share_the_data(shards):
    everything = []
    for index in range(shards):
        expected = [np.int64(i) for i in range(10)[index::shards]]
        check_operator(lambda: Dataset.range(10).shard(shards, index), expected)
        assert len(Dataset.range(10).shard(shards, index)) == len(expected)
        everything += expected
    assert sorted(everything) == list(range(10))


def test_shards_of_shards():
    check_operator(lambda: Dataset.range(20).shard(2, 1).shard(3, 2), [np.int64(i) for i in (5, 11, 17)])


def test_takes_no_more_than_up_to_the_element_it_gives():
    check_laziness(lambda numbers: numbers.shard(3, 1), lambda k: 3 * k - 1 if k else 0, size=50)
    check_laziness(lambda numbers: numbers.shard(4, 0), lambda k: 4 * k - 3 if k else 0, size=49)


def test_exceptions_are_not_counted_as_in_tf_data():
    bad = ValueError("bad 2")
    check_operator(lambda: Dataset.range(6).map(fail_at(2)).shard(2, 0), [np.int64(0), bad, np.int64(3), np.int64(5)])
    check_operator(lambda: Dataset.range(6).map(fail_at(2)).shard(2, 1), [np.int64(1), bad, np.int64(4)])
    check_operator(
        lambda: Dataset.range(9).map(fail_at(1)).shard(3, 1), [ValueError("bad 1"), *[np.int64(i) for i in (2, 5, 8)]]
    )


def test_shards_endless_data_and_structures():
    check_operator(
        lambda: Dataset.range(3).enumerate().repeat().shard(2, 1).take(3),
        [(np.int64(i), np.int64(i)) for i in (1, 0, 2)],
    )


def test_arrays_are_given_as_they_are():
    rows = np.arange(12).reshape(6, 2)
    check_operator(lambda: Dataset.from_tensor_slices(rows).shard(2, 1), list(rows[1::2]))
    check_operator(lambda: Dataset.from_tensor_slices(rows).shard(2, 1).batch(3), [rows[1::2]])
    for row in Dataset.from_tensor_slices(rows).shard(2, 1):
        assert not row.flags.writeable


def test_knows_its_cardinality():
    assert Dataset.range(6).shard(4, 1).cardinality() == 2
    assert Dataset.range(6).shard(4, 3).cardinality() == 1
    assert Dataset.range(0).shard(4, 3).cardinality() == 0
    assert Dataset.range(6).repeat().shard(2, 0).cardinality() == -1
    assert Dataset.range(6).filter(lambda x: True).shard(2, 0).cardinality() == -2


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((0, 0), ValueError, "num_shards must be at least 1, got 0"),
        ((-1, 0), ValueError, "num_shards must be at least 1"),
        ((2, 2), ValueError, "index must be below num_shards, 2, got 2"),
        ((2, -1), ValueError, "index must be at least 0, got -1"),
        ((2.0, 0), TypeError, "num_shards must be an int"),
        ((2, 0.0), TypeError, "index must be an int"),
        ((2, None), TypeError, "index must be an int"),
    ],
)
def test_refuses_wrong_numbers(arguments, error, words):
    with pytest.raises(error, match=rf"shard\(\): {words}"):
        Dataset.range(3).shard(*arguments)
