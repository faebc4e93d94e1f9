"""Tests of text files: all lines unchanged, and reading from every position."""

from __future__ import annotations

import os
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset.io.text.lines import TextLineFile
from support.block_files import ALL_KINDS, COMPRESS, read
from support.memory import memory_below

TEXTS = st.lists(st.sampled_from([b"\n", b"\r", b"\r\n", b"a", b"\x00", b"\x0b", b"\x85", b"\xff", b"word" * 9])).map(
    b"".join
)


def lines_of(text):
    """Reference implementation."""
    lines = text.replace(b"\r", b"").split(b"\n")
    return lines if lines[-1] else lines[:-1]


def starts_of(text):
    """Return the starts of the lines, and the end of the last one."""
    starts = [0, *(place + 1 for place, byte in enumerate(text) if byte == ord("\n"))]
    return [*starts[: len(lines_of(text))], len(text)] if len(lines_of(text)) == len(starts) else starts


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("lines") / "a.txt"


# Elements.


@settings(deadline=None, max_examples=150)
@given(
    text=TEXTS | st.binary(max_size=200),
    kind=st.sampled_from(ALL_KINDS),
    block=st.sampled_from([None, 0, 1, 2, 3, 7, 64]),
    n=st.integers(1, 9),
    data=st.data(),
)
def test_a_text_is_its_lines_and_each_can_be_gone_back_to_whatever_the_blocks(place, text, kind, block, n, data):
    place.write_bytes(COMPRESS[kind](text))
    lines, starts = lines_of(text), starts_of(text)
    file, number = TextLineFile(place, kind, block), 0
    while (columns := file.columns(n)) is not None:
        assert columns == [lines[number : number + len(columns[0])]]
        number += len(columns[0])
        assert file.tell() == (starts[number], number)
    assert number == len(lines)
    number = data.draw(st.integers(0, len(lines)))
    file.seek(starts[number], number)
    assert read(file, 3) == (lines[number:], None)


def test_a_line_of_many_blocks_takes_no_more_than_a_few_times_its_size(save):
    """The line is joined once; growing it block by block would copy 3 GiB."""
    line = random.Random(1).randbytes(1 << 23).replace(b"\n", b"x").replace(b"\r", b"x")
    path = save(line + b"\nend")
    file = TextLineFile(path, None, 1 << 13)
    with memory_below(4 * len(line)):
        assert file.columns(2) == [[line]]
    assert read(file) == ([b"end"], None)


# Damage, and files that change.


def test_a_file_that_shrinks_ends_sooner(save):
    path = save(b"one\ntwo\nthree\n")
    file = TextLineFile(path, None, 4)
    assert file.columns(9) == [[b"one"]]
    os.truncate(path, 6)
    assert read(file) == ([b"tw"], None)
