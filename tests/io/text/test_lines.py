"""Tests of text files: all lines unchanged, resuming from every position, and release of resources."""

from __future__ import annotations

import gc
import gzip
import os
import random
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset.errors import ClosedError, DataLossError
from dataset.io.files import stream_file
from dataset.io.text.lines import TextLineFile
from support.block_files import COMPRESS, KINDS, OpenedFiles, read

TEXTS = st.lists(st.sampled_from([b"\n", b"\r", b"\r\n", b"a", b"\x00", b"\x0b", b"\x85", b"\xff", b"word" * 9])).map(
    b"".join
)


def lines_of(text):
    """Reference implementation, byte by byte."""
    lines, line = [], b""
    for byte in text:
        if byte == ord("\n"):
            lines.append(line)
            line = b""
        elif byte != ord("\r"):
            line += bytes([byte])
    return [*lines, line] if line else lines


def starts_of(text):
    """Return the starts of the lines, and the end of the last one."""
    ends = [place + 1 for place, byte in enumerate(text) if byte == ord("\n")]
    count = len(lines_of(text))
    return [0, *ends][:count] + ([len(text)] if count > len(ends) else [ends[-1]] if ends else [0])


@pytest.fixture
def save(tmp_path):
    def write(content):
        path = tmp_path / "a.txt"
        path.write_bytes(content)
        return path

    return write


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("lines") / "a.txt"


@pytest.fixture
def opened(monkeypatch):
    counter = OpenedFiles()
    monkeypatch.setattr(stream_file, "open_input", counter)
    return counter


# Elements.


@settings(deadline=None, max_examples=150)
@given(text=TEXTS, kind=st.sampled_from(KINDS), block=st.sampled_from([None, 0, 1, 2, 3, 7, 64]), n=st.integers(1, 9))
def test_a_text_is_its_lines_whatever_the_blocks(place, text, kind, block, n):
    place.write_bytes(COMPRESS[kind](text))
    assert read(TextLineFile(place, kind, block), n) == (lines_of(text), None)


@settings(deadline=None, max_examples=60)
@given(text=st.binary(max_size=200), block=st.integers(1, 20))
def test_any_bytes_are_a_text(place, text, block):
    place.write_bytes(text)
    assert read(TextLineFile(place, None, block)) == (lines_of(text), None)


@settings(deadline=None, max_examples=80)
@given(text=TEXTS, kind=st.sampled_from(KINDS), block=st.sampled_from([None, 1, 5]), data=st.data())
def test_every_line_can_be_gone_back_to(place, text, kind, block, data):
    place.write_bytes(COMPRESS[kind](text))
    lines, starts = lines_of(text), starts_of(text)
    file = TextLineFile(place, kind, block)
    for number, line in enumerate(lines):
        assert file.tell() == (starts[number], number)
        assert file.columns(1) == [[line]]
    assert file.tell() == (starts[-1], len(lines))
    number = data.draw(st.integers(0, len(lines)))
    file.seek(starts[number], number)
    assert read(file, 3) == (lines[number:], None)


def test_a_place_is_told_right_after_any_helping(save):
    text = b"".join(b"x" * (number % 50) + b"\r\n"[number % 3 == 0 :] for number in range(2000))
    lines, starts = lines_of(text), starts_of(text)
    file, number = TextLineFile(save(text), None, 10_000), 0
    while (columns := file.columns(7)) is not None:
        number += len(columns[0])
        assert file.tell() == (starts[number], number)
    assert number == len(lines)


def test_a_line_of_many_blocks_takes_no_more_than_a_few_times_its_size(save):
    """The line is joined once; growing it block by block would copy 3 GiB."""
    line = random.Random(1).randbytes(1 << 23).replace(b"\n", b"x").replace(b"\r", b"x")
    path = save(line + b"\nend")
    file = TextLineFile(path, None, 1 << 13)
    tracemalloc.start()
    found = file.columns(2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == [[line]]
    assert peak < 4 * len(line)
    assert read(file) == ([b"end"], None)


def test_a_long_line_is_put_together_once(save, monkeypatch):
    """No block is scanned twice, however many blocks the line has."""
    file = TextLineFile(save(b"x" * 5000 + b"\n"), None, 10)
    cuts = []
    monkeypatch.setattr(file, "_cut", lambda *arguments: cuts.append(1) or TextLineFile._cut(file, *arguments))
    assert read(file) == ([b"x" * 5000], None)
    assert len(cuts) <= 2  # the line, and the end


def test_lines_asked_for_one_by_one_are_not_read_one_by_one(save, opened):
    path = save(b"line\n" * 90_000)
    file = TextLineFile(path)
    file.columns(1)
    [handle] = opened.files
    position = handle.tell()
    for _ in range(1000):
        assert file.columns(1) == [[b"line"]]
    assert handle.tell() == position == 1 << 18


def test_a_pipe_can_be_read():
    ours, theirs = os.pipe()
    os.write(theirs, b"a\nbb")
    os.close(theirs)
    try:
        assert read(TextLineFile(f"/dev/fd/{ours}")) == ([b"a", b"bb"], None)
    finally:
        os.close(ours)


# Damage, and files that change.


@pytest.mark.parametrize("cut", [1, 4, 8, 9, 40, 2000])
def test_a_gzip_stream_that_is_cut_gives_all_whole_lines_and_says_where(save, cut):
    text = b"".join(random.Random(number).randbytes(9).hex().encode() + b"\n" for number in range(3000))
    found, error = read(TextLineFile(save(gzip.compress(text)[:-cut]), "GZIP"))
    lines = lines_of(text)
    assert found == lines[: len(found)]
    assert len(found) > 2500 if cut > 8 else len(found) == 3000  # a checksum and a length are 8 bytes
    assert (error.record, error.offset) == (len(found), 19 * len(found))
    assert "is truncated" in str(error)
    assert f"line {len(found) + 1} of the file" in str(error)
    assert "a.txt" in str(error)


def test_a_corrupt_stream_gives_all_whole_lines_before_it(save):
    text = b"".join(b"%d\n" % number for number in range(100_000))
    content = bytearray(gzip.compress(text))
    content[-3] ^= 1  # in the length, which is checked last
    found, error = read(TextLineFile(save(bytes(content)), "GZIP"))
    assert found == lines_of(text)
    assert "corrupt" in str(error)


def test_a_text_that_is_no_gzip_says_so(save):
    _, error = read(TextLineFile(save(b"plain\n"), "GZIP"))
    assert "if this is not a GZIP file, pass compression_type=None" in str(error)


def test_a_file_that_grows_is_read_to_its_end(save):
    path = save(b"one\ntwo")
    file = TextLineFile(path, None, 4)
    assert file.columns(9) == [[b"one"]]
    with path.open("ab") as more:
        more.write(b" and a half\nthree\n")
    assert read(file) == ([b"two and a half", b"three"], None)


def test_behind_the_end_nothing_comes_even_if_the_file_grows(save):
    path = save(b"one")
    file = TextLineFile(path)
    assert file.columns(9) == [[b"one"]]
    with path.open("ab") as more:
        more.write(b" more\n")
    assert file.columns(9) is None


def test_a_file_that_shrinks_ends_sooner(save):
    path = save(b"one\ntwo\nthree\n")
    file = TextLineFile(path, None, 4)
    assert file.columns(9) == [[b"one"]]
    os.truncate(path, 6)
    assert read(file) == ([b"tw"], None)


def test_a_file_that_vanishes_is_read_to_its_end_if_it_was_open(save):
    path = save(b"one\ntwo\nthree\n")
    file = TextLineFile(path, None, 4)
    assert file.columns(9) == [[b"one"]]
    path.unlink()
    assert read(file) == ([b"two", b"three"], None)
    with pytest.raises(FileNotFoundError, match=r"a\.txt"):
        TextLineFile(path).columns(1)


def test_a_place_behind_the_end_is_data_loss(save):
    file = TextLineFile(save(b"one\n"))
    file.seek(9, 4)
    found, error = read(file)
    assert found == []
    assert (error.offset, error.record) == (9, 4)
    assert "has only 4 bytes" in str(error)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("failure", [OSError(5, "the cable is out"), KeyboardInterrupt()], ids=repr)
def test_a_read_that_fails_is_tried_again_at_its_place(save, opened, kind, failure):
    lines = [b"%d " % number * 20 for number in range(3000)]
    file = TextLineFile(save(COMPRESS[kind](b"\n".join(lines))), kind, 5000)
    found = file.columns(1)[0]
    failing = opened.files[0]

    class Broken:
        def read(self, size):
            raise failure

        close = failing.close

    file._stream._file = Broken()
    with pytest.raises(type(failure)):
        while True:
            found += file.columns(10)[0]
    assert failing.closed
    rest, error = read(file)
    assert error is None
    assert found + rest == lines


# Resources.


def test_files_are_closed_at_the_end_on_damage_on_close_and_when_abandoned(save, opened):
    path = save(b"line\n" * 90_000)
    at_end, abandoned, closed = TextLineFile(path), TextLineFile(path), TextLineFile(path)
    read_to_end = 0
    while at_end.columns(10_000):
        read_to_end += 1
    assert read_to_end
    assert opened.all_closed()
    with pytest.raises(DataLossError):
        TextLineFile(path, "ZLIB").columns(1)
    assert opened.all_closed()
    closed.columns(1)
    abandoned.columns(1)
    assert not opened.all_closed()
    closed.close()
    closed.close()
    del abandoned
    gc.collect()
    assert opened.all_closed()
    assert closed.tell() == (5, 1)
    with pytest.raises(ClosedError, match=r"a\.txt was closed"):
        closed.columns(1)


def test_arguments_that_are_wrong(save):
    path = save(b"")
    with pytest.raises(ValueError, match="buffer_size must be at least 0 bytes, got -1"):
        TextLineFile(path, None, -1)
    with pytest.raises(ValueError, match="compression_type must be"):
        TextLineFile(path, "gz")
    with pytest.raises(ValueError, match="can't be negative"):
        TextLineFile(path).seek(-1, 0)
    with pytest.raises(TypeError, match="a path must be"):
        TextLineFile(3)
