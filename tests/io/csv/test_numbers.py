"""Tests that the fast number parser returns the same bits as the slow one, or leaves the number to it."""

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset.io.csv.numbers import PAD, parse_float, parse_int, read_floats, read_ints
from support.csv_files import F32, F64, I32, I64

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
columns = st.lists(texts.filter(bool).map(str.encode), min_size=1, max_size=20)


def placed(fields):
    """Return the fields in a buffer, with their starts and ends."""
    buffer = b"-" * PAD + b",".join(fields) + b","
    lengths = np.array(list(map(len, fields)))
    ends = PAD - 1 + np.cumsum(lengths + 1)
    return np.frombuffer(buffer, np.uint8), ends - lengths, ends


def check(fields, dtype, read, parse):
    values, odd = read(*placed(fields), dtype)
    assert values.dtype == dtype
    for field, value, is_odd in zip(fields, values, odd, strict=True):
        if not is_odd:
            expected = np.array(parse(field, dtype), dtype)
            assert value.tobytes() == expected.tobytes(), field
    return odd


@pytest.mark.parametrize("dtype", [I32, I64])
@given(fields=columns)
def test_integers(fields, dtype):
    check(fields, dtype, read_ints, parse_int)


@pytest.mark.parametrize("dtype", [F32, F64])
@given(fields=columns)
def test_floats(fields, dtype):
    check(fields, dtype, read_floats, parse_float)


@given(st.lists(st.integers(-(10**19) + 1, 10**19 - 1), min_size=1))
def test_usual_integers_are_not_left_to_the_slow_way(numbers):
    odd = check([b"%d" % number for number in numbers], I64, read_ints, parse_int) if fits(numbers) else []
    assert not any(odd)


def fits(numbers):
    return all(-(2**63) < number < 2**63 for number in numbers)


@given(st.lists(st.floats(1e-4, 1e15), min_size=1))
def test_usual_floats_are_not_left_to_the_slow_way(numbers):
    fields = [repr(number).encode() for number in numbers]
    odd = check(fields, F64, read_floats, parse_float)
    # They may have more than 19 digits, with zeros after the decimal point.
    assert not any(o for o, field in zip(odd, fields, strict=True) if len(field) <= 20)


@given(st.floats(-(2.0**127), 2.0**127, width=32), st.integers(-3, 3))
def test_the_nearest_float32_is_found_around_the_middle_of_two(number, steps):
    upper = float(np.nextafter(np.float32(number), np.float32(np.inf)))
    if not np.isfinite(upper):
        return
    middle = (Decimal(number) + Decimal(upper)) / 2
    text = format(middle + steps * Decimal("1e-60"), "f").encode()
    found = parse_float(text, F32)
    below, above = abs(Decimal(text.decode()) - Decimal(number)), abs(Decimal(text.decode()) - Decimal(upper))
    if below != above:
        assert float(found) == (number if below < above else upper)
    check([text], F32, read_floats, parse_float)


@pytest.mark.parametrize(
    "text", [b"", b" ", b"1_0", b"0x", b"1 2", b"--1", b"nan(", b"\xd9\xa1", b"1\0", b"infinit", b"1e"]
)
def test_what_is_no_number(text):
    for dtype, parse in ((I64, parse_int), (F64, parse_float), (F32, parse_float)):
        with pytest.raises(ValueError):
            parse(text, dtype)


def test_huge_texts_take_no_time_and_no_memory():
    with pytest.raises(ValueError):
        parse_int(b"9" * 1_000_000, I64)
    assert parse_int(b"0" * 1_000_000 + b"7", I64) == 7
    assert parse_float(b"1" * 1_000_000 + b"e-999990", F32) > 1e9
    assert parse_float(b"1e-999999999999", F32) == 0
    assert parse_float(b"0x1p-99999999999", F64) == 0
    assert parse_float(b"0x1p99999999999", F64) == np.inf
