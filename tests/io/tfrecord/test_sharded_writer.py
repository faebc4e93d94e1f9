"""Tests of shards: distribution of the records, names, and that either all or no shards appear."""

from __future__ import annotations

import gzip
import resource
from pathlib import Path

import pytest

from dataset.io.tfrecord.sharded_writer import ShardedTFRecordWriter
from dataset.io.tfrecord.writer import TFRecordOptions, TFRecordWriter
from support.folders import names_in
from support.tfrecord_files import assorted, frames

PATTERN = "train-{shard:05d}-of-{num_shards:05d}.tfrecord"


@pytest.mark.parametrize("kind", ["", "GZIP"])
@pytest.mark.parametrize("num_shards", [1, 2, 7])
@pytest.mark.parametrize("run", [1, 2, 5, 100])
def test_record_i_goes_to_shard_i_modulo_their_number(tmp_path, num_shards, run, kind):
    for count in (0, 1, 2, 3, 20):
        records = assorted(count)
        with ShardedTFRecordWriter(tmp_path / PATTERN, num_shards, TFRecordOptions(kind)) as writer:
            writer.write(memoryview(b"first"))
            for start in range(0, count, run):
                writer.write_all(records[start : start + run])
        assert [Path(path).name for path in writer.paths] == names_in(tmp_path)
        for shard, path in enumerate(writer.paths):
            assert path == str(tmp_path / f"train-{shard:05d}-of-{num_shards:05d}.tfrecord")
            content = Path(path).read_bytes()
            expected = frames([b"first", *records][shard::num_shards])
            assert (gzip.decompress(content) if kind else content) == expected


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("train", r"needs a field \{shard\} to name 20 shards"),
        ("train-{num_shards}", r"needs a field \{shard\}"),
        ("train-{}", r"has the unknown field \{\}; the fields are \{shard\} and \{num_shards\}"),
        ("train-{0}", r"has the unknown field \{0\}; the fields are"),
        ("train-{index:05d}", r"has the unknown field \{index\}; the fields are"),
        ("train-{shard.real}", r"has the unknown field \{shard.real\}; the fields are"),
        ("train-{shard[0]}", r"has the unknown field \{shard\[0\]\}; the fields are"),
        ("train-{shard", "is not a valid pattern: .*double a literal brace"),
        ("train-}{shard}", "is not a valid pattern"),
        ("train-{shard:05s}", "can't be formatted: .*write {shard:05d} for five digits"),
        ("train-{shard:{digits}d}", "can't be formatted"),
        ("train-{shard:.0e}", "gives two shards the same name"),
        ("", "must not be empty"),
        ("missing/{shard}", "does not exist; create it first"),
    ],
)
def test_patterns_that_are_wrong(tmp_path, pattern, words, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ValueError, FileNotFoundError), match=words):
        ShardedTFRecordWriter(pattern, 20)
    assert names_in(tmp_path) == []


def test_arguments_that_are_wrong(tmp_path):
    for arguments, kind, words in (
        ((0,), ValueError, "num_shards must be at least 1, got 0"),
        ((2.0,), TypeError, "float"),
        ((2, 9), TypeError, "ShardedTFRecordWriter: options must be"),
        ((2, "gz"), ValueError, "compression_type"),
    ):
        with pytest.raises(kind, match=words):
            ShardedTFRecordWriter(tmp_path / "{shard}", *arguments)
    with ShardedTFRecordWriter(tmp_path / "a{{b}}") as writer:  # a name without fields is right for one shard
        writer.write(b"x")
    assert names_in(tmp_path) == ["a{b}"]


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt])
def test_an_exception_leaves_nothing_but_what_was_there(tmp_path, kind):
    (tmp_path / "0").write_bytes(b"old")
    with pytest.raises(kind), ShardedTFRecordWriter(tmp_path / "{shard}", 3) as writer:
        writer.write_all([b"x" * 1_000_000] * 4)
        assert (tmp_path / "0").read_bytes() == b"old"
        assert not (tmp_path / "1").exists()
        raise kind
    assert names_in(tmp_path) == ["0"]
    assert (tmp_path / "0").read_bytes() == b"old"


def test_a_record_that_is_not_bytes_discards_them_all_because_some_may_be_written(tmp_path):
    writer = ShardedTFRecordWriter(tmp_path / "{shard}", 3)
    with pytest.raises(TypeError, match="a record must be bytes, got str: 'b'"):
        writer.write_all([b"a", "b", b"c"])
    writer.close()
    assert names_in(tmp_path) == []
    with pytest.raises(ValueError, match="is closed"):
        writer.write(b"a")


def test_a_writer_that_is_dropped_writes_all_shards_and_warns_once(tmp_path):
    writer = ShardedTFRecordWriter(tmp_path / "{shard}", 3)
    writer.write(b"a")
    with pytest.warns(
        ResourceWarning, match=r"0 and 2 more, opened at test_sharded_writer.*was never closed"
    ) as caught:
        del writer
    assert len(caught) == 1
    assert [(tmp_path / name).read_bytes() for name in names_in(tmp_path)] == [frames([b"a"]), b"", b""]


def test_a_writer_that_could_not_open_all_its_files_leaves_nothing(tmp_path):
    (tmp_path / "1").mkdir()
    with pytest.raises(IsADirectoryError):
        ShardedTFRecordWriter(tmp_path / "{shard}", 2)
    assert names_in(tmp_path) == ["1"]


def test_more_shards_than_the_system_allows_open_files_is_an_error_that_says_so(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/dev/fd").iterdir())) + 20, hard))
    try:
        with pytest.raises(OSError, match=r"cannot write 1000000000 shards at once.*use fewer shards, or raise"):
            ShardedTFRecordWriter(tmp_path / "{shard}", 1_000_000_000)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert names_in(tmp_path) == []


def test_a_finished_writer_takes_no_more_and_has_no_name_before_it_is_closed(tmp_path):
    writer = TFRecordWriter(tmp_path / "a", "GZIP")
    writer.write_all([b"one", bytearray(b"two")])
    writer.finish()
    writer.finish()
    assert not (tmp_path / "a").exists()
    with pytest.raises(ValueError, match="is finished"):
        writer.write(b"three")
    writer.close()
    assert gzip.decompress((tmp_path / "a").read_bytes()) == frames([b"one", b"two"])
    writer.finish()
    with pytest.raises(ValueError, match="is closed"):
        writer.write(b"three")
