"""Tests of take against tf.data's."""

import numpy as np
import pytest
from cases import ELEMENTS, SOURCES
from compare import assert_both_refuse, assert_same

from support.combinations import diagonals


@pytest.mark.parametrize(
    ("source", "count"),
    diagonals(2, SOURCES, [0, 1, 3, 6, 7, 8, 100, -1, np.int64(2), np.int32(3), np.array(2)]),
    ids=str,
)
def test_counts(source, count):
    assert_same(lambda lib: SOURCES[source](lib).take(count), limit=12)


@pytest.mark.parametrize("source", SOURCES)
def test_any_negative_count_means_everything(source):
    # tf.data returns the count -5 as the cardinality, which is invalid; here it is that of take(-1).
    assert_same(lambda lib: SOURCES[source](lib).take(-5), limit=12, cardinality=False)


@pytest.mark.parametrize("element", ELEMENTS)
def test_structures(element):
    assert_same(lambda lib: lib.Dataset.from_tensors(ELEMENTS[element](lib)).repeat(3).take(2))


def test_more_than_once():
    assert_same(lambda lib: lib.Dataset.range(7).take(5).take(3))
    assert_same(lambda lib: lib.Dataset.range(7).take(2).repeat(2).take(3))
    assert_same(lambda lib: lib.Dataset.range(7).repeat().take(0).repeat())


@pytest.mark.parametrize("count", [2.0, "2", None, [2], np.array([2])], ids=repr)
def test_what_is_no_count(count):
    assert_both_refuse(lambda lib: lib.Dataset.range(5).take(count), TypeError)
