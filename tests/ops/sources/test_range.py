"""range: numbers at equal steps."""

import numpy as np
import pytest

from dataset import Dataset, TensorSpec
from dataset.testing import check_operator


@pytest.mark.parametrize(
    "arguments",
    [(5,), (0,), (-3,), (2, 5), (5, 2), (0, 10, 3), (10, 0, -3), (0, 10, -1), (-5, 5, 5), (7, 8, 100), (1, 1)],
)
def test_gives_the_numbers_of_pythons_range(arguments):
    expected = [np.int64(i) for i in range(*arguments)]
    check_operator(lambda: Dataset.range(*arguments), expected)
    assert len(Dataset.range(*arguments)) == len(expected)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64, np.float16, np.float32, np.float64])
@pytest.mark.parametrize("arguments", [(4,), (3, -1, -1), (1, 20, 7)])
def test_gives_them_in_the_output_type(dtype, arguments):
    check_operator(lambda: Dataset.range(*arguments, output_type=dtype), [dtype(i) for i in range(*arguments)])
    assert Dataset.range(*arguments, output_type=dtype).element_spec == TensorSpec((), dtype)


@pytest.mark.parametrize(
    ("start", "stop", "dtype"),
    [
        (2**24, 2**24 + 6, np.float32),
        (2046, 2054, np.float16),
        (2049, 2053, np.float16),
        (2**53, 2**53 + 6, np.float64),
    ],
)
def test_rounds_each_number_by_itself_where_the_output_type_cannot_hold_all(start, stop, dtype):
    check_operator(lambda: Dataset.range(start, stop, output_type=dtype), [dtype(i) for i in range(start, stop)])
    check_operator(lambda: Dataset.range(start, stop, output_type=dtype).batch(10))
    batch = next(iter(Dataset.range(start, stop, output_type=dtype).batch(10)))
    assert batch.tolist() == [float(dtype(i)) for i in range(start, stop)]


def test_gives_numbers_near_the_ends_of_64_bits():
    top = 2**63 - 1
    check_operator(lambda: Dataset.range(top - 2, top), [np.int64(top - 2), np.int64(top - 1)])
    check_operator(lambda: Dataset.range(-(2**63), -(2**63) + 2), [np.int64(-(2**63)), np.int64(-(2**63) + 1)])
    check_operator(
        lambda: Dataset.range(2**63, 2**63 + 2, output_type=np.uint64), [np.uint64(2**63), np.uint64(2**63 + 1)]
    )


@pytest.mark.parametrize("numbers", [(126, 130, 1, np.int8), (-1, 2, 1, np.uint8), (2**31 - 1, 2**31 + 2, 1, np.int32)])
def test_numbers_beyond_an_integer_type_fail_at_construction_or_wrap_as_in_tf_data(numbers):
    *arguments, dtype = numbers
    try:
        dataset = Dataset.range(*arguments, output_type=dtype)
    except (ValueError, OverflowError) as error:
        assert "range()" in str(error)  # noqa: PT017  # either is right, a failure while iterating is not
    else:
        assert [int(x) for x in dataset] == np.arange(*arguments).astype(dtype).tolist()


def test_takes_numpy_integers_and_a_long_range_at_once():
    assert list(Dataset.range(np.int32(2), np.int64(4))) == [2, 3]
    assert len(Dataset.range(10**15)) == 10**15
    assert next(iter(Dataset.range(10**15).skip(10**6))) == 10**6


@pytest.mark.parametrize("arguments", [(), (1, 2, 3, 4)])
def test_refuses_another_number_of_arguments(arguments):
    with pytest.raises(ValueError, match=rf"range\(\).*got {len(arguments)} numbers"):
        Dataset.range(*arguments)


@pytest.mark.parametrize("arguments", [("a",), (1.0,), (0, 2.5), (True,), (None,), ([3],)])
def test_refuses_what_is_no_int(arguments):
    with pytest.raises(TypeError, match=r"range\(\): (stop|start) must be an int"):
        Dataset.range(*arguments)


@pytest.mark.parametrize("arguments", [(2**63, 2**63 + 1), (-(2**63) - 1, 0), (2**64,), (0, -(2**70), -(2**69))])
def test_refuses_numbers_that_no_int64_holds(arguments):
    with pytest.raises(ValueError, match=r"range\(\): numbers must fit into 64 bits"):
        Dataset.range(*arguments)


def test_refuses_a_step_of_zero():
    with pytest.raises(ValueError, match="step must not be 0"):
        Dataset.range(0, 5, 0)


@pytest.mark.parametrize("dtype", [bool, str, bytes, object, "datetime64[s]", np.complex64, None])
def test_refuses_a_type_that_is_no_number(dtype):
    with pytest.raises(TypeError, match="output_type must be a numeric dtype"):
        Dataset.range(3, output_type=dtype)


def test_a_batch_is_the_users_to_write_into():
    dataset = Dataset.range(4).batch(2)
    for batch in dataset:
        batch[:] = -1
    assert [batch.tolist() for batch in dataset] == [[0, 1], [2, 3]]
