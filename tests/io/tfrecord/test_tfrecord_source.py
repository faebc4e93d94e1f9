"""Tests of TFRecordDataset(on_error="skip"): only damaged records are lost, and they are reported and counted."""

from __future__ import annotations

import io as stdlib_io
import itertools
import logging
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from dataset import ClosedError, Dataset, TFRecordDataset
from dataset.io.tfrecord.damage.damage_log import LOGGED_MAX, DamageLog
from dataset.io.tfrecord.reader import TFRecordFile
from dataset.testing import check_operator
from support.folders import flipped
from support.op_cases import fail_at
from support.tfrecord_files import COMPRESS, HEADER, frame, frames, model


def with_damage(records, *numbers):
    """Return the file of the records; the data of these ones has a wrong byte."""
    content = frames(records)
    for number in numbers:
        content = flipped(content, len(frames(records[:number])) + HEADER)
    return content


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
CONTENT = frames(RECORDS)


# Reports


def test_each_place_is_a_warning_with_operation_file_record_and_offset(save, logged):
    path = save(with_damage([b"zero", b"one", b"two"], 1)[:-1])
    assert list(skipping(path)) == [b"zero"]
    damaged, cut = logged()
    assert damaged.startswith("TFRecordDataset from test_tfrecord_source.py:")
    assert f" skipped a damaged record: {path}, record 1, at byte 20: " in damaged
    assert "the checksum of a record's 3 bytes is wrong" in damaged
    assert f"skipped the rest of a damaged file: {path}, record 2, at byte 39: a record is truncated" in cut
    assert run(skipping(save(b"a text\n" * 20))) == ([], {"TFRecordDataset": 1})
    assert "is this a TFRecord file?" in logged()[-1]


def test_a_file_full_of_damage_does_not_fill_the_log(save, logged):
    bad = save(with_damage(RECORDS, *range(100)))
    assert run(skipping(bad, save(flipped(CONTENT, 0)), bad)) == ([], {"TFRecordDataset": 201})
    assert len(logged()) == (LOGGED_MAX + 1) + 1 + (LOGGED_MAX + 1)
    assert logged()[LOGGED_MAX].endswith(f"skipped 100 damaged records of {bad}; only the first 10 were logged")
    list(skipping(save(with_damage(RECORDS, *range(LOGGED_MAX)))))
    assert len(logged()) == 3 * LOGGED_MAX + 3  # as many as are logged need no sum


def test_a_reader_that_stops_early_says_what_it_passed_over(save, logged):
    with iter(skipping(save(with_damage(RECORDS, *range(40), 70)))) as iterator:
        assert next(iterator) == RECORDS[40]
    assert "skipped 40 damaged records" in logged()[-1]
    assert skipped(iterator) == {"TFRecordDataset": 40}


def test_statistics_are_printed_and_sound_files_say_nothing(save, logged):
    iterator = iter(skipping(save(frame(b"abc"))))
    assert list(iterator) == [b"abc"]
    assert "skipped" not in str(iterator.stats())
    assert logged() == []
    iterator = iter(skipping(save(with_damage([b"abc", b"def"], 0))))
    assert list(iterator) == [b"def"]
    titles, row = str(iterator.stats()).splitlines()[1:3]
    assert (titles.split()[2], row.split()[:3]) == ("skipped", ["TFRecordDataset", "1", "1"])


# Errors other than damage


@pytest.mark.parametrize("wrong", ["ignore", None, True, ["skip"]])
def test_other_values_are_refused_at_construction(wrong):
    with pytest.raises(ValueError, match='on_error must be "raise" or "skip", got'):
        TFRecordDataset("a", on_error=wrong)
    with pytest.raises(TypeError):
        TFRecordDataset("a", None, None, None, None, "skip")


def test_an_error_while_reading_does_not_lose_what_is_behind_damage(monkeypatch):
    """A system error occurs now and then in the middle of a file; the records after a damaged one still come."""
    content = with_damage([random.Random(i).randbytes(3000) for i in range(40)], 2, 9, 30)
    reads = itertools.count(1)

    class Unreliable(stdlib_io.BytesIO):
        def read(self, size=-1, /):
            if next(reads) % 5 == 0:
                raise TimeoutError("slow disk")
            return super().read(size)

    monkeypatch.setattr("dataset.io.files.compression.open_input", lambda path: Unreliable(content))
    found, some, failures = [], [], 0
    with TFRecordFile("any", buffer_size=10_000, log=DamageLog("test")) as file:
        while some is not None:
            found += some
            try:
                some = file.records(1)
            except TimeoutError:
                some = []
                failures += 1
    assert failures
    assert found == model(content)[0]


# In pipelines


@pytest.fixture
def files(save):
    """Return five files, the valid records of each, and the total number of damaged places."""
    contents = [with_damage(RECORDS, *range(i, 100, 9 + i)) for i in range(4)]
    contents.append(contents[0][: 36 * 50 - 1])
    sound, damages = zip(*map(model, contents), strict=True)
    return [str(save(content)) for content in contents], [*itertools.chain(*sound)], sum(map(len, damages))


names = Dataset.from_tensor_slices


@pytest.mark.parametrize(
    ("read", "name"),
    [
        *((partial(skipping, num_parallel_reads=reads), "interleave") for reads in (1, 3, -1)),
        (lambda *paths: names([*paths]).interleave(skipping, 3), "interleave"),
        (lambda *paths: names([*paths]).interleave(skipping, 3, num_parallel_calls=2), "interleave"),
        (lambda *paths: names([*paths]).flat_map(skipping), "flat_map"),
        (lambda *paths: skipping(*paths).map(bytes, num_parallel_calls=2).batch(7).prefetch(2).unbatch(), "TFRecord"),
    ],
)
def test_datasets_inside_of_others_count_where_the_user_sees_it(files, read, name):
    paths, sound, damages = files
    iterator = iter(read(*paths))
    assert sorted(iterator) == sorted(sound)
    ((counting, count),) = skipped(iterator).items()
    assert counting.startswith(name)
    assert count == damages
    check_operator(lambda: read(*paths), positions=1)


@pytest.mark.parametrize(("size", "kind", "positions"), [(None, "GZIP", 4), (40, "", 40), (300, "", 4)])
def test_it_is_an_operator_like_any_other(save, size, kind, positions):
    content = with_damage(RECORDS[:30], 0, 1, 5, 29)
    contents = [content, content[:-3], flipped(content, 36 * 20), b""]
    paths = [save(COMPRESS[kind](content)) for content in contents]
    expected = [record for content in contents for record in model(content)[0]]
    check_operator(lambda: skipping(*paths, compression_type=kind, buffer_size=size), expected, positions=positions)


def test_a_pass_in_two_halves_counts_each_damaged_place_once(save, logged):
    path = save(with_damage(RECORDS[:30], 0, 1, 5, 17, 29))
    for position in range(26):
        first, second = iter(skipping(path)), iter(skipping(path))
        found = list(itertools.islice(first, position))
        second.load_state_dict(first.state_dict())
        found += list(second)
        assert len(found) == 25
        assert sum(skipped(first).values()) + sum(skipped(second).values()) == 5
        numbers = [message.split(", ")[1] for message in logged()[-5:]]
        assert numbers == [f"record {number}" for number in (0, 1, 5, 17, 29)]


def test_ignore_errors_counts_what_it_drops():
    check = fail_at(0, 3, 6, 9)
    found, counts = run(Dataset.range(10).map(check).ignore_errors())
    assert [int(x) for x in found] == [1, 2, 4, 5, 7, 8]
    assert counts == {"ignore_errors": 4}
    _, counts = run(Dataset.range(2).flat_map(lambda _: Dataset.range(10).map(check).ignore_errors()))
    assert list(counts.values()) == [8]


def test_who_closes_the_iterator_need_not_wait_for_the_end_of_the_damage(monkeypatch):
    """The search after damage in this file never ends; the iterator is closed during it."""
    content = with_damage(RECORDS, *range(100))
    begun = threading.Event()

    class Endless(stdlib_io.BytesIO):
        def read(self, size=-1, /):
            begun.set()
            return content

    monkeypatch.setattr("dataset.io.files.compression.open_input", lambda path: Endless())
    iterator = iter(skipping("any", buffer_size=len(content)).prefetch(1))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(next, iterator)
        assert begun.wait(60)
        iterator.close()
        with pytest.raises(ClosedError):
            waiting.result(60)
