"""Tests of TFRecord files with an index in remote storage."""

from __future__ import annotations

import fsspec
import pytest

from dataset import DataLossError, TFRecordDataset, io

RECORDS = [b"%d" % i * (i % 5) for i in range(200)]


@pytest.fixture
def path():
    system = fsspec.filesystem("memory")
    name = "memory://indexed/a.tfrecord"
    write(name, RECORDS)
    yield name
    system.rm("/indexed", recursive=True)


def write(path, records):
    with io.TFRecordWriter(path) as writer:
        for record in records:
            writer.write(record)


def test_records_of_a_remote_file_can_be_had_by_number(path):
    dataset = TFRecordDataset(path, index=True)
    assert len(dataset) == 200
    assert [dataset[i] for i in (3, 199, 0, -2)] == [RECORDS[i] for i in (3, 199, 0, -2)]
    assert list(dataset) == RECORDS
    assert sorted(dataset.shuffle(None, seed=1)) == sorted(RECORDS)
    assert list(dataset.skip(7).shard(3, 1)) == RECORDS[7:][1::3]


def test_the_index_is_saved_beside_the_file_and_found_again(path):
    io.TFRecordIndex.open(path)
    assert fsspec.filesystem("memory").exists("/indexed/a.tfrecord.index")
    with io.TFRecordIndex.open(path) as index:
        assert index[5] == RECORDS[5]


def test_the_index_of_a_changed_file_is_made_anew(path):
    dataset = TFRecordDataset(path, index=True)
    write(path, RECORDS[::-1])
    with pytest.raises(DataLossError, match="modified after its index was built"):
        dataset[0]
    with pytest.warns(UserWarning, match="rebuilt"):
        assert list(TFRecordDataset(path, index=True)) == RECORDS[::-1]


def test_a_missing_file_is_missing(path):
    with pytest.raises(FileNotFoundError, match="memory://indexed/b"):
        io.TFRecordIndex.open("memory://indexed/b")
