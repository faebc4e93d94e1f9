"""Tests of TFRecordDataset(index=True): the records of several files as one sequence."""

from __future__ import annotations

import itertools
import os
import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import dataset.io.indexed.source as module
from dataset import DataLossError, Dataset, TFRecordDataset, io
from dataset.io.tfrecord.records_at import TFRecordsAt
from dataset.testing import assert_elements_equal, check_operator, no_leaks, outcomes
from support.folders import flip
from support.pipelines import unoptimized
from support.states import state_after

pytestmark = pytest.mark.usefixtures("native")

COUNTS = [3, 0, 1, 20]


RECORDS = [b"%d.%d" % (file, i) * (1 + i % 3) for file, count in enumerate(COUNTS) for i in range(count)]


def write(path, records):
    with io.TFRecordWriter(path) as writer:
        writer.write_all(records)
    return str(path)


@pytest.fixture
def paths(tmp_path):
    stops = list(itertools.accumulate(COUNTS))
    return [
        write(tmp_path / f"{file}.tfrecord", RECORDS[stop - count : stop])
        for file, (count, stop) in enumerate(zip(COUNTS, stops, strict=True))
    ]


@pytest.fixture
def damaged(paths):
    """The same files, but record 5 has a wrong checksum, and the index agrees in size and time."""
    path = Path(paths[3])
    io.TFRecordIndex.open(path)
    stamp = path.stat()
    flip(path, len(RECORDS[4]) + 16 + 12)
    os.utime(path, ns=(stamp.st_mtime_ns, stamp.st_mtime_ns))
    return paths


def places_read(monkeypatch):
    """Record which records of which file are read."""
    read = []
    one, many = TFRecordsAt.record, TFRecordsAt.records

    def record(self, number):
        read.append((Path(self.path).stem, number))
        return one(self, number)

    def records(self, first, stop):
        read.extend((Path(self.path).stem, number) for number in range(first, stop))
        return many(self, first, stop)

    monkeypatch.setattr(TFRecordsAt, "record", record)
    monkeypatch.setattr(TFRecordsAt, "records", records)
    return read


def test_any_record_can_be_had_at_once(paths):
    with no_leaks():
        dataset = TFRecordDataset(paths, index=True)
        assert [dataset[i] for i in range(-len(RECORDS), len(RECORDS))] == RECORDS * 2
        del dataset


@pytest.mark.parametrize(
    "chain",
    [
        lambda d: d,
        lambda d: d.skip(2).shard(3, 2).skip(1).take(4),
        lambda d: d.shard(2, 1).shuffle(None, seed=1).repeat(2).batch(5),
        lambda d: d.shuffle(None, seed=1).shard(2, 0).skip(3),
        lambda d: d.map(lambda x: x * 2).shuffle(None, seed=1).skip(3),
        lambda d: Dataset.zip(d, d.skip(3)).shuffle(None, seed=2),
        lambda d: d.concatenate(d.shuffle(None, seed=2)).skip(20),
    ],
)
def test_chains_keep_to_the_contract_and_give_what_plain_files_give(paths, chain):
    found = check_operator(lambda: chain(TFRecordDataset(paths, index=True)), positions=12)
    assert_elements_equal(found, outcomes(iter(chain(Dataset.from_tensor_slices(np.array(RECORDS, object))))))


@pytest.mark.parametrize(
    ("chain", "expected"),
    [
        (lambda d: d.skip(20), range(20, 24)),
        (lambda d: d.shard(6, 5), range(5, 24, 6)),
        (lambda d: d.skip(6).shard(9, 2).take(1), [8]),
        (lambda d: d.batch(3).skip(7), range(24)),  # skipped batches are computed, because they might fail
        (lambda d: d.shuffle(None, seed=3).take(2), None),
        (lambda d: d.shard(4, 1).shuffle(100, seed=3).take(1), None),
    ],
)
@pytest.mark.parametrize("optimized", [True, False])
def test_what_is_left_out_is_not_read(paths, monkeypatch, chain, expected, optimized):
    read = places_read(monkeypatch)
    dataset = chain(TFRecordDataset(paths, buffer_size=0, index=True))  # otherwise neighbors are prefetched
    found = list(dataset if optimized else unoptimized(dataset))
    if expected is None:
        assert len(set(read)) == len(read) == len(found)
    else:
        every = [(str(file), number) for file, count in enumerate(COUNTS) for number in range(count)]
        assert read == [every[i] for i in expected]


def test_the_state_of_a_full_shuffle_does_not_grow_with_the_data(tmp_path):
    path = write(tmp_path / "a", [b"%d" % i for i in range(5000)])
    dataset = TFRecordDataset(path, index=True).shuffle(None, seed=1).batch(8).prefetch(2)
    assert len(pickle.dumps(state_after(dataset, 1))) < 3000


def test_a_damaged_record_fails_in_its_place_and_costs_no_other(damaged):
    dataset = TFRecordDataset(damaged, index=True)
    for way in (dataset, unoptimized(dataset), dataset.prefetch(2)):
        found = outcomes(iter(way))
        assert isinstance(found[5], DataLossError)
        assert [*found[:5], *found[6:]] == [*RECORDS[:5], *RECORDS[6:]]
    with pytest.raises(DataLossError, match=r"3\.tfrecord, record 1, at byte 19: the checksum") as caught:
        dataset[5]
    assert caught.value.__notes__ == [f"in {dataset.plan}"]
    assert dataset[6] == RECORDS[6]


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize(
    ("chain", "shows"),
    [
        (lambda d: d.filter(lambda _: True), True),  # a skipped record has a number, so there is no random access
        (lambda d: d, True),
        (lambda d: d.shard(2, 0), False),
        (lambda d: d.shuffle(4, seed=1).filter(lambda _: True), True),
        (lambda d: d.shuffle(None, seed=1).batch(4).filter(lambda _: True), True),
        (lambda d: d.map(lambda x: x + x).ignore_errors(), False),
    ],
)
def test_around_a_damaged_record_the_contract_holds(damaged, chain, shows, on_error):
    found = check_operator(lambda: chain(TFRecordDataset(damaged, index=True, on_error=on_error)), positions=12)
    assert any(isinstance(item, DataLossError) for item in found) == (shows and on_error == "raise")
    assert len(found) > 1


def test_file_names_come_from_all_that_a_dataset_of_files_takes(paths, tmp_path):
    for names in (
        Dataset.list_files(f"{tmp_path}/*.tfrecord", shuffle=False),
        Dataset.from_tensors(paths[0]).concatenate(Dataset.from_tensor_slices(paths[1:])),
    ):
        assert list(TFRecordDataset(names, index=True)) == RECORDS
    shuffled = TFRecordDataset(Dataset.list_files(f"{tmp_path}/*.tfrecord"), index=True)
    assert sorted(shuffled) == sorted(RECORDS)
    assert list(TFRecordDataset([], index=True)) == list(TFRecordDataset(paths[1], index=True)) == []
    with pytest.raises(ValueError, match="the dataset of file names is infinite"):
        TFRecordDataset(Dataset.from_tensors(paths[0]).repeat(), index=True)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"compression_type": "GZIP"}, ValueError, "a compressed file can't be indexed"),
        ({"compression_type": "nonsense"}, ValueError, "compression_type must be"),
        ({"num_parallel_reads": 2}, ValueError, "can't be interleaved, got num_parallel_reads=2; omit it"),
        ({"buffer_size": -1}, ValueError, "buffer_size must be at least 0"),
        ({"index": 1}, TypeError, "index must be True or False"),
    ],
)
def test_arguments_that_do_not_go_together_are_refused(paths, arguments, error, words):
    with pytest.raises(error, match=words):
        TFRecordDataset(paths, **{"index": True, **arguments})


def test_many_threads_may_index_at_once(paths, monkeypatch):
    monkeypatch.setattr(module, "OPEN_FILES_MAX", 1)  # so that readers close each other's files
    dataset = TFRecordDataset(paths, index=True)
    places = [random.Random(0).randrange(len(RECORDS)) for _ in range(2000)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(dataset.__getitem__, places)) == [RECORDS[i] for i in places]


@pytest.mark.parametrize("optimized", [True, False])
@pytest.mark.parametrize("chain", [lambda d: d, lambda d: d.shuffle(None, seed=1), lambda d: d.shuffle(5, seed=1)])
def test_on_error_skip_passes_over_what_is_damaged_and_counts_it(damaged, caplog, chain, optimized):
    dataset = TFRecordDataset(damaged, index=True, on_error="skip")
    assert len(dataset) == len(RECORDS)  # the damaged record is counted
    iterator = iter(chain(dataset) if optimized else unoptimized(chain(dataset)))
    assert list(iterator) == [RECORDS[i] for i in chain(Dataset.range(len(RECORDS))) if i != 5]
    assert sum(operator.skipped_elements for operator in iterator.stats().operators) == 1
    assert "skipped a damaged record: " in caplog.text
    assert "3.tfrecord, record 1, at byte 19" in caplog.text


def test_on_error_skip_makes_do_with_what_is_before_a_broken_length(paths, caplog):
    content = Path(paths[3]).read_bytes()
    Path(paths[3]).write_bytes(content[:-5])
    with pytest.raises(DataLossError, match="is truncated"):
        TFRecordDataset(paths, index=True)
    dataset = TFRecordDataset(paths, index=True, on_error="skip")
    assert list(dataset) == RECORDS[:-1]
    assert len(dataset) == len(RECORDS) - 1
    assert "skipped the rest of a damaged file" in caplog.text
    assert not Path(f"{paths[3]}.index").exists()
    with pytest.raises(ValueError, match="not saved"):
        io.TFRecordIndex.build(paths[3], on_error="skip").save()
