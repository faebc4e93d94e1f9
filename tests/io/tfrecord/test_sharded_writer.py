"""Tests of shards: distribution of the records, names, and that either all or no shards appear."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from dataset.io.tfrecord.sharded_writer import ShardedTFRecordWriter
from support.folders import names_in
from support.tfrecord_files import assorted, frames

PATTERN = "train-{shard:05d}-of-{num_shards:05d}.tfrecord"


@pytest.mark.parametrize("num_shards", [1, 2, 7])
@pytest.mark.parametrize("run", [1, 5, 100])
def test_record_i_goes_to_shard_i_modulo_their_number(tmp_path, num_shards, run):
    records = assorted(20)
    with ShardedTFRecordWriter(tmp_path / PATTERN, num_shards) as writer:
        writer.write(memoryview(b"first"))
        for start in range(0, 20, run):
            writer.write_all(records[start : start + run])
    expected = [frames([b"first", *records][shard::num_shards]) for shard in range(num_shards)]
    assert [Path(path).read_bytes() for path in writer.paths] == expected
    assert names_in(tmp_path) == [f"train-{shard:05d}-of-{num_shards:05d}.tfrecord" for shard in range(num_shards)]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("train", r"needs a field \{shard\} to name 20 shards"),
        ("train-{num_shards}", r"needs a field \{shard\}"),
        ("train-{}", r"has the unknown field \{\}; the fields are \{shard\} and \{num_shards\}"),
        ("train-{index:05d}", r"has the unknown field \{index\}; the fields are"),
        ("train-{shard[0]}", r"has the unknown field \{shard\[0\]\}; the fields are"),
        ("train-{shard", "is not a valid pattern: .*double a literal brace"),
        ("train-{shard:05s}", "can't be formatted: .*write {shard:05d} for five digits"),
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


def test_more_shards_than_the_system_allows_open_files_is_an_error_that_says_so(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/dev/fd").iterdir())) + 20, hard))
    try:
        with pytest.raises(OSError, match=r"cannot write 1000000000 shards at once.*use fewer shards, or raise"):
            ShardedTFRecordWriter(tmp_path / "{shard}", 1_000_000_000)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert names_in(tmp_path) == []
