"""Tests of the reader of one CSV file: rows in order, errors in place, from any position, with all parsers."""

import contextlib
import dataclasses
import gzip

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataset.io.csv import reader
from dataset.io.csv.reader import CsvFile
from support.csv_files import layout, outcomes, same

pytestmark = pytest.mark.usefixtures("native")

LAYOUT = layout(np.int64(7), np.float32, "none")
MIXED = (
    b'1,0.5,a\r\n2,,b\n\n3,1e3,"c, ""d"""\n4,x,e\n"5","6",f"\n7,8,"g\nh"\r9,10,11,12\n,13, \n14,15,"i" j,"\n'
    b'99999999999999999999,1,k\n16,nan,l\n17,18,"m\r\n'
)
EXPECTED = [
    (1, 0.5, b"a"),
    "line 2, column 1: the field is empty",
    "line 3: the row has 1 field, expected 3",
    (3, 1000.0, b'c, "d"'),
    "line 5, column 1: b'x' is not a number",
    "line 6, column 2: a field that does not begin with a quotation mark",
    (7, 8.0, b"g\nh"),
    "line 9: the row has 4 fields",
    (7, 13.0, b" "),
    "line 11, column 2: text follows the closing quotation mark",
    "line 12, column 0: b'99999999999999999999' is not an integer from -9223372036854775808",
    (16, np.nan, b"l"),
    "line 14, column 2: the quotation mark that opens here is never closed",
]


@pytest.mark.parametrize("size", [1, 2, 5, 17, 50, None])
def test_errors_stand_in_their_places_whatever_is_read_at_once(save, size):
    path = save(MIXED)
    for n in (1, 2, 1000):
        found = outcomes(CsvFile(path, LAYOUT, None, size), n)
        assert len(found) == len(EXPECTED)
        for got, expected in zip(found, EXPECTED, strict=True):
            if isinstance(expected, str):
                assert f"ParseError: {path}, {expected}" in got
            else:
                assert same(got, expected)


@pytest.mark.parametrize("content", [MIXED, b"1,2,a\n3,4,b", b"1,2,a\r\n\r", b'1,2,"a', b"", b"\xef\xbb\xbf1,2,a\n5"])
@pytest.mark.parametrize("compression", ["", "GZIP"])
@pytest.mark.parametrize("size", [1, 40, None])
def test_reading_goes_on_from_any_place(save, size, compression, content):
    path = save(gzip.compress(content) if compression else content)
    whole = outcomes(CsvFile(path, LAYOUT, compression, size), 1)
    file = CsvFile(path, LAYOUT, compression, size)
    for position in [*range(len(whole) + 1), 0]:
        place = file.tell() if position else (0, 0)
        other = CsvFile(path, LAYOUT, compression, size)
        other.seek(*place)
        assert other.tell() == place
        assert same(outcomes(other), whole[position:])
        with contextlib.suppress(ValueError):
            file.columns(1)


# All ways of parsing return the same rows: whole blocks, row by row, and the standard library.


broken = st.text('a1,"\n\r', max_size=40).map(str.encode)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=broken, sizes=st.tuples(st.integers(1, 10), st.integers(1, 100)), n=st.integers(1, 5))
def test_any_text_reads_alike_in_blocks_of_any_size(save, text, sizes, n):
    path = save(text)
    shape = layout("", np.int64(3))
    found = [outcomes(CsvFile(path, shape, None, size), n) for size in (*sizes, None)]
    assert same(found[0], found[1])
    assert same(found[0], found[2])


def test_long_and_short_texts_and_line_ends_in_quotes_come_out_alike(save):
    texts = ["", "x" * 5000, "two\nlines", 'a "b"', "y"] * 30 + ["a\n" * 200_000]
    path = save(b"".join(b'"%s","1"\n' % text.replace('"', '""').encode() for text in texts))
    for size in (None, 1000):
        found = outcomes(CsvFile(path, layout("", np.int64), None, size))
        assert found == [(text.encode(), 1) for text in texts]


def test_a_byte_order_mark_is_passed_over(save):
    for header in (False, True):
        content = b"\xef\xbb\xbf" + (b'"a",b\n' if header else b"") + b"1,2\n"
        for size in (1, None):
            file = CsvFile(save(content), layout(np.int64, np.int64), None, size, header)
            assert outcomes(file) == [(1, 2)]


def test_lines_are_counted_from_the_first_line_of_the_file(save):
    path = save(b'"a\nb",c\r\n1,2\r3\n')
    file = CsvFile(path, layout(np.int64, np.int64), header=True)
    assert outcomes(file) == [(1, 2), f"ParseError: {path}, line 4: the row has 1 field, expected 2"]


def test_a_quotation_mark_that_is_never_closed_is_reported_on_its_line(save):
    path = save(b'1,"a\nb","c\nd\n')
    (error,) = outcomes(CsvFile(path, layout(np.int64, "", "")))
    assert error.startswith(f"ParseError: {path}, line 2, column 2: the quotation mark that opens here is never closed")


@pytest.mark.parametrize(
    ("columns", "expected"),
    [({"select_cols": [1]}, "at least 2"), ({"exclude_cols": [0]}, "2"), ({"exclude_cols": [0, 2, 3]}, "2 to 4")],
)
def test_the_number_of_fields_that_are_expected_is_in_messages(save, columns, expected):
    found = outcomes(CsvFile(save(b"1\n1,2\n1,2,3,4,5\n"), layout(np.int64, **columns)))
    assert f"line 1: the row has 1 field, expected {expected}" in found[0]
    assert found[1] == (2,)


def test_names_of_columns_are_in_messages(save):
    shape = dataclasses.replace(layout(np.int64, select_cols=[1]), names=("price",))
    (error,) = outcomes(CsvFile(save(b"x,y\n"), shape))
    assert "line 1, column 1 ('price'): b'y' is not an integer" in error


@pytest.mark.parametrize("size", [1, None])
def test_rows_after_a_header_that_can_not_be_read_come_out(save, size):
    path = save(b'\xef\xbb\xbfa"b\n1\n2')
    found = outcomes(CsvFile(path, layout(np.int64), None, size, header=True))
    assert found[0].startswith(f"ParseError: {path}, line 1, column 0: the header can't be read: a field that")
    assert found[1:] == [(1,), (2,)]


# Damage

ROWS = b"".join(b"%d,row %d\n" % (i, i) for i in range(20_000))


def test_a_row_without_end_is_given_up_before_it_fills_the_memory(save, monkeypatch):
    monkeypatch.setattr(reader, "ROW_BYTES_MAX", 1000)
    path = save(b'1,a\n2,"' + b"x" * 5000)
    found = outcomes(CsvFile(path, layout(np.int64, bytes), None, 100))
    assert found[0] == (1, b"a")
    assert "DataLossError" in found[1]
    assert "line 2: no row ends within" in found[1]
    assert len(found) == 2


def test_arrays_that_were_given_never_change(save):
    file = CsvFile(save(ROWS), layout(np.int64, bytes), None, 1000)
    given = []
    while (columns := file.columns(7)) is not None:
        given.append((columns, [column.copy() for column in columns]))
    for columns, copies in given:
        for column, copy in zip(columns, copies, strict=True):
            assert column.flags.writeable
            assert np.array_equal(column, copy)
