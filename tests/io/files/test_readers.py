"""Tests of what the readers of records, lines and records of one length share: failures, places, and open files."""

from __future__ import annotations

import gc
import io
import itertools
import random

import pytest

from dataset.errors import ClosedError, DataLossError
from dataset.io.csv.reader import CsvFile
from dataset.io.files import compression
from dataset.io.text.fixed_length_records import FixedLengthFile
from dataset.io.text.lines import TextLineFile
from dataset.io.tfrecord.reader import TFRecordFile
from support.block_files import ALL_KINDS, COMPRESS, OpenedFiles, read
from support.csv_files import layout
from support.tfrecord_files import frames

ELEMENTS = [random.Random(number).randbytes(10).hex().encode() for number in range(20_000)]


class Fixed(FixedLengthFile):
    def __init__(self, path, kind=None, block=None):
        super().__init__(path, 20, 0, 0, kind, block)


class Rows(CsvFile):
    def __init__(self, path, kind=None, block=None):
        super().__init__(path, layout(bytes), kind, block)

    def columns(self, n):
        columns = super().columns(n)
        return columns and [columns[0].tolist()]


def in_lines(elements):
    return b"".join(element + b"\n" for element in elements)


FORMATS = {TFRecordFile: frames, TextLineFile: in_lines, Rows: in_lines, Fixed: b"".join}


@pytest.fixture(params=FORMATS)
def reader(request):
    return request.param


@pytest.fixture
def opened(monkeypatch):
    counter = OpenedFiles()
    monkeypatch.setattr(compression, "open_input", counter)
    return counter


@pytest.mark.parametrize("failure", [OSError(5, "the cable is out"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("kind", ALL_KINDS)
def test_a_read_that_fails_is_tried_again_at_its_place(reader, kind, failure, save, monkeypatch):
    """The elements before the error are returned, the error is raised, and none is lost or repeated."""
    calls, opened = itertools.count(1), []

    class Flaky(io.FileIO):
        def __init__(self, path):
            super().__init__(path)
            opened.append(self)

        def read(self, size=-1):
            if next(calls) in {1, 4, 5, 9, 16, 17}:
                raise failure
            return super().read(size if kind else min(size, 30_000))

    monkeypatch.setattr(compression, "open_input", Flaky)
    monkeypatch.setattr(compression, "INFLATE_BYTES", 10_000)
    file = reader(save(COMPRESS[kind](FORMATS[reader](ELEMENTS))), kind, 30_000)
    found, columns, failures = [], [[]], 0
    while columns is not None:
        found += columns[0]
        try:
            columns = file.columns(100)
        except (OSError, KeyboardInterrupt) as error:
            columns = [[]]
            failures += error is failure
    assert found == ELEMENTS
    assert 2 < failures < len(opened)  # a handle that failed may be stale
    assert all(handle.closed for handle in opened)


def test_files_are_closed_at_the_end_on_damage_on_close_and_when_abandoned(reader, save, opened):
    path = save(FORMATS[reader](ELEMENTS))
    at_end, abandoned, closed = reader(path), reader(path), reader(path)
    assert read(at_end, 10_000) == (ELEMENTS, None)
    with pytest.raises(DataLossError):
        reader(path, "ZLIB").columns(1)
    assert opened.all_closed()
    closed.columns(1)
    abandoned.columns(1)
    assert not opened.all_closed()
    place = closed.tell()
    closed.close()
    closed.close()
    del abandoned
    gc.collect()
    assert opened.all_closed()
    assert len(opened.files) == 4
    assert closed.tell() == place
    for use in (lambda: closed.columns(1), lambda: closed.seek(0, 0)):
        with pytest.raises(ClosedError, match=r"0\.tfrecord was closed"):
            use()


def test_elements_asked_for_one_by_one_are_not_read_one_by_one(reader, save, opened):
    file = reader(save(FORMATS[reader](ELEMENTS)))
    assert file.columns(1) == [ELEMENTS[:1]]
    [handle] = opened.files
    position = handle.tell()
    assert [file.columns(1)[0][0] for _ in range(1000)] == ELEMENTS[1:1001]
    assert handle.tell() == position


def test_a_file_that_grows_and_vanishes_is_read_to_its_end(reader, save):
    path = save(FORMATS[reader](ELEMENTS[:9]))
    file = reader(path, None, 40)
    found = file.columns(1)[0]
    with path.open("ab") as more:
        more.write(FORMATS[reader](ELEMENTS[9:12]))
    path.unlink()
    assert found + read(file)[0] == ELEMENTS[:12]


@pytest.mark.parametrize("kind", ALL_KINDS[1:])
def test_a_stream_that_is_cut_gives_all_whole_elements_and_says_where(reader, kind, save):
    content = COMPRESS[kind](FORMATS[reader](ELEMENTS))
    found, error = read(reader(save(content[:-9]), kind), 10_000)
    assert found == ELEMENTS[: len(found)]
    assert len(found) > 5000
    assert (error.record, error.offset) == (len(found), len(FORMATS[reader](ELEMENTS[: len(found)])))
    assert f"the {kind} stream is truncated" in str(error)


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_a_place_behind_the_end_is_data_loss(reader, kind, save):
    file = reader(save(COMPRESS[kind](FORMATS[reader](ELEMENTS[:2]))), kind)
    file.seek(100, 5)
    found, error = read(file)
    assert (found, error.offset, error.record) == ([], 100, 5)
    assert "reading has to start at byte 100" in str(error)
