"""shard: every n-th element. tests/oracle compares sources, cardinalities and failures with tf.data."""

import pytest

from dataset import Dataset
from dataset.testing import check_laziness, check_operator
from support.op_cases import fail_at, ints


@pytest.mark.parametrize("shards", [1, 3, 11])
def test_the_shards_share_the_elements(shards):
    for index in range(shards):
        check_operator(lambda: Dataset.range(10).shard(shards, index), ints(*range(10)[index::shards]))


def test_takes_no_more_than_up_to_the_element_it_returns():
    check_laziness(lambda numbers: numbers.shard(3, 1), lambda k: 3 * k - 1 if k else 0)
    check_laziness(lambda numbers: numbers.shard(4, 0), lambda k: 4 * k - 3 if k else 0, size=49)


def test_exceptions_are_not_counted():
    bad = ValueError("bad 2")
    check_operator(lambda: Dataset.range(6).map(fail_at(2)).shard(2, 0), [*ints(0), bad, *ints(3, 5)])
    check_operator(lambda: Dataset.range(6).map(fail_at(2)).shard(2, 1), [*ints(1), bad, *ints(4)])
    check_operator(lambda: Dataset.range(9).map(fail_at(1)).shard(3, 1), [ValueError("bad 1"), *ints(2, 5, 8)])
