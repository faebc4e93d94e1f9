"""Tests of TFRecordDataset(on_error="skip"): only damaged records are lost, and they are reported and counted.

``model`` is a simple and slow reader that computes the expected records from the definition of the format.
"""

from __future__ import annotations

import gzip
import io as stdlib_io
import itertools
import logging
import random
import struct
import tempfile
import threading
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset import ClosedError, DataLossError, Dataset, TFRecordDataset, io
from dataset.io.tfrecord.damage.damage_log import LOGGED_MAX
from dataset.testing import check_operator
from support.tfrecord_files import assorted, masked

HEADER, FOOTER = 12, 4


def frame(data):
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


def model(content):
    """Return the valid records, and for each damaged place: offset, record number, whether reading can continue."""
    records, damages, at = [], [], 0
    number = -1
    while at < len(content):
        number += 1
        header = content[at : at + HEADER]
        if len(header) < HEADER or masked(header[:8]) != header[8:]:
            return records, [*damages, (at, number, False)]
        end = at + HEADER + struct.unpack("<Q", header[:8])[0]
        if end + FOOTER > len(content):
            return records, [*damages, (at, number, False)]
        data = content[at + HEADER : end]
        if masked(data) == content[end : end + FOOTER]:
            records.append(data)
        else:
            damages.append((at, number, True))
        at = end + FOOTER
    return records, damages


def flipped(content, *places):
    content = bytearray(content)
    for place in places:
        content[place] ^= 0x40
    return bytes(content)


def data_places(records, *numbers):
    """Return the offset of the first data byte of each record."""
    offsets = [0, *itertools.accumulate(len(frame(record)) for record in records)]
    return [offsets[number] + HEADER for number in numbers]


@pytest.fixture
def logged(caplog):
    caplog.set_level(logging.WARNING, "dataset")
    return lambda: [record.getMessage() for record in caplog.records if record.name == "dataset"]


def skipping(*paths, **arguments):
    return TFRecordDataset(list(paths), **arguments, on_error="skip")


def skipped(iterator):
    """Return the counts by operator, without zeros."""
    return {op.name: op.skipped_elements for op in iterator.stats().operators if op.skipped_elements}


def run(dataset):
    iterator = iter(dataset)
    return list(iterator), skipped(iterator)


RECORDS = [b"%020d" % i for i in range(100)]


def test_a_damaged_record_costs_nobody_but_itself(save):
    path = save(flipped(b"".join(map(frame, RECORDS)), *data_places(RECORDS, 0, 7, 8, 50, 99)))
    found, counts = run(skipping(path))
    assert found == [record for number, record in enumerate(RECORDS) if number not in {0, 7, 8, 50, 99}]
    assert counts == {"TFRecordDataset": 5}


def test_by_default_damage_is_an_error_and_costs_the_rest_of_its_file(save):
    bad = save(flipped(b"".join(map(frame, RECORDS)), *data_places(RECORDS, 3)))
    good = save(frame(b"good"))
    for arguments in ({}, {"on_error": "raise"}):
        iterator = iter(TFRecordDataset([bad, good], **arguments))
        assert list(itertools.islice(iterator, 3)) == RECORDS[:3]
        with pytest.raises(DataLossError, match="record 3"):
            next(iterator)
        assert list(iterator) == [b"good"]
        assert skipped(iterator) == {}


def test_a_broken_length_ends_its_file_and_the_next_is_read(save):
    content = b"".join(map(frame, RECORDS))
    for place in (36 * 5, 36 * 5 + 8):  # in the length, in its checksum
        found, counts = run(skipping(save(flipped(content, place)), save(frame(b"next"))))
        assert found == [*RECORDS[:5], b"next"]
        assert counts == {"TFRecordDataset": 1}


@pytest.mark.parametrize("kind", ["", "GZIP", "ZLIB"])
def test_a_file_that_is_cut_gives_the_records_before_the_cut(save, kind):
    records = assorted(60, largest=200)
    content = b"".join(map(frame, records))
    compressed = {"": bytes, "GZIP": lambda data: gzip.compress(data, mtime=0), "ZLIB": zlib.compress}[kind](content)
    for length in range(0, len(compressed), 97):
        cut = compressed[:length]
        inflated = cut if not kind else zlib.decompressobj(31 if kind == "GZIP" else 15).decompress(cut)
        expected, _ = model(inflated)
        found, counts = run(skipping(save(cut), save(compressed), compression_type=kind))
        assert found == [*expected, *records]
        assert counts == ({"TFRecordDataset": 1} if cut and (kind or model(cut)[1]) else {})


@pytest.mark.parametrize("kind", ["GZIP", "ZLIB"])
def test_damaged_records_in_a_sound_compressed_stream_are_passed_over(save, kind):
    content = flipped(b"".join(map(frame, RECORDS)), *data_places(RECORDS, 2, 60))
    compressed = (gzip.compress if kind == "GZIP" else zlib.compress)(content)
    found, counts = run(skipping(save(compressed), compression_type=kind))
    assert found == model(content)[0]
    assert len(found) == 98
    assert counts == {"TFRecordDataset": 2}


@pytest.mark.parametrize("kind", ["GZIP", "ZLIB"])
def test_a_corrupt_compressed_stream_gives_what_came_before(save, kind):
    records = assorted(500, largest=300)
    compressed = bytearray((gzip.compress if kind == "GZIP" else zlib.compress)(b"".join(map(frame, records))))
    compressed[-1 - len(compressed) // 3] ^= 0xFF
    found, counts = run(skipping(save(bytes(compressed)), compression_type=kind))
    assert found[:250] == records[:250]
    assert set(found) < set(records)
    assert counts["TFRecordDataset"] >= 1


def test_records_larger_than_a_block_are_passed_over_too(save):
    records = [random.Random(i).randbytes(100_000) for i in range(6)]
    path = save(flipped(b"".join(map(frame, records)), *data_places(records, 0, 3, 5)))
    for size in (None, 1000, 0):
        found, counts = run(skipping(path, buffer_size=size))
        assert found == [records[1], records[2], records[4]]
        assert counts == {"TFRecordDataset": 3}


def test_a_length_that_reaches_beyond_the_file_ends_it(save):
    length = struct.pack("<Q", 1 << 40)
    found, counts = run(skipping(save(frame(b"a") + length + masked(length) + b"tail"), save(frame(b"b"))))
    assert found == [b"a", b"b"]
    assert counts == {"TFRecordDataset": 1}


def test_what_is_no_tfrecord_file_gives_nothing_and_says_so(save, logged):
    assert run(skipping(save(b"a text\n" * 20))) == ([], {"TFRecordDataset": 1})
    (message,) = logged()
    assert "is this a TFRecord file?" in message


# Reports


def test_each_place_is_a_warning_with_operation_file_record_and_offset(save, logged):
    records = [b"zero", b"one", b"two"]
    content = flipped(b"".join(map(frame, records)), *data_places(records, 1))
    path = save(content[:-1])
    assert list(skipping(path)) == [b"zero"]
    damaged, cut = logged()
    assert damaged.startswith("TFRecordDataset from test_tfrecord_source.py:")
    assert f" skipped a damaged record: {path}, record 1, at byte 20: " in damaged
    assert "the checksum of a record's 3 bytes is wrong" in damaged
    assert f"skipped the rest of a damaged file: {path}, record 2, at byte 39: a record is truncated" in cut


def test_a_file_full_of_damage_does_not_fill_the_log(save, logged):
    content = b"".join(map(frame, RECORDS))
    bad = save(flipped(content, *data_places(RECORDS, *range(100))))
    found, counts = run(skipping(bad, save(flipped(content, 0)), bad))
    assert found == []
    assert counts == {"TFRecordDataset": 201}
    messages = logged()
    assert len(messages) == (LOGGED_MAX + 1) + 1 + (LOGGED_MAX + 1)
    assert messages[LOGGED_MAX].endswith(f"skipped 100 damaged records of {bad}; only the first 10 were logged")


def test_as_many_as_are_logged_need_no_sum(save, logged):
    content = b"".join(map(frame, RECORDS))
    list(skipping(save(flipped(content, *data_places(RECORDS, *range(LOGGED_MAX))))))
    assert len(logged()) == LOGGED_MAX


def test_a_reader_that_stops_early_says_what_it_passed_over(save, logged):
    path = save(flipped(b"".join(map(frame, RECORDS)), *data_places(RECORDS, *range(40), 70)))
    with iter(skipping(path)) as iterator:
        assert next(iterator) == RECORDS[40]
    assert "skipped 40 damaged records" in logged()[-1]
    assert skipped(iterator) == {"TFRecordDataset": 40}


def test_statistics_are_printed(save):
    iterator = iter(skipping(save(flipped(frame(b"abc") + frame(b"def"), HEADER))))
    assert list(iterator) == [b"def"]
    header, row = str(iterator.stats()).splitlines()[1:3]
    assert header.split()[:3] == ["operator", "elements", "skipped"]
    assert row.split()[:3] == ["TFRecordDataset", "1", "1"]
    assert iterator.stats().to_dict()["operators"][0]["skipped_elements"] == 1


def test_sound_files_say_nothing(save, logged):
    iterator = iter(skipping(save(frame(b"abc"))))
    assert list(iterator) == [b"abc"]
    assert "skipped" not in str(iterator.stats())
    assert logged() == []


# Errors other than damage


def test_a_missing_file_is_an_error_all_the_same(save, tmp_path):
    iterator = iter(skipping(save(frame(b"a")), str(tmp_path / "missing"), save(frame(b"b"))))
    assert next(iterator) == b"a"
    with pytest.raises(FileNotFoundError, match="missing"):
        next(iterator)
    assert list(iterator) == [b"b"]
    assert skipped(iterator) == {}


def test_a_directory_is_an_error_all_the_same(save, tmp_path):
    iterator = iter(skipping(str(tmp_path), save(frame(b"b"))))
    with pytest.raises(IsADirectoryError):
        next(iterator)
    assert list(iterator) == [b"b"]


@pytest.mark.parametrize("wrong", ["ignore", None, True, ["skip"]])
def test_other_values_are_refused_at_construction(wrong):
    with pytest.raises(ValueError, match='on_error must be "raise" or "skip", got'):
        TFRecordDataset("a", on_error=wrong)
    with pytest.raises(TypeError):
        TFRecordDataset("a", None, None, None, None, "skip")


def test_an_error_while_reading_does_not_lose_what_is_behind_damage(save, monkeypatch):
    """A system error occurs once in the middle of a file; the records after a damaged one are still returned."""
    records = [random.Random(i).randbytes(3000) for i in range(40)]
    content = flipped(b"".join(map(frame, records)), *data_places(records, 2, 9, 30))

    class Unreliable(stdlib_io.BytesIO):
        reads = 0

        def read(self, size=-1, /):
            type(self).reads += 1
            if type(self).reads % 5 == 0:
                raise TimeoutError("slow disk")
            return super().read(size)

    monkeypatch.setattr("dataset.io.files.stream_file.open_input", lambda path: Unreliable(content))
    with io_file() as file:
        found, failures = [], 0
        while True:
            try:
                some = file.records(1)
            except TimeoutError:
                failures += 1
                continue
            if some is None:
                break
            found += some
    assert failures
    assert found == model(content)[0]


def io_file():
    from dataset.io.tfrecord.damage.lenient_reader import LenientTFRecordFile

    return LenientTFRecordFile("any", buffer_size=10_000)


# In pipelines


@pytest.fixture
def files(save):
    """Draw five files; return them, the valid records of each, and the total number of damaged places."""
    contents = [flipped(b"".join(map(frame, RECORDS)), *data_places(RECORDS, *range(i, 100, 9 + i))) for i in range(4)]
    contents.append(contents[0][: 36 * 50 - 1])
    return [save(c) for c in contents], [model(c)[0] for c in contents], sum(len(model(c)[1]) for c in contents)


@pytest.mark.parametrize("reads", [1, 2, 3, -1])
def test_files_that_are_read_at_once_count_where_the_user_sees_it(files, reads):
    paths, sound, damages = files
    iterator = iter(skipping(*paths, num_parallel_reads=reads))
    assert sorted(iterator) == sorted(itertools.chain(*sound))
    ((name, count),) = skipped(iterator).items()
    assert name.startswith("interleave")
    assert count == damages


@pytest.mark.parametrize("calls", [None, 2])
def test_datasets_inside_an_interleave_count_there(files, calls):
    paths, sound, damages = files
    names = Dataset.from_tensor_slices(paths)
    iterator = iter(names.interleave(lambda path: TFRecordDataset(path, on_error="skip"), 3, num_parallel_calls=calls))
    assert sorted(iterator) == sorted(itertools.chain(*sound))
    assert list(skipped(iterator).values()) == [damages]


def test_datasets_inside_a_flat_map_count_there(files):
    paths, sound, damages = files
    names = Dataset.from_tensor_slices(paths)
    iterator = iter(names.flat_map(lambda path: TFRecordDataset(path, on_error="skip")))
    assert list(iterator) == list(itertools.chain(*sound))
    assert list(skipped(iterator).values()) == [damages]


def test_in_a_pipeline_of_threads(files):
    paths, sound, damages = files
    iterator = iter(skipping(*paths).shuffle(10, seed=1).map(len, num_parallel_calls=2).batch(7).prefetch(2).repeat(2))
    assert sum(map(len, iterator)) == 2 * len(list(itertools.chain(*sound)))
    assert skipped(iterator) == {"TFRecordDataset": 2 * damages}


def test_no_thread_and_no_file_is_left_where_a_damaged_file_is_left_in_the_middle(files):
    paths, _, _ = files
    before = threading.active_count()
    with iter(skipping(*paths, num_parallel_reads=2).prefetch(1)) as iterator:
        next(iterator)
    assert threading.active_count() <= before  # threads of earlier tests may have ended


@pytest.mark.parametrize("size", [None, 40, 300])
@pytest.mark.parametrize("kind", ["", "GZIP"])
def test_it_is_an_operator_like_any_other(save, size, kind):
    content = flipped(b"".join(map(frame, RECORDS[:30])), *data_places(RECORDS, 0, 1, 5, 29))
    pack = gzip.compress if kind else bytes
    paths = [save(pack(content)), save(pack(content[:-3])), save(pack(flipped(content, 36 * 20))), save(pack(b""))]
    expected = [record for c in (content, content[:-3], flipped(content, 36 * 20)) for record in model(c)[0]]
    check_operator(
        lambda: skipping(*paths, compression_type=kind, buffer_size=size), expected, positions=40 if size == 40 else 4
    )


def test_so_it_is_with_several_files_at_once(files):
    paths, _, _ = files
    check_operator(lambda: skipping(*paths[:3], num_parallel_reads=2), positions=6)


def test_a_pass_in_two_halves_counts_each_damaged_place_once(save):
    path = save(flipped(b"".join(map(frame, RECORDS[:30])), *data_places(RECORDS, 0, 1, 5, 17, 29)))
    for position in range(26):
        first, second = iter(skipping(path)), iter(skipping(path))
        found = list(itertools.islice(first, position))
        second.load_state_dict(first.state_dict())
        found += list(second)
        assert len(found) == 25
        counted = sum(skipped(first).values()) + sum(skipped(second).values())
        assert counted == 5


def test_record_numbers_count_what_was_passed_over(save, logged):
    content = flipped(b"".join(map(frame, RECORDS)), *data_places(RECORDS, 3, 60))
    path = save(content)
    first, second = iter(skipping(path)), iter(skipping(path))
    list(itertools.islice(first, 10))
    second.load_state_dict(first.state_dict())
    list(second)
    assert [message.split(", ")[1] for message in logged()] == ["record 3", "record 60"]


# Any damage


@settings(deadline=None, max_examples=150)
@given(
    data=st.data(),
    count=st.integers(0, 60),
    largest=st.sampled_from([1, 30, 400]),
    size=st.sampled_from([None, 0, 64, 500]),
    kind=st.sampled_from(["", "GZIP"]),
)
def test_any_damage_loses_what_the_model_loses(data, count, largest, size, kind):
    content = bytearray(b"".join(map(frame, assorted(count, largest=largest))))
    if content:
        for place in data.draw(st.sets(st.integers(0, len(content) - 1), max_size=8)):
            content[place] ^= data.draw(st.integers(1, 255))
        content = content[: data.draw(st.one_of(st.just(len(content)), st.integers(0, len(content))))]
    records, damages = model(bytes(content))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a")
        path.write_bytes(gzip.compress(content) if kind else content)
        dataset = skipping(str(path), compression_type=kind, buffer_size=size)
        assert run(dataset) == (records, {"TFRecordDataset": len(damages)} if damages else {})
        position = data.draw(st.integers(0, len(records)))
        with iter(dataset) as first:
            assert list(itertools.islice(first, position)) == records[:position]
            state = first.state_dict()
        with iter(dataset) as second:
            second.load_state_dict(state)
            assert list(second) == records[position:]


@settings(deadline=None, max_examples=100)
@given(content=st.binary(max_size=300), lengths=st.booleans())
def test_no_bytes_at_all_raise_or_give_what_the_model_does_not(content, lengths):
    if lengths:  # damage bytes after the first eight
        content = b"".join(frame(bytes(byte % 7))[: HEADER + byte % 11] for byte in content[:9]) + content
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a")
        path.write_bytes(content)
        found, counts = run(skipping(str(path)))
    records, damages = model(content)
    assert found == records
    assert sum(counts.values()) == len(damages)


def test_ignore_errors_counts_what_it_drops():
    def check(x):
        if x % 3 == 0:
            raise ValueError(x)
        return x

    found, counts = run(Dataset.range(10).map(check).ignore_errors())
    assert [int(x) for x in found] == [1, 2, 4, 5, 7, 8]
    assert counts == {"ignore_errors": 4}
    _, counts = run(Dataset.range(2).flat_map(lambda _: Dataset.range(10).map(check).ignore_errors()))
    assert list(counts.values()) == [8]


def test_it_reads_what_the_writer_writes(tmp_path):
    path = str(tmp_path / "a")
    with io.TFRecordWriter(path) as writer:
        for record in RECORDS:
            writer.write(record)
    assert run(skipping(path)) == (RECORDS, {})


def test_who_closes_the_iterator_need_not_wait_for_the_end_of_the_damage(save, monkeypatch):
    """The search after damage in this file never ends; the iterator is closed during it."""
    content = flipped(b"".join(map(frame, RECORDS)), *data_places(RECORDS, *range(100)))
    path = save(content)
    begun = threading.Event()

    class Endless(stdlib_io.BytesIO):
        def read(self, size=-1, /):
            begun.set()
            return content

    monkeypatch.setattr("dataset.io.files.stream_file.open_input", lambda path: Endless())
    iterator = iter(skipping(path, buffer_size=len(content)).prefetch(1))

    def consume():
        with pytest.raises(ClosedError):
            next(iterator)

    consumer = threading.Thread(target=consume)
    consumer.start()
    assert begun.wait(60)
    iterator.close()
    consumer.join(60)
    assert not consumer.is_alive()
