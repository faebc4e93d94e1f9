"""Tests that numbers are the same bits whether the kernel or Python parses them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset.io.csv.row_parser import RowError, convert_field, parse_float, parse_int
from dataset.io.csv.rows import read_rows
from support.csv_files import F32, F64, I32, I64, layout, same

pytestmark = pytest.mark.usefixtures("native")

digits = st.text("0123456789", max_size=24)
decimals = st.builds(
    lambda sign, a, dot, b: sign + a + dot + b,
    st.sampled_from(["", "-", "+"]),
    digits,
    st.sampled_from(["", "."]),
    digits,
)
texts = st.one_of(
    decimals,
    st.integers(-(2**65), 2**65).map(str),
    st.floats().map(repr),
    st.floats(width=32).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=5).map(str),
    st.text("0123456789.-+eE _x/:\t", min_size=1, max_size=30),
    decimals.map(lambda text: f"  {text}   "),
)
columns = st.lists(texts.map(str.encode), min_size=1, max_size=20)


def values_of(fields, dtype):
    """Return the values that ``read_rows`` gives, and the words of the error of each invalid field."""
    rows = read_rows(b"\n".join(fields) + b"\n", 0, layout(np.dtype(dtype)))
    return [rows.errors[row].words if row in rows.errors else value for row, value in enumerate(rows.columns[0])]


def parsed(field, dtype):
    """Return the value that Python gives, or the words of the error."""
    try:
        return np.dtype(dtype).type(convert_field(field, 0, layout(np.dtype(dtype))))
    except RowError as error:
        return error.words


@pytest.mark.parametrize("dtype", [I32, I64, F32, F64])
@given(fields=columns)
def test_the_value_of_a_number_is_that_of_the_text(dtype, fields):
    found = values_of(fields, dtype)
    assert same(found, [parsed(field, dtype) for field in fields])
    assert {value.dtype for value in found if not isinstance(value, str)} <= {dtype}


@pytest.mark.parametrize("dtype", [I32, I64])
def test_integers_at_the_limits_of_their_dtype(dtype):
    limits = np.iinfo(dtype)
    fields = [b"%d" % (limit + more) for limit in (int(limits.min), int(limits.max)) for more in (-1, 0, 1)]
    found = values_of(fields, dtype)
    assert same(found, [parsed(field, dtype) for field in fields])
    assert [isinstance(value, str) for value in found] == [True, False, False, False, False, True]


WHOLES = [0, 1, 7, 2**24 + 1, 2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 10**18, 10**19 - 1, 10**19]


@pytest.mark.parametrize("dtype", [F32, F64])
def test_floats_at_the_limits_of_the_fast_ways_are_the_nearest(dtype):
    for whole in WHOLES:
        fields = [b"%d%s" % (whole, end) for end in (b"", b".", b".0", b".5", b".00000000000000000001")]
        fields += [b"%de%d" % (whole, power) for power in (*range(-46, 46), -400, -330, -300, 290, 308, 400, 99999)]
        assert same(values_of(fields, dtype), [parsed(field, dtype) for field in fields])


def test_a_float32_is_not_rounded_twice():
    """The double that is nearest to these numbers is in the middle of two float32, but the numbers are not."""
    above = np.nextafter(np.float32(1), np.float32(2))
    assert same(values_of([b"1.000000059604644775", b"1.000000059604644776"], F32), [np.float32(1), above])


def test_huge_texts_take_no_time_and_no_memory():
    with pytest.raises(ValueError):
        parse_int(b"9" * 1_000_000, I64)
    assert parse_int(b"0" * 1_000_000 + b"7", I64) == 7
    assert parse_float(b"1" * 1_000_000 + b"e-999990", F32) > 1e9
    assert parse_float(b"1e-999999999999", F32) == 0
    assert parse_float(b"0x1p-99999999999", F64) == 0
    assert parse_float(b"0x1p99999999999", F64) == np.inf
