"""Tests of local files that grow, are truncated or are deleted while they are read."""

from __future__ import annotations

import gzip
import os

import pytest

from dataset import DataLossError, TFRecordDataset
from support.tfrecord_files import frames

RECORDS = [b"%04d" % i * 5 for i in range(50)]


def read_until_it_fails(iterator, found):
    with pytest.raises(DataLossError, match="truncated") as caught:
        for record in iterator:
            found.append(record)  # the elements before the error are kept
    return caught.value


@pytest.mark.parametrize("left", [0, 36, 360, 361])
def test_a_file_that_is_cut_behind_the_reader_is_data_loss(left, save):
    """Also if a record ends exactly there: the following records are lost."""
    path = save(frames(RECORDS))
    iterator = iter(TFRecordDataset([str(path), str(save(frames([b"next"])))], buffer_size=100))
    found = [next(iterator) for _ in range(20)]
    os.truncate(path, left)
    assert read_until_it_fails(iterator, found).record == len(found)
    assert found == RECORDS[: len(found)]
    assert list(iterator) == [b"next"]


def test_a_compressed_file_that_is_cut_while_it_is_read_is_data_loss(save, monkeypatch):
    monkeypatch.setattr("dataset.io.files.compression.INFLATE_BYTES", 100)
    members = [gzip.compress(frames([bytes(70_000)])), gzip.compress(frames(RECORDS)), gzip.compress(frames([b"last"]))]
    path = save(b"".join(members))
    iterator = iter(TFRecordDataset(path, "GZIP"))
    next(iterator)
    os.truncate(path, 0)
    read_until_it_fails(iterator, [])
