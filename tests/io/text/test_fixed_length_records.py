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


@settings(deadline=None, max_examples=150)
@given(
    content=st.binary(max_size=40),
    size=SIZES,
    header=AROUND,
    footer=AROUND,
    kind=st.sampled_from(ALL_KINDS),
    block=st.sampled_from([None, 1, 3]),
)
def test_any_file_gives_whole_records_or_says_what_is_wrong(place, content, size, header, footer, kind, block):
    place.write_bytes(COMPRESS[kind](content))
    found, error = read(FixedLengthFile(place, size, header, footer, kind, block))
    body = len(content) - header - footer
    whole = records_of(content, size, header, footer) if body >= 0 else []
    assert (error is None) == (body >= 0 and body % size == 0)
    # A file of known size returns nothing before the error; other files return their complete records.
    assert found == (whole if error is None or kind else [])
    if error is not None:
        assert error.record == len(found)
        assert f"{body} bytes" in str(error) if body >= 0 else "fewer than" in str(error)


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


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_records_larger_than_the_buffer(save, kind):
    content = random.Random(1).randbytes(2_000_000)
    found = read(FixedLengthFile(save(COMPRESS[kind](content)), 500_000, 200_000, 300_000, kind, 1000))
    assert found == (records_of(content, 500_000, 200_000, 300_000), None)


def test_a_pipe_with_header_and_footer():
    ours, theirs = os.pipe()
    os.write(theirs, b"HHaabbccFFF")
    os.close(theirs)
    try:
        assert read(FixedLengthFile(f"/dev/fd/{ours}", 2, 2, 3)) == ([b"aa", b"bb", b"cc"], None)
    finally:
        os.close(ours)


@pytest.mark.parametrize(("left", "expected"), [(4, [b"bb"]), (3, [])])
def test_a_file_that_shrinks_is_short_or_damaged(save, left, expected):
    path = save(b"aabbcc")
    file = FixedLengthFile(path, 2, buffer_size=2)
    assert file.columns(9) == [[b"aa"]]
    os.truncate(path, left)
    found, error = read(file)
    assert (found, error is None) == (expected, left == 4)


def test_arguments_that_are_wrong(save):
    path = save(b"")
    with pytest.raises(ValueError, match="record_bytes must be at least 1, got 0"):
        FixedLengthFile(path, 0)
    with pytest.raises(ValueError, match="got header_bytes=-1 and footer_bytes=0"):
        FixedLengthFile(path, 1, -1)
