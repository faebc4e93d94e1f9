"""zip: elements side by side. tests/oracle compares nestings, lengths and failures with tf.data's."""

import pytest

from dataset import Dataset
from dataset.testing import check_laziness, check_operator, outcomes
from support.op_cases import fail_at, ints
from support.pipelines import Pair


def pairs(*numbers):
    return [tuple(ints(a, b)) for a, b in numbers]


def test_pairs_elements_and_ends_with_the_shortest():
    check_operator(lambda: Dataset.zip(Dataset.range(3), Dataset.range(10, 20)), pairs((0, 10), (1, 11), (2, 12)))
    check_operator(lambda: Dataset.zip(Dataset.range(2).repeat(), Dataset.range(3)), pairs((0, 0), (1, 1), (0, 2)))
    (zero, five), numbers = ints(0, 5), {0: Dataset.range(1), 5: Dataset.range(5, 6)}
    nested = {"b": (numbers[5], numbers[0]), "a": Pair(numbers[0], (numbers[5],))}
    check_operator(lambda: Dataset.zip(nested), [{"b": (five, zero), "a": Pair(zero, (five,))}])


def test_takes_no_more_than_it_needs():
    check_laziness(lambda numbers: Dataset.zip(numbers, Dataset.range(100)), lambda k: k)
    check_laziness(lambda numbers: Dataset.zip(Dataset.range(100), numbers), lambda k: k)
    check_laziness(lambda numbers: Dataset.zip(numbers, Dataset.range(100).map(str)), lambda k: k)
    # the end of a generator shows only when it is requested
    check_laziness(lambda numbers: Dataset.zip(Dataset.from_generator(lambda: range(5)), numbers), lambda k: k)


@pytest.mark.parametrize("demand", [1, 3, 10])
@pytest.mark.parametrize("first", [Dataset.range(5), Dataset.from_generator(lambda: range(5))])
def test_does_not_read_one_source_past_the_end_of_an_earlier_one(first, demand):
    taken = []
    second = Dataset.from_generator(lambda: (taken.append(i) or i for i in range(20)))
    list(Dataset.zip(first, second).batch(demand))
    assert taken == list(range(5))


def test_an_exception_takes_the_element_of_the_other_with_it():
    bad = ValueError
    numbers = Dataset.range(4)
    check_operator(
        lambda: Dataset.zip(numbers, numbers.map(fail_at(1, 2))),
        [*pairs((0, 0)), bad("bad 1"), bad("bad 2"), *pairs((3, 3))],
    )
    check_operator(
        lambda: Dataset.zip(numbers.map(fail_at(0, 2)), numbers.map(fail_at(2, 3)).map(lambda x: x)),
        [bad("bad 0"), *pairs((1, 1)), bad("bad 2"), bad("bad 3")],
    )


def test_the_exception_of_the_first_dataset_is_the_one_that_is_raised():
    first, second = Dataset.range(4).map(fail_at(1)), Dataset.range(10, 14).map(fail_at(11))
    for one, other, words in ((first, second, "bad 1"), (second, first, "bad 11")):
        assert str(outcomes(iter(Dataset.zip(one, other)))[1]) == words


def test_an_exception_beside_an_end_comes_out_before_the_end():
    """And none after it, as in tf.data."""
    numbers = Dataset.range(6).map(fail_at(1, 2, 3))
    bad = [ValueError("bad 1"), ValueError("bad 2")]
    check_operator(lambda: Dataset.zip(numbers, Dataset.range(1)), [*pairs((0, 0)), bad[0]])
    check_operator(lambda: Dataset.zip(numbers, Dataset.range(2)), [*pairs((0, 0)), *bad])
    check_operator(lambda: Dataset.zip(Dataset.range(1), numbers), pairs((0, 0)))
