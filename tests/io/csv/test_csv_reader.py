"""Tests of the reader of one CSV file: rows in order, errors in their places, with the kernels and without."""

import dataclasses

import numpy as np
import pytest

from dataset.io.csv import layout as layouts
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


def test_long_and_short_texts_and_line_ends_in_quotes_come_out_alike(save):
    texts = ["", "x" * 5000, "two\nlines", 'a "b"', "y"] * 30 + ["a\n" * 200_000]
    path = save(b"".join(b'"%s","1"\n' % text.replace('"', '""').encode() for text in texts))
    for size in (None, 1000):
        found = outcomes(CsvFile(path, layout("", np.int64), None, size))
        assert found == [(text.encode(), 1) for text in texts]


NAMED = dataclasses.replace(layout(np.int64, select_cols=[1]), names=("price",))


@pytest.mark.parametrize(
    ("content", "shape", "words"),
    [
        (b'1,"a\nb",c\r\n1,2\r3\n', layout(np.int64, ""), "line 4: the row has 1 field, expected 2"),
        (
            b'1,"a\nb","c\nd\n',
            layout(np.int64, "", ""),
            "line 2, column 2: the quotation mark that opens here is never",
        ),
        (b"1\n", layout(np.int64, select_cols=[1]), "line 1: the row has 1 field, expected at least 2"),
        (b"1\n", layout(np.int64, exclude_cols=[0]), "line 1: the row has 1 field, expected 2"),
        (b"1\n", layout(np.int64, exclude_cols=[0, 2, 3]), "line 1: the row has 1 field, expected 2 to 4"),
        (b"x,y\n", NAMED, "line 1, column 1 ('price'): b'y' is not an integer"),
    ],
)
def test_messages_say_the_line_of_the_file_the_column_and_what_was_expected(save, content, shape, words):
    path = save(content)
    assert outcomes(CsvFile(path, shape))[-1].startswith(f"ParseError: {path}, {words}")


def test_more_columns_than_fields_are_read_at_once(save):
    count = layouts._FIELDS_MAX + 1
    path = save(b",".join([b"7"] * count) + b"\n8")
    assert outcomes(CsvFile(path, layout(*[np.int32] * count)))[0] == (7,) * count


def test_a_block_with_more_fields_than_are_read_at_once(save):
    path = save(b"".join(b"%d,0\n" % (i % 10) for i in range(50_000)))
    assert outcomes(CsvFile(path, layout(np.int64, np.int64))) == [(i % 10, 0) for i in range(50_000)]


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
