"""range: numbers at equal steps. tests/oracle compares the numbers with tf.data's."""

import numpy as np
import pytest

from dataset import Dataset
from dataset.testing import check_operator

TOP = 2**63


@pytest.mark.parametrize(
    ("arguments", "dtype"),
    [
        ((10, 0, -3), np.int8),
        ((TOP - 3, TOP - 1), np.int64),
        ((TOP, TOP + 2), np.uint64),
        ((2049, 2053), np.float16),  # numbers that the type cannot hold are rounded one by one
    ],
)
def test_gives_the_numbers_of_pythons_range_in_the_output_type(arguments, dtype):
    expected = [dtype(i) for i in range(*arguments)]
    dataset = Dataset.range(*arguments, output_type=dtype)
    check_operator(lambda: dataset, expected)
    assert len(dataset) == len(expected)
    assert [batch.tolist() for batch in dataset.batch(20)] == [[x.item() for x in expected]]


def test_takes_numpy_integers_and_a_long_range_at_once():
    assert list(Dataset.range(np.int32(2), np.int64(4))) == [2, 3]
    assert len(Dataset.range(10**15)) == 10**15
    assert next(iter(Dataset.range(10**15).skip(10**6))) == 10**6
