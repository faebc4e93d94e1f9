"""Tests of decoding records into columns, one at a time and many at once."""

import functools
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dataset
from dataset import Dataset, ParseError, io
from dataset.testing import check_operator

DEFAULTS = [np.int64(5), bytes]
PARSE = functools.partial(io.decode_csv, record_defaults=DEFAULTS)


def plain(columns):
    return [column.tolist() if isinstance(column, np.generic | np.ndarray) else column for column in columns]


def decoded(records, defaults):
    """Return the columns as lists, or None if a record is refused."""
    try:
        return [np.atleast_1d(column).tolist() for column in io.decode_csv(records, defaults)]
    except ParseError:
        return None


@given(st.lists(st.text('a1,"\n\r', max_size=12), min_size=1, max_size=5))
def test_many_records_are_taken_apart_like_single_ones(records):
    for defaults in (["", ""], [np.int64(5), ""], [""]):
        singles = [decoded(record, defaults) for record in records]
        expected = (
            None if None in singles else [[*itertools.chain(*column)] * 40 for column in zip(*singles, strict=True)]
        )
        assert decoded(records * 40, defaults) == expected


def test_a_partial_is_called_with_many_records_and_keeps_the_contract():
    calls = []

    @dataset.vectorized
    def decode(records, record_defaults):
        calls.append(len(records))
        return io.decode_csv(records, record_defaults)

    rows = Dataset.from_tensor_slices([f"{i},a" for i in range(100)])
    parse = functools.partial(decode, record_defaults=DEFAULTS)
    assert len(list(rows.map(parse).batch(50))) == 2
    assert calls == [50, 50]
    check_operator(lambda: rows.take(9).map(PARSE))


def test_a_bad_record_fails_alone():
    parsed = Dataset.from_tensor_slices(["1,a", "x,b", "3", "4,d"]).map(PARSE).ignore_errors()
    for size in (1, 2):  # as many records as columns are no matter
        assert [row for batch in parsed.batch(size) for row in zip(*batch, strict=True)] == [(1, b"a"), (4, b"d")]


def test_what_is_wrong_is_said_with_the_record():
    with pytest.raises(
        ParseError, match=r"decode_csv\(\): record 1, column 0: b'x' is not an integer .*; the record is b'x,b'"
    ):
        io.decode_csv(["1,a", "x,b"], DEFAULTS)
    with pytest.raises(ParseError, match=r"record 0: the record has 1 field, expected 2; the record is b'a'"):
        io.decode_csv("a", DEFAULTS)
    with pytest.raises(TypeError, match=r"record 0 must be bytes or str, got 5 of type int"):
        io.decode_csv(5, DEFAULTS)


def test_defaults_that_change_between_calls_count():
    defaults = [np.array([5]), [b"x"]]
    assert plain(io.decode_csv(",", defaults)) == [5, b"x"]
    defaults[0][0] = 6
    defaults[1][0] = b"y"
    assert plain(io.decode_csv(",", defaults)) == [6, b"y"]
    defaults[1] = 3
    assert plain(io.decode_csv("1,2,4", defaults, select_cols=[0, 2])) == [1, 4]
