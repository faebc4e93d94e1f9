"""Tests that the kernels read the same rows as their twins."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset.io.csv import layout as layouts
from dataset.io.csv.layout import layout_of
from dataset.io.csv.rows import parse_rows, read_rows
from support.csv_files import layout, same

pytestmark = pytest.mark.usefixtures("native")


def contents(rows):
    errors = [(row, error.words, error.field) for row, error in rows.errors.items()]
    return list(map(int, rows.starts)), good_values(rows), [column.dtype for column in rows.columns], errors


def good_values(rows):
    return [np.delete(column, list(rows.errors)).tolist() for column in rows.columns]


fields_of_all_lengths = st.one_of(
    st.binary(max_size=9),
    st.integers(0, 200).map(b"x".__mul__),
    st.sampled_from([b"\0", b"a\0", b"\0b", b"a\0b\0\0"]),
)


@settings(max_examples=150)
@given(fields=st.lists(fields_of_all_lengths, min_size=1, max_size=40), end=st.binary(max_size=70))
def test_fields_of_any_length_and_with_zeros_are_cut_out_whole(fields, end):
    block = b"".join(b'"%s",%s\n' % (field.replace(b'"', b'""'), field.translate(None, b',"\r\n')) for field in fields)
    found = read_rows(block + end.translate(None, b"\n\r"), 0, layout("", ""))
    assert found.columns[0].tolist() == fields
    assert found.columns[1].tolist() == [field.translate(None, b',"\r\n') for field in fields]
    assert not found.errors


def test_rows_are_read_in_parts_of_a_limited_size(monkeypatch):
    monkeypatch.setattr(layouts, "_FIELDS_MAX", 8)
    block, shape = b"".join(b"%d,a\n" % i if i % 5 else b"x,y\n" for i in range(11)), layout(np.int64, bytes)
    start, sizes, found = 0, [], []
    while start < len(block):
        rows = read_rows(block, start, shape)
        assert same(contents(rows), contents(parse_rows(block, start, shape)))
        sizes.append(len(rows.starts) - 1)
        found += good_values(rows)[0]
        start = rows.starts[-1]
    assert sizes == [4, 4, 3]
    assert found == [i for i in range(11) if i % 5]


def test_more_columns_than_fields_are_read_at_once():
    count = layouts._FIELDS_MAX + 1
    shape = layout_of("test", [np.int32] * count)
    rows = read_rows(b",".join([b"7"] * count) + b"\n8", 0, shape)
    assert [column.tolist() for column in rows.columns] == [[7]] * count


def test_two_layouts_in_turn_are_not_mixed_up():
    for _ in range(3):
        assert read_rows(b"1,2\n", 0, layout(np.int64, bytes)).columns[1].tolist() == [b"2"]
        assert read_rows(b"1,2\n", 0, layout(bytes, np.float64)).columns[1].tolist() == [2.0]
