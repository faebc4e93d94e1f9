"""Tests of ranges that are fetched beside one another: which are requested, and that no failure changes a byte."""

import random
import threading

import pytest

from dataset import TFRecordDataset
from dataset.io.files.opening import open_input
from dataset.io.files.remote import ranges_ahead
from dataset.io.files.remote.http import HTTPObject
from support.tfrecord_files import frames

pytestmark = pytest.mark.usefixtures("small_ranges")

CONTENT = random.Random(1).randbytes(30_000)
RECORDS = [random.Random(i).randbytes(40) for i in range(200)]


def meet(web, monkeypatch, parties, after):
    """Let no request after the first few be answered before ``parties`` of them are in progress; return the barrier."""
    barrier, find = threading.Barrier(parties), web.find
    waiting = iter(range(parties))

    def found(path):
        if len(web.requests) > after and next(waiting, None) is not None:
            barrier.wait(30)
        return find(path)

    monkeypatch.setattr(web, "find", found)
    return barrier


def test_a_file_that_is_read_through_is_requested_in_many_ranges_at_a_time(web, monkeypatch):
    barrier = meet(web, monkeypatch, ranges_ahead.RANGES_FIRST, after=3)
    with open_input(web.put("a", CONTENT)) as file:
        assert b"".join(iter(lambda: file.read(300), b"")) == CONTENT
    assert not barrier.broken
    ranges = sorted(web.ranges())
    assert [start for start, _ in ranges[1:]] == [stop for _, stop in ranges[:-1]]
    assert (ranges[0][0], ranges[-1][1]) == (0, len(CONTENT))
    assert all(stop - start <= ranges_ahead.RANGE_BYTES for start, stop in ranges[3:])


@pytest.fixture
def requested(monkeypatch):
    """Return the list of the ranges that are requested, in order."""
    found = []
    for name in ("begin", "fetch"):
        request = getattr(HTTPObject, name)
        noting = lambda self, start, stop, into, request=request: (
            found.append((start, stop)) or request(self, start, stop, into)
        )
        monkeypatch.setattr(HTTPObject, name, noting)
    return found


def test_no_more_is_requested_than_four_times_what_was_read(web, requested):
    with open_input(web.put("a", CONTENT)) as file:
        for length in (500, 2000, 5000, 12_000):
            file.read(length)
            assert max(stop for _, stop in requested) <= 5 * file.tell() + ranges_ahead.RANGE_BYTES
        requested.clear()
        file.seek(100)
        file.read(10)
        assert requested == [(100, 600)]


def test_a_file_of_a_folder_whose_last_one_was_read_through_is_requested_whole_soon(web, requested):
    for name in "ab":
        requested.clear()
        with open_input(web.put(name, CONTENT[:5000])) as file:
            assert requested == [(0, 500)]
            file.read(501)
            wanted = sorted(requested)
            assert file.read() == CONTENT[501:5000]
    assert wanted == [(0, 500), (500, 2500), (2500, 3200), (3200, 3900), (3900, 4600), (4600, 5000)]


def test_announced_ranges_are_requested_beside_one_another(web, monkeypatch):
    places = random.Random(2).sample(range(600, 29_900), 50)
    with open_input(web.put("a", CONTENT)) as file:
        barrier = meet(web, monkeypatch, ranges_ahead.RANGES_MAX, after=1)
        file.expect([(place, place + 50) for place in places])
        for place in places[:10] + places[20:40]:  # some are not read
            file.seek(place)
            assert file.read(50) == CONTENT[place : place + 50]
        assert not barrier.broken
        assert set(web.ranges()[1:]) <= {(place, place + 50) for place in places}
        file.seek(100)  # an announced range, or one that was read before, may be left for any other
        assert file.read(29_000) == CONTENT[100:29_100]


@pytest.mark.parametrize("fault", [503, ("cut", 0), ("cut", 100)])
def test_a_range_that_fails_is_fetched_again_and_fewer_are_requested_for_a_while(web, fault, monkeypatch):
    counts, slow_down = [], ranges_ahead.Pace.slow_down
    monkeypatch.setattr(ranges_ahead.Pace, "slow_down", lambda pace: counts.extend([slow_down(pace), pace.count]))
    with open_input(web.put("a", CONTENT, faults=[None, None, None, None, fault])) as file:
        assert file.read() == CONTENT
    assert counts[1] == ranges_ahead.RANGES_FIRST // 2


def test_where_other_files_have_all_requests_one_range_is_read_at_a_time(web, monkeypatch):
    monkeypatch.setattr(ranges_ahead, "_PROCESS_RANGES_MAX", 0)
    with open_input(web.put("a", CONTENT)) as file:
        file.expect([(100, 200), (300, 400)])
        assert file.read() == CONTENT
    ranges = web.ranges()
    assert ranges == sorted(ranges)


def test_more_requests_are_made_as_long_as_that_raises_the_rate(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(ranges_ahead.time, "perf_counter", lambda: now[0])
    for useful, share, expected in ((64, 1.0, 32), (16, 1.0, 16), (64, 0.0, 8)):
        pace = ranges_ahead.Pace()
        for _ in range(1000):
            seconds = 1.0 / min(useful, pace.count)
            now[0] += seconds
            pace.arrived(1000, share * seconds)
        assert pace.count == expected


def test_random_records_are_requested_beside_one_another(web, monkeypatch):
    path = web.put("a", frames(RECORDS))
    records = TFRecordDataset([path], index=True)
    web.ranges()
    barrier = meet(web, monkeypatch, 8, after=3)  # those that open the file
    shuffled = list(records.shuffle(None, seed=1).batch(20))
    assert not barrier.broken
    assert sorted(record for batch in shuffled for record in batch) == sorted(RECORDS)


@pytest.mark.parametrize("shuffled", [False, True])
def test_the_records_of_an_indexed_file_are_requested_once(web, requested, shuffled):
    records = [random.Random(i).randbytes(i % 300) for i in range(400)]
    path = web.put("a", content := frames(records))
    dataset = TFRecordDataset([path], index=True, buffer_size=1000)
    requested.clear()
    assert sorted(dataset.shuffle(None, seed=1) if shuffled else dataset) == sorted(records)
    assert sum(min(stop, len(content)) - start for start, stop in requested) < 1.1 * len(content)


@pytest.mark.parametrize("clump", [5, 10])
@pytest.mark.parametrize("buffer_size", [30, 100])
def test_a_clump_of_neighbors_is_requested_at_once(web, requested, clump, buffer_size):
    records = [random.Random(i).randbytes(40) for i in range(400)]
    path = web.put("a", content := frames(records))
    dataset = TFRecordDataset([path], index=True, buffer_size=1000)  # the bytes of 17 records
    requested.clear()
    batches = list(dataset.shuffle(buffer_size, seed=1, clump=clump).batch(7))
    assert sorted(record for batch in batches for record in batch) == sorted(records)
    assert sum(min(stop, len(content)) - start for start, stop in requested) < 1.1 * len(content)
    assert 400 // clump * 0.8 < len(requested) < 400 // clump * 1.1 + 9


def test_each_process_requests_its_own_clumps(web, requested):
    records = [random.Random(i).randbytes(40) for i in range(400)]
    path = web.put("a", content := frames(records))
    dataset = TFRecordDataset([path], index=True).shuffle(50, seed=1, clump=10)
    found = []
    for rank in range(4):
        requested.clear()
        found += dataset.shard_by_process(rank, 4)
        assert len(requested) < 20
        assert sum(min(stop, len(content)) - start for start, stop in requested) < 0.4 * len(content)
    assert sorted(found) == sorted(records)


def test_announced_ranges_of_any_size_may_begin_in_what_was_read(web, requested):
    with open_input(web.put("a", CONTENT)) as file:
        file.expect([(400, 600), (1000, 2000)])
        assert (file.seek(400), file.read(200)) == (400, CONTENT[400:600])
        assert (file.seek(1000), file.read(1000)) == (1000, CONTENT[1000:2000])
    assert requested == [(0, 500), (400, 600), (1000, 1700), (1700, 2000)]


def test_a_file_that_is_missing_by_now_fails_in_the_place_of_its_records(web):
    paths = [web.put(name, frames(RECORDS[:2])) for name in "ab"]
    records = TFRecordDataset(paths, index=True)
    del web.files["/b"]
    iterator = iter(records)
    assert [next(iterator), next(iterator)] == RECORDS[:2]
    with pytest.raises(FileNotFoundError):
        next(iterator)
