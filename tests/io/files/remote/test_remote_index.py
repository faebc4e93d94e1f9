"""Tests of files with an index in remote storage."""

from __future__ import annotations

import pytest

from dataset import DataLossError, TextLineDataset, TFRecordDataset, io
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


def test_lines_of_remote_files_have_random_access(memory):
    memory.pipe_file("/lines/a.txt", b"".join(b"line %d\n" % i for i in range(3000)))
    dataset = TextLineDataset("memory://lines/a.txt", index=True)
    assert memory.exists("/lines/a.txt.index")
    assert [dataset[i] for i in (0, 2999, 1500)] == [b"line 0", b"line 2999", b"line 1500"]
    assert sorted(dataset.shuffle(None, seed=1)) == sorted(TextLineDataset("memory://lines/a.txt"))
    dataset = TextLineDataset("memory://lines/a.txt", index=True)  # has not opened the file yet
    memory.pipe_file("/lines/a.txt", b"other\n")
    with pytest.raises(DataLossError, match="modified after its index was built"):
        dataset[0]
    with pytest.warns(UserWarning, match="rebuilt"):
        assert list(TextLineDataset("memory://lines/a.txt", index=True)) == [b"other"]


def test_lines_of_a_web_server_have_random_access_although_no_index_can_be_saved(web):
    content = b"".join(b"line %d\n" % i for i in range(3000))
    dataset = TextLineDataset(web.put("a.txt", content), index=True)
    assert [dataset[i] for i in (0, 2999, 1500)] == [b"line 0", b"line 2999", b"line 1500"]
    assert list(dataset.skip(2990)) == content.split(b"\n")[2990:-1]
