"""enumerate: each element with its number before it. tests/oracle compares starts and failures with tf.data's."""

import numpy as np
import pytest

from dataset import Dataset
from dataset.testing import check_laziness, check_operator
from support.op_cases import fail_at, ints


@pytest.mark.parametrize("start", [0, -3, np.int32(7), 2**62])
def test_numbers_the_elements_and_an_element_that_fails_uses_up_its_number(start):
    pairs = [tuple(ints(start + i, i)) for i in range(4)]
    pairs[1] = ValueError("bad 1")
    check_operator(lambda: Dataset.range(4).map(fail_at(1)).enumerate(start), pairs)
    batches = [ValueError("bad 1"), (np.array(ints(start + 2, start + 3)), np.array([2, 3]))]
    check_operator(lambda: Dataset.range(4).map(fail_at(1)).enumerate(start).batch(2), batches)
    check_laziness(lambda numbers: numbers.enumerate(start), lambda k: k)


def test_ends_where_the_numbers_do():
    top = 2**63 - 1
    check_operator(
        lambda: Dataset.range(5).repeat().enumerate(top - 2), [tuple(ints(top - 2 + i, i)) for i in range(2)]
    )
