"""Tests of shards: distribution of the records, names, and that either all or no shards appear."""

from __future__ import annotations

import gzip
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset.io.tfrecord.frames import framed_all
from dataset.io.tfrecord.sharded_writer import ShardedTFRecordWriter
from dataset.io.tfrecord.writer import TFRecordOptions, TFRecordWriter
from support.tfrecord_files import assorted, frames

PATTERN = "train-{shard:05d}-of-{num_shards:05d}.tfrecord"


def listed(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("num_shards", [1, 2, 3, 7])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 20])
@pytest.mark.parametrize("run", [1, 2, 5, 100])
def test_record_i_goes_to_shard_i_modulo_their_number(tmp_path, num_shards, count, run):
    records = assorted(count)
    with ShardedTFRecordWriter(tmp_path / PATTERN, num_shards) as writer:
        for start in range(0, count, run):
            writer.write_all(records[start : start + run])
    assert writer.paths == [str(tmp_path / f"train-{i:05d}-of-{num_shards:05d}.tfrecord") for i in range(num_shards)]
    for shard, path in enumerate(writer.paths):
        assert Path(path).read_bytes() == frames(records[shard::num_shards])
    assert len(listed(tmp_path)) == num_shards


def test_records_one_by_one_and_of_other_kinds_of_bytes(tmp_path):
    with ShardedTFRecordWriter(tmp_path / "{shard}", 2) as writer:
        for record in (b"a", bytearray(b"b"), memoryview(b"c")):
            writer.write(record)
    assert [Path(path).read_bytes() for path in writer.paths] == [frames([b"a", b"c"]), frames([b"b"])]


@settings(deadline=None)
@given(st.lists(st.binary(max_size=300)))
def test_many_frames_at_once_are_those_of_each(records):
    assert framed_all(records) == frames(records)


def test_compression(tmp_path):
    with ShardedTFRecordWriter(tmp_path / "{shard}", 2, TFRecordOptions("GZIP", 9)) as writer:
        writer.write_all([b"a" * 1000, b"b" * 1000])
    assert [gzip.decompress(Path(path).read_bytes()) for path in writer.paths] == [
        frames([b"a" * 1000]),
        frames([b"b" * 1000]),
    ]


def test_a_name_without_fields_is_right_for_one_shard(tmp_path):
    with ShardedTFRecordWriter(tmp_path / "a{{b}}") as writer:
        writer.write(b"x")
    assert listed(tmp_path) == ["a{b}"]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("train", r"needs a field \{shard\} to name 2 shards"),
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
    ],
)
def test_patterns_that_are_wrong(tmp_path, pattern, words):
    num_shards = 20 if "0e" in pattern else 2
    with pytest.raises(ValueError, match=words):
        ShardedTFRecordWriter(f"{tmp_path}/{pattern}" if pattern else "", num_shards)
    assert listed(tmp_path) == []


def test_arguments_that_are_wrong(tmp_path):
    with pytest.raises(ValueError, match="num_shards must be at least 1, got 0"):
        ShardedTFRecordWriter(tmp_path / "{shard}", 0)
    with pytest.raises(TypeError):
        ShardedTFRecordWriter(tmp_path / "{shard}", 2.0)
    with pytest.raises(TypeError, match="ShardedTFRecordWriter: options must be"):
        ShardedTFRecordWriter(tmp_path / "{shard}", 2, 9)
    with pytest.raises(ValueError, match="compression_type"):
        ShardedTFRecordWriter(tmp_path / "{shard}", 2, "gz")
    with pytest.raises(FileNotFoundError, match="does not exist; create it first"):
        ShardedTFRecordWriter(tmp_path / "missing" / "{shard}", 2)


def test_until_the_end_there_is_nothing_under_the_names_but_what_was_there(tmp_path):
    (tmp_path / "0").write_bytes(b"old")
    with ShardedTFRecordWriter(tmp_path / "{shard}", 2) as writer:
        writer.write_all([b"x" * 1_000_000] * 4)
        assert (tmp_path / "0").read_bytes() == b"old"
        assert not (tmp_path / "1").exists()
    assert (tmp_path / "0").stat().st_size == (tmp_path / "1").stat().st_size > 2_000_000


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt])
def test_an_exception_leaves_nothing_but_what_was_there(tmp_path, kind):
    (tmp_path / "0").write_bytes(b"old")
    with pytest.raises(kind), ShardedTFRecordWriter(tmp_path / "{shard}", 3) as writer:
        writer.write_all([b"a"] * 10)
        raise kind
    assert listed(tmp_path) == ["0"]
    assert (tmp_path / "0").read_bytes() == b"old"


def test_a_record_that_is_not_bytes_discards_them_all_because_some_may_be_written(tmp_path):
    writer = ShardedTFRecordWriter(tmp_path / "{shard}", 3)
    with pytest.raises(TypeError, match="a record must be bytes, got str: 'b'"):
        writer.write_all([b"a", "b", b"c"])
    writer.close()
    assert listed(tmp_path) == []
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
    assert [(tmp_path / name).read_bytes() for name in listed(tmp_path)] == [frames([b"a"]), b"", b""]


def test_a_writer_that_could_not_open_all_its_files_leaves_nothing(tmp_path):
    (tmp_path / "1").mkdir()
    with pytest.raises(IsADirectoryError):
        ShardedTFRecordWriter(tmp_path / "{shard}", 2)
    assert listed(tmp_path) == ["1"]


def test_a_process_that_is_killed_leaves_nothing_under_the_names(tmp_path):
    code = (
        "import os, sys; from dataset import io\n"
        "w = io.ShardedTFRecordWriter(sys.argv[1], 3); w.write_all([b'x' * 300_000] * 9); os._exit(9)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "train-{shard}")], check=False)
    assert done.returncode == 9
    assert list(tmp_path.glob("train-*")) == []


def test_a_disk_that_fills_at_the_end_leaves_no_shard(tmp_path, monkeypatch):
    """The last bytes of all shards are written before the first one is renamed."""
    writer = ShardedTFRecordWriter(tmp_path / "{shard}", 3)
    writer.write_all([b"a"] * 10)

    def full():
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writer._files[2], "finish", full)
    with pytest.raises(OSError, match="No space left") as caught:
        writer.close()
    assert not hasattr(caught.value, "__notes__")
    assert listed(tmp_path) == []
    writer.close()


def test_a_name_that_is_refused_at_the_very_end_says_which_shards_are_there(tmp_path, monkeypatch):
    for shard in range(3):
        (tmp_path / f"{shard}").write_bytes(b"old")
    writer = ShardedTFRecordWriter(tmp_path / "{shard}", 4)
    writer.write_all([b"a"] * 10)
    replace = os.replace

    def refuse(source, target):
        if Path(target).name == "2":
            raise OSError(5, "Input/output error")
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", refuse)
        with pytest.raises(OSError, match="Input/output error") as caught:
            writer.close()
    (note,) = caught.value.__notes__
    assert f"1 of 4 files are complete under their names, up to {tmp_path / '1'}; the others were removed" in note
    assert f"{tmp_path / '0'} is missing" in note  # so that a mix of old and new shards does not look complete
    assert listed(tmp_path) == ["1", "2"]
    assert (tmp_path / "2").read_bytes() == b"old"


def test_more_shards_than_the_system_allows_open_files_is_an_error_that_says_so(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 100
    resource.setrlimit(resource.RLIMIT_NOFILE, (opened + 20, hard))
    try:
        with pytest.raises(OSError, match=r"cannot write 1000000000 shards at once.*use fewer shards, or raise"):
            ShardedTFRecordWriter(tmp_path / "{shard}", 1_000_000_000)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert listed(tmp_path) == []


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


def test_of_many_records_of_which_one_is_wrong_none_is_written(tmp_path):
    with TFRecordWriter(tmp_path / "a") as writer:
        with pytest.raises(TypeError, match="write_all"):
            writer.write_all([b"one", 2])
        writer.write_all([b"three"])
    assert (tmp_path / "a").read_bytes() == frames([b"three"])
