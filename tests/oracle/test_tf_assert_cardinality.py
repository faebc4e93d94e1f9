"""Tests of assert_cardinality against tf.data.experimental.assert_cardinality."""

import pytest
from compare import in_both

from dataset import CardinalityError


@pytest.mark.parametrize(("count", "expected"), [(0, 0), (5, 5), (5, -1), (3, 4), (4, 3), (0, 1), (1, 0)])
def test_elements_before_the_error_and_the_number(count, expected):
    def use(lib):
        dataset = lib.range(count).filter(lambda x: True)
        if lib.name == "dataset":
            dataset, refusal = dataset.assert_cardinality(expected), CardinalityError
        else:
            dataset = dataset.apply(lib.tf.data.experimental.assert_cardinality(expected))
            refusal = lib.tf.errors.FailedPreconditionError
        return int(dataset.cardinality()), taken(dataset, refusal)

    ours, theirs = in_both(use)
    assert ours == theirs


def taken(elements, refusal):
    found = []
    try:
        found.extend(int(element) for element in elements)
    except refusal:
        found.append("refused")
    return found
