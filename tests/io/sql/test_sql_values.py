"""Tests of the conversion of SQL values to the declared types, and of errors if it would lose information."""

import math
import warnings
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset.io.sql.sql_values import ValueRefusedError, column_of, inferred_dtype, sql_dtype

INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


@pytest.mark.parametrize("dtype", INTEGERS)
@given(values=st.lists(st.integers(-(2**65), 2**65), min_size=1))
def test_an_integer_fits_its_dtype_or_is_refused(dtype, values):
    info = np.iinfo(dtype)
    if all(info.min <= value <= info.max for value in values):
        column = column_of(values, np.dtype(dtype))
        assert column.dtype == dtype
        assert column.tolist() == values
    else:
        with pytest.raises(ValueRefusedError, match="which ranges from"):
            column_of(values, np.dtype(dtype))


@given(values=st.lists(st.one_of(st.floats(), st.integers(-(2**60), 2**60), st.none()), min_size=1))
def test_floats_are_as_python_has_them(values):
    expected = [0.0 if value is None else float(value) for value in values]
    np.testing.assert_array_equal(column_of(values, np.dtype(np.float64)), expected)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (None, np.int8, 0),
        (None, np.float32, 0.0),
        (None, np.bool_, False),
        (None, bytes, b""),
        (3.0, np.int16, 3),
        (-0.0, np.uint8, 0),
        ("12", np.int64, 12),
        (b" -12 ", np.int64, -12),
        ("3.0", np.int32, 3),
        ("1e3", np.int32, 1000),
        ("9007199254740993", np.int64, 9007199254740993),
        ("2.5", np.float64, 2.5),
        (Decimal("2.50"), np.float64, 2.5),
        (Decimal(7), np.int8, 7),
        (Decimal("2.50"), bytes, b"2.50"),
        (True, np.int8, 1),
        (True, bytes, b"1"),
        (2, np.bool_, True),
        (0.0, np.bool_, False),
        ("0", np.bool_, False),
        ("zwölf", bytes, "zwölf".encode()),
        (bytearray(b"a\x00"), bytes, b"a\x00"),
        (memoryview(b"ab"), bytes, b"ab"),
        (1.5, bytes, b"1.5"),
        (3.0, bytes, b"3.0"),
        (1e300, bytes, b"1.0e+300"),
        (-1e-7, bytes, b"-1.0e-07"),
        (math.inf, bytes, b"Inf"),
        (math.inf, np.float32, math.inf),
        (1e-300, np.float32, 0.0),
    ],
    ids=lambda value: "a view" if isinstance(value, memoryview) else repr(value),
)
def test_values_that_are_converted(value, dtype, expected):
    column = column_of([value], sql_dtype(dtype))
    assert column[0] == expected
    if dtype is bytes:
        assert type(column[0]) is bytes
    else:
        assert column.dtype == dtype


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (2.5, np.int64),
        (math.nan, np.int64),
        (math.inf, np.int64),
        (128, np.int8),
        (-1, np.uint64),
        (2**63, np.int64),
        ("12abc", np.int64),
        ("", np.float64),
        ("1_000", np.int64),
        ("zwölf", np.float64),
        (b"\xff", np.int8),
        ("true", np.bool_),
        (0.5, np.bool_),
        (1e300, np.float32),
        (10**400, np.float64),
        (Decimal("1.5"), np.int64),
        (Decimal("NaN"), np.int64),
        (Decimal("sNaN"), np.float64),
        (Decimal("sNaN"), np.int64),
        ({1, 2}, bytes),
        ([1], np.int64),
        (1j, np.float64),
    ],
    ids=lambda value: "a view" if isinstance(value, memoryview) else repr(value),
)
def test_values_that_are_refused(value, dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueRefusedError):
            column_of([value], sql_dtype(dtype))


def test_a_refusal_shows_the_value():
    words = r"^2\.5 of type float can't be converted to an integer because it is not whole$"
    with pytest.raises(ValueRefusedError, match=words):
        column_of([1, 2.5], np.dtype(np.int64))


def test_dtypes_of_columns():
    assert sql_dtype(str) == sql_dtype(bytes) == np.dtype("S")
    for dtype in (np.complex64, object, "datetime64[s]"):
        with pytest.raises(TypeError, match="expected a dtype of bools, integers, floats or text"):
            sql_dtype(dtype)
    found = [inferred_dtype(value) for value in (True, 1, 1.0, b"a", "a", None, {1, 2})]
    assert found == [np.dtype(bool), np.dtype("int64"), np.dtype("float64"), np.dtype("S"), np.dtype("S"), None, None]
