"""Tests of ``split`` and ``merge``: each record once, in order, and either all files or none."""

import os

import fsspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataset import TFRecordDataset, io
from dataset.commands import outputs
from dataset.commands.further import split
from support.folders import flip, names_in
from support.seeds import rng


def read(path, compression=None):
    return list(TFRecordDataset(str(path), compression))


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def test_the_shards_are_reported_and_merged_they_are_the_same_file(run, write, out):
    path = write([rng(i).randbytes(i) for i in range(10)])
    status, text, err = run("split", path, "--num-shards", 3, "--output", out / "a-{shard:05d}-of-{num_shards:05d}")
    assert (status, err) == (0, "")
    assert names_in(out) == ["a-00000-of-00003", "a-00001-of-00003", "a-00002-of-00003"]
    assert text.startswith("10 records in 3 files of 3 to 4: ")
    assert run("merge", *sorted(out.iterdir()), "--output", out / "all")[0] == 0
    assert (out / "all").read_bytes() == path.read_bytes()


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    files=st.lists(st.lists(st.integers(0, 50), max_size=20), min_size=1, max_size=3),
    option=st.sampled_from(["--num-shards", "--max-records", "--max-bytes"]),
    limit=st.integers(1, 12),
    compression=st.sampled_from(["none", "gzip", "zlib"]),
)
def test_every_record_is_in_one_shard_and_no_shard_is_too_large(
    run, write, tmp_path, files, option, limit, compression
):
    limit = limit * 25 if option == "--max-bytes" else limit
    records = [[bytes([i]) * size for i, size in enumerate(sizes)] for sizes in files]
    paths = [write(some) for some in records]
    output = tmp_path / f"{len(names_in(tmp_path))}-{{shard:03d}}"
    document = run.json("split", *paths, option, limit, "--output", output, "--compression", compression)
    kind = {"none": "", "gzip": "GZIP", "zlib": "ZLIB"}[compression]
    shards = [read(file["path"], kind) for file in document["files"]]
    assert [record for shard in shards for record in shard] == [record for some in records for record in some]
    assert [file["records"] for file in document["files"]] == [len(shard) for shard in shards]
    if option == "--num-shards":
        assert len(shards) == limit
        assert max(map(len, shards)) - min(map(len, shards)) <= 1
    elif option == "--max-records":
        assert all(len(shard) == limit for shard in shards[:-1])
        assert len(shards[-1]) <= limit
    else:
        sizes = [sum(len(record) + 16 for record in shard) for shard in shards]
        assert all(size <= limit or len(shard) == 1 for size, shard in zip(sizes, shards, strict=True))


def test_the_compression_is_that_of_the_files_unless_it_is_given(run, write, out):
    packed, plain = write([b"a"], compression="GZIP"), write([b"b"])
    run("merge", packed, "--output", out / "a")
    assert read(out / "a", "GZIP") == [b"a"]
    message = run.error("merge", packed, plain, "--output", out / "b")
    assert "select the compression of the new files with --compression" in message
    assert run("merge", packed, plain, "--compression", "ZLIB", "--output", out / "b")[0] == 0
    assert read(out / "b", "ZLIB") == [b"a", b"b"]


@pytest.fixture
def damaged(write):
    path = write([b"%04d" % i for i in range(100)])
    flip(path, 20 * 50 + 12)
    return path


HOW = [["--num-shards", 4], ["--max-records", 33], ["--max-bytes", 660]]


@pytest.mark.parametrize("how", [*HOW, None], ids=str)
def test_damage_stops_a_command_and_leaves_nothing(run, damaged, out, how):
    words = (
        ["merge", damaged, "--output", out / "all"]
        if how is None
        else ["split", damaged, *how, "--output", out / "{shard}"]
    )
    assert "record 50, at byte 1000" in run.error(*words, status=1)
    assert names_in(out) == []


@pytest.mark.parametrize("how", HOW, ids=str)
def test_damage_is_skipped_if_requested(run, damaged, out, how):
    document = run.json("split", damaged, *how, "--on-error", "skip", "--output", out / "{shard}")
    records = [record for path in sorted(out.iterdir()) for record in read(path)]
    assert records == [b"%04d" % i for i in range(100) if i != 50]
    assert (document["damaged_places"], document["lost_bytes"]) == (1, 20)
    assert document["first_damages"][0]["record"] == 50
    text = run("merge", damaged, "--on-error", "skip", "--output", out / "all")[1]
    assert text.endswith("skipped: 20 damaged bytes in 1 place\n")
    assert read(out / "all") == records


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")], ids=str)
@pytest.mark.parametrize("command", [["merge"], ["split", "--num-shards", 5]], ids=str)
def test_an_interrupted_command_leaves_no_files(run, write, out, monkeypatch, error, command):
    left = iter(range(70))

    def fail(self, record, write=outputs.NewFiles.write):
        if next(left, None) is None:
            raise error
        write(self, record)

    monkeypatch.setattr(outputs.NewFiles, "write", fail)
    output = out / ("all" if command == ["merge"] else "{shard}")
    status, text, err = run(*command, write([b"x"] * 100), "--output", output)
    assert (status, text) == ((130, "") if error is KeyboardInterrupt else (2, ""))
    assert err == ("" if error is KeyboardInterrupt else "error: No space left on device\n")
    assert names_in(out) == []


def test_existing_files_are_replaced_only_by_force_and_other_outputs_never(run, write, out):
    (out / "all").write_bytes(b"precious")
    path = write([b"a"])
    assert "the file exists; --force replaces it" in run.error("merge", path, "--output", out / "all")
    assert (out / "all").read_bytes() == b"precious"
    assert run("merge", path, "--output", out / "all", "--force")[0] == 0
    assert read(out / "all") == [b"a"]
    assert "directory or a device" in run.error("merge", path, "--output", out)
    assert "directory or a device" in run.error("merge", path, "--output", os.devnull, "--force")
    if os.geteuid() != 0:  # root may write anywhere
        out.chmod(0o500)
        assert "no permission" in run.error("merge", path, "--output", out / "other")


def test_a_file_that_is_read_is_never_written(run, write, out):
    path = write([b"a"])
    (out / "link").symlink_to(path)
    for output in (path, out / "link", out / ".." / path.name):
        assert "this is an input file" in run.error("merge", path, "--output", output, "--force")
    assert read(path) == [b"a"]


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("out/all", "gives several shards the same name"),
        ("out/{shard.real}", "supports only {shard} and {num_shards}"),
        ("out/{0}", "supports only {shard} and {num_shards}"),
        ("out/{shard:q}", "must be a name with fields such as"),
        ("out/{shard", "must be a name with fields such as"),
        ("missing/{shard}", "the directory"),
        ("", "must not be empty"),
    ],
)
def test_wrong_names_and_too_many_shards(run, write, out, output, message, monkeypatch):
    monkeypatch.chdir(out.parent)
    path = write([b"a"] * 4)
    assert message in run.error("split", path, "--num-shards", 2, "--output", output)
    assert "the maximum is 100,000" in run.error("split", path, "--num-shards", 10**9, "--output", "out/{shard}")
    assert names_in(out) == []


def test_remote_files_are_read_and_not_written(run, out):
    path = "memory://commands/a.tfrecord"
    with io.TFRecordWriter(path) as writer:
        writer.write(b"a record")
    status, text, err = run("merge", path, "--output", out / "b")
    assert (status, err, read(out / "b")) == (0, "", [b"a record"])
    status, text, err = run("merge", out / "b", "--output", "memory://commands/b")
    assert (status, text) == (2, "")
    assert "new files can be written only to local paths" in err
    fsspec.filesystem("memory").rm("/commands", recursive=True)


def test_a_file_that_changes_between_the_passes_is_an_error(run, write, out, monkeypatch):
    path = write([b"a"] * 10)
    monkeypatch.setattr(split, "_lengths", lambda *_: iter([1] * 5))
    message = run.error("split", path, "--max-records", 5, "--output", out / "{shard}")
    assert "changed while it was read" in message
    assert names_in(out) == []
