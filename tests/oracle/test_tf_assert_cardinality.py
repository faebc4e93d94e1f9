"""Tests of assert_cardinality against tf.data.experimental.assert_cardinality."""

import pytest
import tensorflow as tf

from dataset import CardinalityError, Dataset


@pytest.mark.parametrize(("count", "expected"), [(0, 0), (5, 5), (5, -1), (3, 4), (4, 3), (0, 1), (1, 0)])
def test_elements_before_the_error_and_the_number(count, expected):
    theirs = tf.data.Dataset.range(count).filter(lambda x: True)
    theirs = theirs.apply(tf.data.experimental.assert_cardinality(expected))
    ours = Dataset.range(count).filter(lambda x: True).assert_cardinality(expected)
    assert ours.cardinality() == int(theirs.cardinality())
    assert taken(ours, CardinalityError) == taken(theirs.as_numpy_iterator(), tf.errors.FailedPreconditionError)


def taken(elements, refusal):
    found = []
    try:
        found.extend(int(element) for element in elements)
    except refusal:
        found.append("refused")
    return found
