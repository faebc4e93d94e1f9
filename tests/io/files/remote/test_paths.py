"""Tests of which paths are opened with fsspec, and of the error messages if this is not possible."""

from __future__ import annotations

import importlib
import sys

import pytest

from dataset import Dataset, TFRecordDataset, io
from dataset.io.files.atomic import AtomicFile
from dataset.io.files.opening import open_input
from dataset.io.files.remote.paths import filesystem_of, is_remote
from dataset.testing import check_operator
from support.process_helpers import run_code
from support.tfrecord_files import frame

REMOTE = ["s3://bucket/a", "memory://a", "file:///a", "https://host/a?b=c", "simplecache::s3://bucket/a", "S3://b"]
LOCAL = ["a", "/a/b", "c://a", "./a://b", "folder/a://b", "a::b", "simplecache::/tmp/a", "://a", "1a://b", "data:,x"]


@pytest.mark.parametrize("path", REMOTE + LOCAL)
def test_a_path_with_a_scheme_is_remote_and_others_are_local(path):
    assert is_remote(path) == (path in REMOTE)


def test_file_paths_are_local_files(tmp_path):
    with io.TFRecordWriter(f"file://{tmp_path}/a.tfrecord") as writer:
        writer.write(b"one")
        assert [path.suffix for path in tmp_path.iterdir()] == [".tmp"]
    assert list(TFRecordDataset(str(tmp_path / "a.tfrecord"))) == [b"one"]
    assert list(TFRecordDataset(f"file://{tmp_path}/a.tfrecord")) == [b"one"]
    with pytest.raises(FileNotFoundError, match="none"):
        open_input(f"file://{tmp_path}/none")
    with pytest.raises(FileNotFoundError, match=r"the directory .* does not exist; create it first"):
        io.TFRecordWriter(f"file://{tmp_path}/none/a")


def test_a_scheme_that_nobody_knows_is_said_at_the_place_of_its_file(save):
    good = str(save(frame(b"one")))
    check_operator(
        lambda: TFRecordDataset(["nobody://a/b", good]),
        [ValueError("nobody://a/b: no file system can be opened for this path: Protocol not known: nobody"), b"one"],
    )
    for use in (Dataset.list_files, io.TFRecordWriter):
        with pytest.raises(ValueError, match=r"Protocol not known: nobody"):
            use("nobody://a/*")


def test_without_fsspec_the_extra_is_named_and_local_files_work(save, monkeypatch):
    good = str(save(frame(b"one")))
    monkeypatch.setitem(sys.modules, "fsspec", None)
    words = r"need fsspec, which is not installed: pip install \"dataset-combinators\[remote\]\""
    iterator = iter(TFRecordDataset(["memory://a/b", good]))
    for use in (open_input, AtomicFile, Dataset.list_files, lambda path: next(iterator)):
        with pytest.raises(ImportError, match=words):
            use("memory://a/b")
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
    assert run_code(code).stdout.strip() == "[]"


# Directories of saved elements must be local.


@pytest.mark.parametrize("path", ["s3://bucket/saved", "memory://saved", "file:///tmp/saved", b"gs://bucket/saved"])
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("save", lambda dataset, path: dataset.save(path)),
        ("load", lambda dataset, path: Dataset.load(path)),
        ("load", lambda dataset, path: Dataset.load(path, wait=True)),
        ("snapshot", lambda dataset, path: dataset.snapshot(path)),
        ("cache", lambda dataset, path: dataset.cache(path)),
        ("save", lambda dataset, path: dataset.save("a", checkpoint_args={"directory": path, "max_to_keep": 1})),
    ],
)
def test_directories_with_a_scheme_are_refused_at_the_call(path, name, call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = rf"{name}\(\): the path must be a local directory, without a scheme, got '.*saved'; use a local"
    with pytest.raises(ValueError, match=words):
        call(Dataset.range(3), path)
    assert list(tmp_path.iterdir()) == []
