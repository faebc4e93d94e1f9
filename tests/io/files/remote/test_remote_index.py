"""Tests of TFRecord files with an index in remote storage."""

from __future__ import annotations

import pytest

from dataset import DataLossError, TFRecordDataset, io
from support.tfrecord_files import frames

RECORDS = [b"%d" % i * (i % 5) for i in range(200)]


def test_records_of_a_remote_file_can_be_had_by_number(memory):
    path = "memory://indexed/a.tfrecord"
    memory.pipe_file("/indexed/a.tfrecord", frames(RECORDS))
    dataset = TFRecordDataset(path, index=True)
    assert memory.exists("/indexed/a.tfrecord.index")
    assert [dataset[i] for i in (3, 199, 0, -2)] == [RECORDS[i] for i in (3, 199, 0, -2)]
    dataset = TFRecordDataset(path, index=True)  # without a warning
    assert list(dataset) == RECORDS
    memory.pipe_file("/indexed/a.tfrecord", frames(RECORDS[::-1]))
    with pytest.raises(DataLossError, match="modified after its index was built"):
        dataset[0]
    with pytest.warns(UserWarning, match="rebuilt"):
        assert list(TFRecordDataset(path, index=True)) == RECORDS[::-1]
    with pytest.raises(FileNotFoundError, match="memory://indexed/b"):
        io.TFRecordIndex.open("memory://indexed/b")
