"""Tests of shard against tf.data's."""

import numpy as np
import pytest
from cases import ELEMENTS, SOURCES, failing
from compare import assert_both_refuse, assert_same

from support.combinations import diagonals

SHARDS = [(1, 0), (2, 0), (2, 1), (3, 2), (7, 6), (8, 7), (100, 0), (100, 99), (np.int64(3), np.int32(1))]


@pytest.mark.parametrize(("source", "shard"), diagonals(2, SOURCES, SHARDS), ids=str)
def test_shards(source, shard):
    assert_same(lambda lib: SOURCES[source](lib).shard(*shard), limit=12)


# If an exception is raised in the middle of a range that it skips, tf.data restarts the count of skipped elements.
@pytest.mark.parametrize("bad", [(0,), (1,), (2,), (6,), (1, 2), (0, 1, 2, 3, 5, 6)])
@pytest.mark.parametrize("shard", [(1, 0), (2, 0), (2, 1)], ids=str)
def test_failures(shard, bad):
    assert_same(lambda lib: failing(lib, *bad).shard(*shard))


@pytest.mark.parametrize("element", ELEMENTS)
def test_structures(element):
    assert_same(lambda lib: lib.Dataset.from_tensors(ELEMENTS[element](lib)).repeat(3).shard(2, 1))


def test_more_than_once():
    assert_same(lambda lib: lib.Dataset.range(20).shard(2, 1).shard(3, 2))
    assert_same(lambda lib: lib.Dataset.range(5).shard(2, 1).repeat(2))
    assert_same(lambda lib: lib.Dataset.range(5).repeat(2).shard(2, 1))


@pytest.mark.parametrize("shard", [(2, 2), (2, 5), (2, -1), (0, 0), (-1, 0), (-2, -1)], ids=str)
def test_numbers_out_of_range(shard):
    assert_both_refuse(lambda lib: lib.Dataset.range(5).shard(*shard), ValueError)


@pytest.mark.parametrize("shard", [(2.0, 1), (2, 1.0), ("2", 1), (None, 0), (2, None), ([2], 0)], ids=str)
def test_what_is_no_number(shard):
    assert_both_refuse(lambda lib: lib.Dataset.range(5).shard(*shard), TypeError)
