"""skip: all but the first elements. tests/oracle compares counts and structures with tf.data's."""

import numpy as np
import pytest

from dataset import Dataset
from dataset.testing import check_laziness, check_operator
from support.op_cases import fail_at, ints


@pytest.mark.parametrize("count", [0, 3, 9, -7, np.int64(2)])
def test_leaves_out_the_first_elements(count):
    first = min(int(count), 5) if count >= 0 else 5
    check_operator(lambda: Dataset.range(5).skip(count), ints(*range(first, 5)))
    assert len(Dataset.range(5).skip(count)) == 5 - first


def test_skips_many_elements():
    check_operator(lambda: Dataset.range(5000).map(lambda x: x).skip(4998), ints(4998, 4999))


def test_takes_what_it_skips_and_what_it_gives_but_nothing_where_everything_is_skipped():
    check_laziness(lambda numbers: numbers.skip(7), lambda k: k + 7 if k else 0)
    check_laziness(lambda numbers: numbers.skip(0), lambda k: k)
    check_laziness(lambda numbers: numbers.skip(-1), lambda k: 0)
    check_operator(lambda: Dataset.range(3).repeat().skip(-1), [])
    check_operator(lambda: Dataset.range(3).map(fail_at(1)).skip(-5), [])


def test_an_exception_among_the_skipped_comes_out_and_the_skipping_continues():
    # tf.data starts counting again after the exception; here an exception is not counted, as in take.
    expected = [ValueError("bad 1"), *ints(4, 5)]
    check_operator(lambda: Dataset.range(6).map(fail_at(1)).skip(3), expected)
