"""Tests of fixed-length records: all complete records, no header or footer, and errors for wrong sizes."""

from __future__ import annotations

import os
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset.io.text.fixed_length_records import FixedLengthFile
from support.block_files import ALL_KINDS, COMPRESS, read

SIZES = st.integers(1, 9)
AROUND = st.integers(0, 9)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("records") / "a.bin"


def records_of(content, size, header, footer):
    body = content[header : len(content) - footer]
    return [body[start : start + size] for start in range(0, len(body) - size + 1, size)]


@settings(deadline=None, max_examples=150)
@given(
    size=SIZES,
    header=AROUND,
    footer=AROUND,
    count=st.integers(0, 30),
    kind=st.sampled_from(ALL_KINDS),
    block=st.sampled_from([None, 0, 1, 2, 5, 40]),
    n=st.integers(1, 9),
)
def test_whole_records_come_out(place, size, header, footer, count, kind, block, n):
    content = random.Random(1).randbytes(header + size * count + footer)
    place.write_bytes(COMPRESS[kind](content))
    expected = records_of(content, size, header, footer)
    assert len(expected) == count
    assert read(FixedLengthFile(place, size, header, footer, kind, block), n) == (expected, None)
    file = FixedLengthFile(place, size, header, footer, kind, block)
    for number in range(count):
        assert file.tell() == (header + size * number, number)
        assert file.columns(1) == [[expected[number]]]
    middle = count // 2
    file.seek(header + size * middle, middle)
    assert read(file, n) == (expected[middle:], None)


def test_what_an_error_says(save):
    _, error = read(FixedLengthFile(save(b"HHabcdefgF"), 3, 2, 1))
    assert str(error).endswith(
        ", record 0, at byte 2: the file has 7 bytes without header_bytes=2 and footer_bytes=1, which is not "
        "a multiple of record_bytes=3: 1 are left after 2 records; the file may be truncated, or one of these sizes is "
        "wrong"
    )
    _, error = read(FixedLengthFile(save(b"HF"), 3, 2, 1))
    assert "the file has 2 bytes, fewer than the sum of header_bytes=2 and footer_bytes=1" in str(error)


@pytest.mark.parametrize("kind", ALL_KINDS)
@pytest.mark.parametrize("sizes", [(1 << 60, 0, 0), (3, 1 << 60, 0), (3, 0, 1 << 60), (3, 1 << 60, 1 << 60)])
def test_huge_sizes_take_no_memory(save, kind, sizes):
    found, error = read(FixedLengthFile(save(COMPRESS[kind](b"abc" * 1000)), *sizes, kind))
    assert found == []
    assert error is not None


@pytest.mark.parametrize(("left", "expected"), [(4, [b"bb"]), (3, [])])
def test_a_file_that_shrinks_is_short_or_damaged(save, left, expected):
    path = save(b"aabbcc")
    file = FixedLengthFile(path, 2, buffer_size=2)
    assert file.columns(9) == [[b"aa"]]
    os.truncate(path, left)
    found, error = read(file)
    assert (found, error is None) == (expected, left == 4)
