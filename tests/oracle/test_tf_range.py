"""Tests of range against tf.data's."""

import numpy as np
import pytest
from compare import assert_both_refuse, assert_same

BOUNDS = [(5,), (0,), (1,), (-3,), (2, 7), (7, 2), (3, 3), (-4, 2), (0, 10, 3), (0, 9, 3), (10, 0, -3), (0, 10, -1)]
BOUNDS += [(5, 0, -5), (-1, -8, -2), (2, 3, 100), (3, 2, -100)]


@pytest.mark.parametrize("bounds", BOUNDS, ids=repr)
def test_bounds(bounds):
    assert_same(lambda lib: lib.Dataset.range(*bounds))


DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bounds", [(5,), (0, 10, 4), (3, 0, -1)], ids=repr)
def test_output_types(bounds, dtype):
    assert_same(lambda lib: lib.Dataset.range(*bounds, output_type=np.dtype(dtype).type))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_numbers_that_the_output_type_cannot_hold(dtype):
    assert_same(lambda lib: lib.Dataset.range(250, 260, output_type=np.dtype(dtype).type))
    assert_same(lambda lib: lib.Dataset.range(-2, 2, output_type=np.dtype(dtype).type))
    assert_same(lambda lib: lib.Dataset.range(65_530, 65_540, output_type=np.dtype(dtype).type))


def test_large_numbers():
    assert_same(lambda lib: lib.Dataset.range(2**40, 2**40 + 3))
    assert_same(lambda lib: lib.Dataset.range(2**62), limit=3)
    assert_same(lambda lib: lib.Dataset.range(-(2**62), 0, 2**60))


@pytest.mark.parametrize("number", [np.int64(3), np.int32(3), np.uint8(3), np.array(3)], ids=repr)
def test_numbers_of_numpy(number):
    assert_same(lambda lib: lib.Dataset.range(number))


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ((), ValueError),
        ((1, 2, 3, 4), ValueError),
        ((0, 5, 0), ValueError),
        ((2.5,), TypeError),
        (("3",), TypeError),
        ((None,), TypeError),
        (([1],), TypeError),
        ((0, 5, 1.5), TypeError),
    ],
    ids=repr,
)
def test_what_is_no_range(args, error):
    assert_both_refuse(lambda lib: lib.Dataset.range(*args), error)


@pytest.mark.parametrize("bounds", [(2**63, 2**63 + 2), (2**64,), (-(2**63) - 1, 0), (2**70, 0, -(2**69))])
def test_bounds_beyond_64_bits(bounds):
    assert_both_refuse(lambda lib: lib.Dataset.range(*bounds), ValueError)


@pytest.mark.parametrize("dtype", [bytes, bool, complex, None])
def test_what_is_no_output_type(dtype):
    assert_both_refuse(lambda lib: lib.Dataset.range(3, output_type=dtype), TypeError)
