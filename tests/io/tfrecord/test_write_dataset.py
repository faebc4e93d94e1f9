"""Tests of Dataset.write_tfrecord: the written files, atomicity, and that it runs like an iteration."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import numpy as np
import pytest

import dataset
from dataset import Dataset, SpecError, TFRecordDataset, io
from support.folders import names_in
from support.pipelines import Record

RECORDS = [b"%d" % i for i in range(1000)]


def test_the_level_of_compression_counts_and_a_file_may_be_empty(tmp_path):
    records = Dataset.from_tensor_slices(RECORDS)
    pattern = tmp_path / "{shard}"
    sizes = {}
    for level in (0, 9):
        paths = records.write_tfrecord(pattern, 16, "GZIP", compression_level=level)
        assert list(TFRecordDataset(paths[3], "GZIP")) == RECORDS[3::16]
        sizes[level] = min(Path(path).stat().st_size for path in paths)
    assert sizes[9] < 1000 < sizes[0]
    (empty,) = records.take(0).write_tfrecord(tmp_path / "empty")
    assert Path(empty).stat().st_size == 0


def test_encode_is_called_as_map_calls_and_may_take_columns(tmp_path):
    lengths = []

    @dataset.vectorized
    def encode(numbers, _):
        lengths.append(len(numbers))
        return np.array([b"%d" % number for number in numbers], object)

    pairs = Dataset.zip(Dataset.range(1000), Dataset.range(1000))
    for function in (encode, lambda a, b: b"%d" % (a + b - b)):
        (path,) = pairs.write_tfrecord(tmp_path / "a", encode=function)
        assert list(TFRecordDataset(path)) == RECORDS
    assert max(lengths) > 10


def test_a_file_may_be_written_over_while_it_is_read(tmp_path):
    pattern = tmp_path / "{shard}"
    paths = Dataset.from_tensor_slices(RECORDS).write_tfrecord(pattern, 3)
    assert TFRecordDataset(paths).map(lambda x: x + b"!").write_tfrecord(pattern, 3) == paths
    assert sorted(TFRecordDataset(paths)) == sorted(record + b"!" for record in RECORDS)


# Invalid elements


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (lambda: Dataset.range(3), "at the call"),
        (lambda: Dataset.from_tensor_slices(RECORDS).batch(2), "at the call"),
        (lambda: Dataset.from_tensor_slices(RECORDS).enumerate(), "at the call"),
        (lambda: Dataset.from_tensors(Record(1, 2)), "at the call"),
        (
            lambda: Dataset.range(3).map(lambda x: x),
            r"element 0 is np.int64\(0\) of type int64; elements must be bytes",
        ),
    ],
)
def test_elements_that_are_no_records_are_refused(tmp_path, source, words):
    at_the_call = r"write_tfrecord\(\): elements are .*bytes.*dicts.*encode="
    with pytest.raises(TypeError, match=at_the_call if words == "at the call" else words):
        source().write_tfrecord(tmp_path / "a")
    assert names_in(tmp_path) == []


def test_where_only_running_tells_they_are_refused_at_their_place(tmp_path):
    with pytest.raises(TypeError, match=r"element 5 is .*; encode must return the bytes of one record"):
        Dataset.range(9).write_tfrecord(tmp_path / "a", encode=lambda x: b"a" if x < 5 else np.array([b"a", b"b"]))
    with pytest.raises((SpecError, TypeError)):
        Dataset.range(4).map(lambda x: b"a" if x < 2 else {"a": 1}).write_tfrecord(tmp_path / "a")
    with pytest.raises(TypeError, match="'a'") as caught:
        Dataset.from_tensor_slices({"a": {"b": [1, 2]}}).write_tfrecord(tmp_path / "x")
    assert "in write_tfrecord(), element 0, as a tf.train.Example" in caught.value.__notes__
    assert names_in(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"num_shards": 2}, ValueError, r"write_tfrecord\(\): .*needs a field \{shard\}"),
        ({"compression": "gz"}, ValueError, "write_tfrecord.*GZIP"),
        ({"encode": 3}, TypeError, "encode must be a function"),
        ({"progress": "yes"}, TypeError, "progress must be True or False"),
    ],
)
def test_arguments_that_are_wrong(tmp_path, monkeypatch, arguments, kind, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind, match=words):
        Dataset.from_tensor_slices(RECORDS).write_tfrecord(**{"path_pattern": "a", **arguments})
    with pytest.raises(ValueError, match="the dataset is infinite; use take"):
        Dataset.from_tensor_slices(RECORDS).repeat().write_tfrecord("a")
    assert names_in(tmp_path) == []


def test_elements_that_are_large_are_not_gathered(tmp_path, monkeypatch):
    written, write_all = [], io.ShardedTFRecordWriter.write_all

    def noted(writer, records):
        written.append(len(records))
        write_all(writer, records)

    monkeypatch.setattr(io.ShardedTFRecordWriter, "write_all", noted)
    Dataset.from_generator(lambda: (bytes(2_000_000) for _ in range(20))).write_tfrecord(tmp_path / "a")
    assert written == [1] * 20


# Progress


def test_progress_is_silent_where_stderr_is_no_terminal(tmp_path, capsys):
    Dataset.from_tensor_slices(RECORDS).write_tfrecord(tmp_path / "a")
    Dataset.from_tensor_slices(RECORDS).write_tfrecord(tmp_path / "a", progress=False)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (lambda: Dataset.from_tensor_slices(RECORDS), r"write_tfrecord: 100%, 1,000 of 1,000 records, .*/s, 2\.89 kB"),
        (lambda: Dataset.from_generator(lambda: iter(RECORDS)), r"write_tfrecord: 1,000 records, .*/s, 2\.89 kB"),
        (lambda: Dataset.range(5).map(lambda x: 1 // 0), "write_tfrecord:   0%, 0 of 5 records, 0/s, 0 B"),
    ],
    ids=["known", "unknown", "failing"],
)
def test_progress_says_how_many_of_how_many_how_fast_and_how_much(source, words, tmp_path, capsys):
    with contextlib.suppress(ZeroDivisionError):
        source().write_tfrecord(tmp_path / "a", progress=True)
    output = capsys.readouterr()
    assert output.out == ""
    assert re.match(words, output.err.split("\r")[-1])
    assert output.err.endswith("\n")
