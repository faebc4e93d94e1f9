"""Tests of skip against tf.data's."""

import numpy as np
import pytest
from cases import ELEMENTS, SOURCES, failing
from compare import assert_both_refuse, assert_same

from support.combinations import diagonals

COUNTS = [0, 1, 3, 6, 7, 8, 100, np.int64(2), np.int32(3), np.array(2)]
ENDS = [source for source in SOURCES if not source.startswith("fails")]


@pytest.mark.parametrize(("source", "count"), diagonals(2, ENDS, COUNTS), ids=str)
def test_counts(source, count):
    assert_same(lambda lib: SOURCES[source](lib).skip(count), limit=12)


@pytest.mark.parametrize("count", [-1, -5])
@pytest.mark.parametrize("source", SOURCES)
def test_a_negative_count_means_everything(source, count):
    assert_same(lambda lib: SOURCES[source](lib).skip(count), limit=12)


@pytest.mark.parametrize("bad", [(0,), (3,), (6,), (0, 6), (4, 5), (2, 3)])
@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_failures(count, bad):
    # If an exception is raised while tf.data skips, it restarts the count after it; see tests/ops/test_skip.py.
    if bad[0] >= count or count <= 1:
        assert_same(lambda lib: failing(lib, *bad).skip(count))


@pytest.mark.parametrize("element", ELEMENTS)
def test_structures(element):
    assert_same(lambda lib: lib.Dataset.from_tensors(ELEMENTS[element](lib)).repeat(3).skip(2))


def test_more_than_once():
    assert_same(lambda lib: lib.Dataset.range(7).skip(2).skip(3))
    assert_same(lambda lib: lib.Dataset.range(7).skip(5).repeat(2).skip(1))
    assert_same(lambda lib: lib.Dataset.range(7).take(5).skip(3))
    assert_same(lambda lib: lib.Dataset.range(7).skip(3).take(2))


@pytest.mark.parametrize("count", [2.0, "2", None, [2], np.array([2])], ids=repr)
def test_what_is_no_count(count):
    assert_both_refuse(lambda lib: lib.Dataset.range(5).skip(count), TypeError)
