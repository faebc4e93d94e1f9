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


CONVERTED = {
    np.int8: [(None, 0), (Decimal(7), 7), (True, 1)],
    np.int16: [(3.0, 3)],
    np.uint8: [(-0.0, 0)],
    np.int32: [("3.0", 3), ("1e3", 1000)],
    np.int64: [
        ("12", 12),
        (b" -12 ", -12),
        ("9007199254740993", 9007199254740993),
        ("9007199254740993.0", 9007199254740993),
    ],
    np.float32: [(None, 0.0), (math.inf, math.inf), (1e-300, 0.0)],
    np.float64: [("2.5", 2.5), (Decimal("2.50"), 2.5)],
    np.bool_: [(None, False), (2, True), (0.0, False), ("0", False)],
    bytes: [
        *[(None, b""), (Decimal("2.50"), b"2.50"), (True, b"1"), ("zwölf", "zwölf".encode())],
        *[(bytearray(b"a\x00"), b"a\x00"), (memoryview(b"ab"), b"ab"), (1.5, b"1.5"), (3.0, b"3.0")],
        *[(1e300, b"1.0e+300"), (-1e-7, b"-1.0e-07"), (math.inf, b"Inf")],
    ],
}
REFUSED = {
    np.int8: [128, b"\xff"],
    np.uint64: [-1],
    np.int64: [
        2.5,
        math.nan,
        math.inf,
        2**63,
        "12abc",
        "1_000",
        "1e400",
        "1e999999999",
        Decimal("1.5"),
        Decimal("NaN"),
        Decimal("sNaN"),
        [1],
    ],
    np.float32: [1e300],
    np.float64: ["", "zwölf", 10**400, Decimal("sNaN"), 1j],
    np.bool_: ["true", 0.5],
    bytes: [{1, 2}],
}


@pytest.mark.parametrize("dtype", CONVERTED)
def test_values_that_are_converted(dtype):
    for value, expected in CONVERTED[dtype]:
        column = column_of([value], sql_dtype(dtype))
        assert column[0] == expected, value
        assert type(column[0]) is bytes if dtype is bytes else column.dtype == dtype


@pytest.mark.parametrize("dtype", REFUSED)
def test_values_that_are_refused(dtype):
    for value in REFUSED[dtype]:
        with warnings.catch_warnings(), pytest.raises(ValueRefusedError):
            warnings.simplefilter("error")
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
