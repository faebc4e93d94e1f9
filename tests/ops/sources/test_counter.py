"""counter: numbers at equal steps without end. tests/oracle compares the numbers with tf.data's."""

import numpy as np
import pytest

from dataset import Dataset
from dataset.testing import check_operator


@pytest.mark.parametrize(
    ("start", "step", "dtype"),
    [(5, -2, np.int64), (126, 50, np.int8), (1, -1, np.uint64), (2**63 - 2, 1, np.int64), (2**64 - 1, 1, np.uint64)],
)
def test_integers_wrap_around(start, step, dtype):
    expected = [np.array([(start + i * step) % 2**64], np.uint64).astype(dtype)[0] for i in range(12)]
    check_operator(lambda: Dataset.counter(start, step, dtype).take(12), expected)


def test_a_batch_is_the_users_to_write_into():
    for dataset in (Dataset.counter().batch(3).take(2), Dataset.range(6).batch(3)):
        for batch in dataset:
            batch[:] = -1
        assert [batch.tolist() for batch in dataset] == [[0, 1, 2], [3, 4, 5]]
