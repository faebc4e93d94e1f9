"""Tests of which paths are opened with fsspec, and of the error messages if this is not possible."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from dataset import Dataset, TFRecordDataset, io
from dataset.io.files.atomic import AtomicFile
from dataset.io.files.opening import open_input
from dataset.io.files.remote.paths import filesystem_of, is_remote
from dataset.testing import check_operator


@pytest.mark.parametrize(
    "path", ["s3://bucket/a", "memory://a", "file:///a", "https://host/a?b=c", "simplecache::s3://bucket/a", "S3://b"]
)
def test_a_path_with_a_scheme_is_remote(path):
    assert is_remote(path)


@pytest.mark.parametrize(
    "path",
    ["a", "/a/b", "c://a", "./a://b", "folder/a://b", "a::b", "simplecache::/tmp/a", "://a", "1a://b", "data:,x"],
)
def test_other_paths_are_local(path):
    assert not is_remote(path)


def test_a_local_path_with_colons_and_slashes_is_read_and_written(tmp_path):
    path = f"{tmp_path}/odd:/name"
    Path(path).parent.mkdir()
    with AtomicFile(f"{tmp_path}/odd://name") as target:
        target.file.write(b"abc")
    assert Path(path).read_bytes() == b"abc"


def test_file_paths_are_local_files(tmp_path):
    with io.TFRecordWriter(f"file://{tmp_path}/a.tfrecord") as writer:
        writer.write(b"one")
        assert [path.suffix for path in tmp_path.iterdir()] == [".tmp"]
    assert list(TFRecordDataset(str(tmp_path / "a.tfrecord"))) == [b"one"]
    check_operator(lambda: TFRecordDataset(f"file://{tmp_path}/a.tfrecord"), [b"one"])
    with pytest.raises(FileNotFoundError, match="none"):
        open_input(f"file://{tmp_path}/none")
    with pytest.raises(FileNotFoundError, match=r"the directory .* does not exist; create it first"):
        io.TFRecordWriter(f"file://{tmp_path}/none/a")


def test_a_scheme_that_nobody_knows_is_said_at_the_place_of_its_file(tmp_path):
    with io.TFRecordWriter(tmp_path / "a") as writer:
        writer.write(b"one")
    check_operator(
        lambda: TFRecordDataset(["nobody://a/b", str(tmp_path / "a")]),
        [ValueError("nobody://a/b: no file system can be opened for this path: Protocol not known: nobody"), b"one"],
    )
    with pytest.raises(ValueError, match=r"Protocol not known: nobody"):
        Dataset.list_files("nobody://a/*")
    with pytest.raises(ValueError, match=r"Protocol not known: nobody"):
        io.TFRecordWriter("nobody://a/b")


def test_without_fsspec_the_extra_is_named_and_local_files_work(tmp_path, monkeypatch):
    with io.TFRecordWriter(tmp_path / "a") as writer:
        writer.write(b"one")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    words = r"need fsspec, which is not installed: pip install \"dataset-combinators\[remote\]\""
    for use in (open_input, AtomicFile, Dataset.list_files, lambda path: list(TFRecordDataset(path))):
        with pytest.raises(ImportError, match=words):
            use("memory://a/b")
    iterator = iter(TFRecordDataset(["memory://a/b", str(tmp_path / "a")]))
    with pytest.raises(ImportError, match=words):
        next(iterator)
    assert list(iterator) == [b"one"]


@pytest.mark.parametrize(("path", "package"), [("s3://a/b", "s3fs"), ("gs://a/b", "gcsfs"), ("abfs://a/b", "adlfs")])
@pytest.mark.parametrize("chain", ["", "simplecache::"])
def test_a_missing_library_of_a_scheme_is_named(path, package, chain, monkeypatch):
    registry = importlib.import_module("fsspec.registry")
    monkeypatch.delitem(registry._registry, path.split(":", maxsplit=1)[0], raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    words = rf'{package} and fsspec: pip install {package} "dataset-combinators\[remote\]"'
    with pytest.raises(ImportError, match=words):
        filesystem_of(chain + path)


def test_local_work_imports_neither_fsspec_nor_asyncio(tmp_path):
    code = (
        "import sys\n"
        "from dataset import Dataset, TFRecordDataset, io\n"
        f"path = {str(tmp_path)!r} + '/a'\n"
        "io.TFRecordWriter(path).close()\n"
        "assert list(TFRecordDataset(Dataset.list_files(path))) == []\n"
        "print([name for name in ('fsspec', 'aiohttp', 'asyncio') if name in sys.modules])\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.strip() == "[]"


# Directories of saved elements must be local.


@pytest.mark.parametrize("path", ["s3://bucket/saved", "memory://saved", "file:///tmp/saved", b"gs://bucket/saved"])
def test_directories_with_a_scheme_are_refused_at_the_call(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    dataset = Dataset.range(3)
    checkpoint_args = {"directory": path, "max_to_keep": 1}
    calls = {
        "save": lambda: dataset.save(path),
        "load": lambda: Dataset.load(path),
        "snapshot": lambda: dataset.snapshot(path),
        "cache": lambda: dataset.cache(path),
        "save ": lambda: dataset.save("saved", checkpoint_args=checkpoint_args),
    }
    for name, call in calls.items():
        words = rf"{name.strip()}\(\): the path must be a local directory, without a scheme, got '.*saved'; use a local"
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(ValueError, match="must be a local directory"):
        Dataset.load(path, wait=True)
    assert list(tmp_path.iterdir()) == []
