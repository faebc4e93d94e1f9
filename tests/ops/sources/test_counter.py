"""counter: numbers at equal steps without end."""

import numpy as np
import pytest

from dataset import Dataset, TensorSpec
from dataset.testing import assert_elements_equal, check_operator

DTYPES = [np.int8, np.uint8, np.int32, np.int64, np.uint64, np.float16, np.float32, np.float64, np.complex64]


@pytest.mark.parametrize(("start", "step"), [(0, 1), (5, 2), (5, -2), (3, 0), (np.int32(1), np.int64(2))])
def test_counts(start, step):
    expected = [np.int64(start + i * step) for i in range(20)]
    check_operator(lambda: Dataset.counter(start, step).take(20), expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_counts_in_the_dtype(dtype):
    assert_elements_equal(list(Dataset.counter(3, 4, dtype).take(5)), [dtype(3 + 4 * i) for i in range(5)])
    dataset = Dataset.counter(dtype=dtype)
    assert dataset.element_spec == TensorSpec((), dtype)
    assert dataset.cardinality() == -1


@pytest.mark.parametrize(
    ("start", "step", "dtype"),
    [
        (126, 1, np.int8),
        (126, 50, np.int8),
        (254, 1, np.uint8),
        (1, -1, np.uint8),
        (1, -1, np.uint64),
        (300, 300, np.uint8),
        (2**63 - 2, 1, np.int64),
        (-(2**63), -1, np.int64),
        (2**64 - 1, 1, np.uint64),
    ],
)
def test_integers_wrap_around(start, step, dtype):
    expected = [np.array([(start + i * step) % 2**64], np.uint64).astype(dtype)[0] for i in range(6)]
    check_operator(lambda: Dataset.counter(start, step, dtype).take(6), expected)


@pytest.mark.parametrize(
    ("start", "step", "dtype"),
    [
        (0, 0.1, np.float32),
        (0.5, 0.1, np.float64),
        (2.0**24 - 2, 1, np.float32),
        (65472, 16, np.float16),
        (np.inf, 1, np.float32),
        (np.inf, -np.inf, np.float64),
        (np.nan, 1, np.float32),
        (1e300, 1, np.float32),
        (2**70, 1, np.float64),
    ],
)
def test_floats_round_at_each_step_whatever_the_demand(start, step, dtype):
    value, expected = np.array([start], np.float64), []
    with np.errstate(over="ignore", invalid="ignore"):
        value = value.astype(dtype)
        for _ in range(6):
            expected.append(value[0])
            value = value + np.array([step], np.float64).astype(dtype)
    check_operator(lambda: Dataset.counter(start, step, dtype).take(6), expected)


def test_a_batch_is_the_users_to_write_into():
    dataset = Dataset.counter().batch(3).take(2)
    for batch in dataset:
        batch[:] = -1
    assert [batch.tolist() for batch in dataset] == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("dtype", [bool, str, bytes, object, "datetime64[s]"])
def test_refuses_a_type_that_is_no_number(dtype):
    with pytest.raises(TypeError, match=r"counter\(\): dtype must be a numeric dtype"):
        Dataset.counter(dtype=dtype)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((0.5,), TypeError, "start must be an int, got 0.5"),
        ((2.0,), TypeError, "start must be an int"),
        ((0, 0.5), TypeError, "step must be an int"),
        (("a",), TypeError, "start must be an int"),
        ((None,), TypeError, "start must be an int"),
        ((True,), TypeError, "start must be an int"),
        (([1, 2],), TypeError, "start must be an int"),
        ((1j, 1, np.float32), TypeError, "start must be a real number"),
        ((0, "a", np.complex64), TypeError, "step must be a number"),
        ((2**63,), ValueError, "start must fit into 64 bits"),
        ((0, 2**64), ValueError, "step must fit into 64 bits"),
        ((2**64, 1, np.uint64), ValueError, "start must fit into 64 bits"),
    ],
)
def test_refuses_what_is_no_number_for_the_dtype(arguments, error, words):
    with pytest.raises(error, match=rf"counter\(\): {words}"):
        Dataset.counter(*arguments)
