"""Tests of reading remote files: the same bytes as from local ones, with few requests and bounded memory."""

from __future__ import annotations

import io as streams
import itertools
import os
import random

import pytest

from dataset import Dataset, TFRecordDataset
from dataset.io.files.opening import open_input
from dataset.io.files.remote import ranges_ahead, reading
from dataset.io.files.remote.ranges_ahead import RANGE_BYTES
from dataset.io.files.remote.reading import AHEAD_BYTES_MAX, AHEAD_BYTES_MIN
from dataset.testing import check_operator, no_leaks
from support.memory import memory_below
from support.tfrecord_files import COMPRESS, KINDS, frames

RECORDS = [b"%d" % i * (i % 7) for i in range(7)]
CONTENT = frames(RECORDS)
WAYS = ["http", "http without ranges", "http without size", "http without ETag", "memory", "chained"]


@pytest.fixture(params=WAYS)
def put(request, web_folder, memory, tmp_path, monkeypatch):
    """Return a function that stores bytes under a name in a storage and returns the path."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def in_memory(name, content):
        memory.pipe_file(f"/{name}", content)
        return f"memory://{name}"

    return {
        "http": web_folder.put,
        "http without ranges": lambda name, content: web_folder.put(name, content, "ranges=no"),
        "http without size": lambda name, content: web_folder.put(name, content, "ranges=no&length=no"),
        "http without ETag": lambda name, content: web_folder.put(name, content, "etag=no"),
        "memory": in_memory,
        "chained": lambda name, content: f"filecache::{in_memory(name, content)}",
    }[request.param]


# The bytes.


def test_records_come_out_and_reading_resumes(put):
    for kind in KINDS:
        path, empty = put(f"a{kind}.gz", COMPRESS[kind](CONTENT)), put(f"b{kind}", b"")
        for size in (1, None):
            assert list(TFRecordDataset([empty, path], kind, size)) == RECORDS
        assert list(TFRecordDataset([empty, path], "AUTO")) == RECORDS
    check_operator(lambda: TFRecordDataset(path, kind), RECORDS, positions=3)


def test_any_reads_and_moves_give_what_a_local_file_gives(put, monkeypatch):
    monkeypatch.setattr(reading, "AHEAD_BYTES_MIN", 64)
    monkeypatch.setattr(reading, "AHEAD_BYTES_MAX", 1024)
    monkeypatch.setattr(ranges_ahead, "RANGE_BYTES", 256)
    content = random.Random(1).randbytes(5000)
    local, remote = streams.BytesIO(content), open_input(put("a", content))
    rng = random.Random(2)
    for _ in range(100):
        if rng.random() < 0.3:
            place = rng.randrange(5200)
            assert remote.seek(place) == local.seek(place) == remote.tell()
        size = rng.choice([0, 1, 10, 100, 700, 3000])
        assert remote.read(size) == local.read(size)
        assert remote.tell() == local.tell()
    remote.seek(4000)
    assert remote.read() == content[4000:]
    remote.close()
    remote.close()


def test_where_the_size_is_unknown_it_says_so(web):
    with open_input(web.put("a", b"abc", ranges=False, length=False)) as file:
        assert not file.seekable()
        with pytest.raises(OSError, match="does not report the size"):
            file.seek(0, os.SEEK_END)
        assert file.read() == b"abc"


def test_readers_of_one_file_in_memory_do_not_move_each_other(memory):
    memory.pipe_file("/a", CONTENT)
    first, second = (TFRecordDataset("memory://a", buffer_size=1) for _ in range(2))
    assert list(Dataset.zip(first, second)) == [(record, record) for record in RECORDS]


# The requests.


def test_a_file_that_is_read_through_takes_few_requests_that_grow(web):
    content = random.Random(1).randbytes(20 << 20)
    with open_input(web.put("a", content)) as file:
        assert b"".join(iter(lambda: file.read(1 << 18), b"")) == content
    ranges = sorted(web.ranges())
    assert ranges[:3] == [*itertools.pairwise([0, 128 << 10, 640 << 10, 2688 << 10])]
    assert all(stop - start == RANGE_BYTES for start, stop in ranges[3:-1])
    assert [start for start, _ in ranges] == [0, *(stop for _, stop in ranges[:-1])]


def test_after_a_jump_little_more_than_asked_for_is_fetched(web):
    content = random.Random(1).randbytes(8 << 20)
    with open_input(web.put("a", content)) as file:
        assert web.ranges() == [(0, AHEAD_BYTES_MIN)]
        for place in (7 << 20, 3 << 20, 5 << 20):
            file.seek(place)
            assert file.read(100) == content[place : place + 100]
            assert file.read(1000) == content[place + 100 : place + 1100]
            assert web.ranges() == [(place, place + AHEAD_BYTES_MIN)]
        file.seek((5 << 20) + 10)  # still in the buffer
        file.read(10)
        assert file.seek(0, os.SEEK_END) == 8 << 20
        assert file.read(1) == b""
        assert web.ranges() == []


def test_a_file_without_ranges_is_sent_once_where_reading_goes_forward(web):
    content = random.Random(1).randbytes(2 << 20)
    with open_input(web.put("a", content, ranges=False)) as file:
        file.seek(1000)
        assert file.read(10) == content[1000:1010]
        file.seek(1 << 20)
        assert file.read() == content[1 << 20 :]
        assert len(web.ranges()) == 1
        file.seek(5)
        assert file.read(5) == content[5:10]
        assert len(web.ranges()) == 1


@pytest.mark.parametrize("ranges", [True, False])
def test_memory_stays_around_one_range(web, ranges):
    path = web.put("a", bytes(48 << 20), ranges=ranges)
    # The server in this process also copies the ranges that it sends.
    with memory_below(4 * AHEAD_BYTES_MAX), open_input(path) as file:
        while file.read(1 << 18):
            pass


@pytest.mark.parametrize("query", ["", "ranges=no"])
@pytest.mark.usefixtures("small_ranges")
def test_connections_are_given_back_however_reading_ends(web_folder, query):
    path = web_folder.put("a", frames([bytes(1000)] * 200), query)
    list(TFRecordDataset(path))
    with no_leaks():
        list(TFRecordDataset(path))
    for dataset in (TFRecordDataset(path).prefetch(1), TFRecordDataset(path, num_parallel_reads=2)):
        for end in (lambda iterator: iterator.close(), lambda iterator: None):
            with no_leaks():
                iterator = iter(dataset)
                next(iterator)
                end(iterator)
                del iterator
    with no_leaks():
        file = open_input(path)
        file.read(5)
        del file
