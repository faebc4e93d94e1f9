"""Tests of Dataset.write_tfrecord: the written files, atomicity, and that it runs like an iteration."""

from __future__ import annotations

import dataclasses
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import dataset
from dataset import AUTOTUNE, Dataset, Options, SpecError, TFRecordDataset, io

PATTERN = "train-{shard:05d}-of-{num_shards:05d}.tfrecord"
RECORDS = [b"%d" % i for i in range(1000)]


def listed(folder):
    return sorted(path.name for path in folder.iterdir())


def test_bytes_are_records_in_turn_and_the_paths_are_returned(tmp_path):
    paths = Dataset.from_tensor_slices(RECORDS).write_tfrecord(tmp_path / PATTERN, 16)
    assert paths == [str(tmp_path / f"train-{i:05d}-of-00016.tfrecord") for i in range(16)]
    for shard, path in enumerate(paths):
        assert list(TFRecordDataset(path)) == RECORDS[shard::16]
    assert list(TFRecordDataset(paths, num_parallel_reads=16)) == RECORDS


@pytest.mark.parametrize("compression", [None, "", "GZIP", "ZLIB"])
def test_compression(tmp_path, compression):
    paths = Dataset.from_tensor_slices(RECORDS).write_tfrecord(tmp_path / "{shard}", 3, compression)
    assert sorted(TFRecordDataset(paths, compression)) == sorted(RECORDS)


def test_the_level_of_compression_counts(tmp_path):
    source = Dataset.from_tensors(bytes(100_000))
    sizes = []
    for level in (0, 9):
        (path,) = source.write_tfrecord(tmp_path / f"{level}", compression="GZIP", compression_level=level)
        sizes.append(Path(path).stat().st_size)
    assert sizes[0] > 100_000
    assert sizes[1] < 1000


def test_dicts_become_examples(tmp_path):
    images = np.arange(60, dtype=np.uint8).reshape(10, 6)
    source = Dataset.from_tensor_slices({"image": images, "label": np.arange(10), "name": list("abcdefghij")})
    (path,) = source.write_tfrecord(tmp_path / "a")
    expected = [io.encode_example({"image": images[i], "label": i, "name": "abcdefghij"[i]}) for i in range(10)]
    assert list(TFRecordDataset(path)) == expected


def test_encode_is_called_as_map_calls(tmp_path):
    pairs = Dataset.zip(Dataset.range(5), Dataset.range(5, 10))
    (path,) = pairs.write_tfrecord(tmp_path / "a", encode=lambda a, b: b"%d %d" % (a, b))
    assert list(TFRecordDataset(path)) == [b"0 5", b"1 6", b"2 7", b"3 8", b"4 9"]


def test_encode_may_take_columns(tmp_path):
    lengths = []

    @dataset.vectorized
    def encode(numbers):
        lengths.append(len(numbers))
        return np.array([b"%d" % number for number in numbers], object)

    (path,) = Dataset.range(1000).write_tfrecord(tmp_path / "a", encode=encode)
    assert list(TFRecordDataset(path)) == RECORDS
    assert max(lengths) > 10


def test_nothing_makes_empty_shards(tmp_path):
    paths = Dataset.from_tensor_slices(RECORDS).take(0).write_tfrecord(tmp_path / "{shard}", 2)
    assert [Path(path).stat().st_size for path in paths] == [0, 0]


def test_a_file_may_be_written_over_while_it_is_read(tmp_path):
    pattern = tmp_path / "{shard}"
    paths = Dataset.from_tensor_slices(RECORDS).write_tfrecord(pattern, 3)
    assert TFRecordDataset(paths).map(lambda x: x + b"!").write_tfrecord(pattern, 3) == paths
    assert sorted(TFRecordDataset(paths)) == sorted(record + b"!" for record in RECORDS)


# Invalid elements


@dataclasses.dataclass
class Pair:
    a: int
    b: int


@pytest.mark.parametrize(
    "source",
    [
        lambda: Dataset.range(3),
        lambda: Dataset.from_tensor_slices(RECORDS).batch(2),
        lambda: Dataset.from_tensor_slices(RECORDS).enumerate(),
        lambda: Dataset.from_tensors(Pair(1, 2)),
    ],
)
def test_elements_that_are_no_records_are_refused_at_the_call(tmp_path, source):
    with pytest.raises(TypeError, match=r"write_tfrecord\(\): elements are .*bytes.*dicts.*encode="):
        source().write_tfrecord(tmp_path / "a")
    assert listed(tmp_path) == []


def test_where_only_running_tells_they_are_refused_at_their_place(tmp_path):
    with pytest.raises(TypeError, match=r"element 0 is np.int64\(0\) of type int64; elements must be bytes"):
        Dataset.range(3).map(lambda x: x).write_tfrecord(tmp_path / "a")
    with pytest.raises(TypeError, match=r"element 5 is .*; encode must return the bytes of one record"):
        Dataset.range(9).write_tfrecord(tmp_path / "a", encode=lambda x: b"a" if x < 5 else np.array([b"a", b"b"]))
    assert listed(tmp_path) == []


def test_a_value_that_no_example_holds_names_its_element_and_feature(tmp_path):
    nested = Dataset.from_tensor_slices({"a": {"b": [1, 2]}})
    with pytest.raises(TypeError, match="'a'") as caught:
        nested.write_tfrecord(tmp_path / "x")
    assert "in write_tfrecord(), element 0, as a tf.train.Example" in caught.value.__notes__
    assert listed(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"num_shards": 0}, ValueError, "num_shards must be at least 1, got 0"),
        ({"num_shards": 2.0}, TypeError, "num_shards must be an int"),
        ({"num_shards": 2}, ValueError, r"write_tfrecord\(\): .*needs a field \{shard\}"),
        ({"path_pattern": "{x}"}, ValueError, r"has the unknown field \{x\}; the fields are"),
        ({"path_pattern": 3}, TypeError, "a path must be"),
        ({"path_pattern": "missing/a"}, FileNotFoundError, "create it first"),
        ({"compression": "gz"}, ValueError, "write_tfrecord.*GZIP"),
        ({"compression_level": 10}, ValueError, "compression_level"),
        ({"encode": 3}, TypeError, "encode must be a function"),
        ({"progress": "yes"}, TypeError, "progress must be True or False"),
    ],
)
def test_arguments_that_are_wrong(tmp_path, monkeypatch, arguments, kind, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind, match=words):
        Dataset.from_tensor_slices(RECORDS).write_tfrecord(**{"path_pattern": "a", **arguments})
    assert listed(tmp_path) == []


def test_an_infinite_dataset_is_refused_at_the_call(tmp_path):
    with pytest.raises(ValueError, match="the dataset is infinite; use take"):
        Dataset.from_tensor_slices(RECORDS).repeat().write_tfrecord(tmp_path / "a")


# All or nothing


def test_an_element_that_fails_leaves_what_was_there(tmp_path):
    Dataset.from_tensor_slices(RECORDS).write_tfrecord(tmp_path / "{shard}", 2)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def fail(x):
        if x == 700:
            raise LookupError("lost")
        return b"%d" % x

    with pytest.raises(LookupError, match="lost") as caught:
        Dataset.range(1000).write_tfrecord(tmp_path / "{shard}", 2, encode=fail)
    assert any("element 700" in note for note in caught.value.__notes__)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("what", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupt_or_a_crash_leaves_no_shard(tmp_path, what):
    """The program reports when it has started to write, and then computes elements forever."""
    code = """
import sys, itertools
from dataset import Dataset
def elements():
    for i in itertools.count():
        if i == 3000:
            print("begun", flush=True)
        yield b"x" * 1000
Dataset.from_generator(elements).prefetch(2).write_tfrecord(sys.argv[1], 3)
"""
    program = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "train-{shard}")], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with program:
        assert program.stdout.readline() == b"begun\n"
        program.send_signal(what)
        assert program.wait(60) != 0
    assert list(tmp_path.glob("train-*")) == []
    if what == signal.SIGINT:
        assert listed(tmp_path) == []


# It runs like an iteration


def test_threads_and_files_are_let_go(tmp_path):
    before = threading.active_count()
    source = Dataset.range(1000).map(lambda x: b"%d" % x, num_parallel_calls=2).prefetch(AUTOTUNE)
    (path,) = source.write_tfrecord(tmp_path / "a")
    assert threading.active_count() == before
    with pytest.raises(ZeroDivisionError):
        source.map(lambda x: 1 // 0).write_tfrecord(tmp_path / "b")
    assert threading.active_count() == before
    assert list(TFRecordDataset(path)) == RECORDS


def test_the_pipeline_is_optimized_and_its_options_hold(tmp_path, monkeypatch):
    seen = []
    original = dataset.deferred.ChunkScan

    def recorded(plan, options, observer):
        seen.append((plan, options))
        return original(plan, options, observer)

    monkeypatch.setattr(dataset.deferred, "ChunkScan", recorded)
    options = Options()
    options.autotune.cpu_budget = 3
    Dataset.from_tensor_slices(RECORDS).take(-1).with_options(options).write_tfrecord(tmp_path / "a")
    ((plan, used),) = seen
    assert "take" not in repr(plan)
    assert used.autotune.cpu_budget == 3


def test_the_autotuner_looks_on(tmp_path, monkeypatch):
    looks = []
    look = dataset.deferred.Autotuner.look
    monkeypatch.setattr(dataset.deferred.Autotuner, "look", lambda self, now: looks.append(now) or look(self, now))
    slow = Dataset.range(3000).map(lambda x: sum(range(300)) and b"x", num_parallel_calls=AUTOTUNE)
    slow.write_tfrecord(tmp_path / "a")
    assert looks


def test_elements_that_are_large_are_not_gathered(tmp_path):
    def elements():
        for _ in range(20):
            yield bytes(2_000_000)

    written = []
    original = io.ShardedTFRecordWriter.write_all

    def write_all(writer, records):
        written.append(len(records))
        original(writer, records)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(io.ShardedTFRecordWriter, "write_all", write_all)
        Dataset.from_generator(elements).write_tfrecord(tmp_path / "a")
    assert written == [1] * 20


# Progress


def lines(text):
    return [line.rstrip() for line in text.replace("\n", "\r").split("\r") if line.strip()]


def test_progress_is_silent_where_stderr_is_no_terminal(tmp_path, capsys):
    Dataset.from_tensor_slices(RECORDS).write_tfrecord(tmp_path / "a")
    Dataset.from_tensor_slices(RECORDS).write_tfrecord(tmp_path / "a", progress=False)
    assert capsys.readouterr() == ("", "")


def test_progress_says_how_many_of_how_many_how_fast_and_how_much(tmp_path, capsys):
    Dataset.from_tensor_slices(RECORDS).write_tfrecord(tmp_path / "a", progress=True)
    output = capsys.readouterr()
    assert output.out == ""
    last = lines(output.err)[-1]
    assert last.startswith("write_tfrecord: 100%, 1,000 of 1,000 records, ")
    assert "/s, 2.89 kB" in last
    assert output.err.endswith("\n")


def test_progress_where_nobody_knows_how_many(tmp_path, capsys):
    source = Dataset.from_generator(lambda: iter(RECORDS))
    source.write_tfrecord(tmp_path / "a", progress=True)
    assert lines(capsys.readouterr().err)[-1].startswith("write_tfrecord: 1,000 records, ")


def test_progress_ends_its_line_before_an_error(tmp_path, capsys):
    with pytest.raises(ZeroDivisionError):
        Dataset.range(5).write_tfrecord(tmp_path / "a", encode=lambda x: 1 // 0, progress=True)
    assert capsys.readouterr().err.endswith("\n")


def test_elements_of_differing_structure_are_an_error(tmp_path):
    with pytest.raises((SpecError, TypeError)):
        Dataset.range(4).map(lambda x: b"a" if x < 2 else {"a": 1}).write_tfrecord(tmp_path / "a")
    assert listed(tmp_path) == []
