"""assert_cardinality: the number of elements, said by the user and held to."""

import numpy as np
import pytest

from dataset import INFINITE_CARDINALITY, CardinalityError, Dataset
from dataset.testing import check_laziness, check_operator
from support.op_cases import fail_at, ints


def evens(count):
    return Dataset.range(2 * count).filter(lambda x: x % 2 == 0)


def test_gives_the_elements_and_says_how_many_there_are():
    check_operator(lambda: evens(5).assert_cardinality(5), ints(0, 2, 4, 6, 8))
    assert len(evens(5).assert_cardinality(5).batch(2).repeat(3)) == 9
    expected = [np.int64(0), ValueError("bad 2"), np.int64(4)]  # an element that fails counts as one
    check_operator(lambda: evens(3).map(fail_at(2)).assert_cardinality(3), expected)
    assert [int(x) for x in evens(3).map(fail_at(2)).ignore_errors().assert_cardinality(2)] == [0, 4]
    check_operator(lambda: evens(2).repeat().assert_cardinality(INFINITE_CARDINALITY).take(3), ints(0, 2, 0))


@pytest.mark.parametrize(
    ("count", "expected", "words"),
    [
        (3, 4, r"assert_cardinality\(4\) from test_assert_cardinality.py:\d+: expected 4 elements, but .* only 3;"),
        (9, 2, "expected 2 elements, but the input has more"),
        (2, INFINITE_CARDINALITY, "expected infinitely many elements, but the input has only 2"),
    ],
)
def test_another_number_is_an_error_in_the_place_of_the_first_difference(count, expected, words):
    assert evens(count).assert_cardinality(expected).cardinality() == expected
    *elements, error = check_operator(lambda: evens(count).assert_cardinality(expected))
    assert elements == [0, 2, 4][: min(count, expected) if expected > 0 else count]
    with pytest.raises(CardinalityError, match=words):
        raise error


def test_takes_no_more_than_is_requested():
    check_laziness(lambda numbers: numbers.filter(lambda x: True).assert_cardinality(50), lambda k: k)


def test_a_number_that_the_plan_contradicts_is_refused_at_once():
    assert list(Dataset.range(3).assert_cardinality(3)) == [0, 1, 2]
    with pytest.raises(ValueError, match=r"expected 4 elements, but the input has 3 elements"):
        Dataset.range(3).assert_cardinality(4)
    with pytest.raises(ValueError, match=r"expected 1 element, but the input has infinitely many elements"):
        Dataset.range(3).repeat().assert_cardinality(1)
    with pytest.raises(ValueError, match="must be at least 0"):
        Dataset.range(3).assert_cardinality(-2)


@pytest.mark.parametrize("remainder", ["drop", "pad", "repeat", "keep"])
def test_a_share_has_its_share_of_the_number(remainder):
    called = []
    numbers = evens(7).map(lambda x: called.append(x) or x)
    shares = [numbers.assert_cardinality(7).shard_by_process(rank, 2, remainder=remainder) for rank in (0, 1)]
    lengths = {"drop": [3, 3], "pad": [4, 4], "repeat": [4, 4], "keep": [4, 3]}[remainder]
    assert [len(share) for share in shares] == lengths
    assert [len(list(share)) for share in shares] == lengths
    assert len(called) <= 8  # each process makes its own only
