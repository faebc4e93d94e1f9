"""Tests of what the datasets of files of all formats share: names, several files, missing and damaged files."""

import os
import shutil
from functools import partial
from pathlib import Path

import fsspec
import numpy as np
import pytest

from dataset import (
    AUTOTUNE,
    CsvDataset,
    DataLossError,
    Dataset,
    FixedLengthRecordDataset,
    JsonLinesDataset,
    TarDataset,
    TensorSpec,
    TextLineDataset,
    TFRecordDataset,
)
from dataset.testing import assert_elements_equal, check_operator, outcomes
from support.states import state_after

# What reads each format, and the names of its files in resume_files.py.
FORMATS = {
    "records": (TFRecordDataset, "plain"),
    "lines": (TextLineDataset, "text"),
    "records of one length": (partial(FixedLengthRecordDataset, record_bytes=4, header_bytes=4), "fixed"),
    "rows": (partial(CsvDataset, record_defaults=[np.int64, np.float64, bytes]), "csv"),
    "JSON Lines": (partial(JsonLinesDataset, columns={"n": int, "text": bytes}), "json"),
    "tar": (partial(TarDataset, fields=["txt"]), "shard"),
    "Parquet": (Dataset.from_parquet, "table"),
    "Arrow": (Dataset.from_arrow_ipc, "batches"),
}


@pytest.fixture(params=FORMATS.values(), ids=FORMATS)
def form(request, files):
    """Return what reads a format, and the paths of three files."""
    read, name = request.param
    return read, files.parts(name)


def in_any_order(dataset):
    return sorted(repr(type(one) if isinstance(one, Exception) else one) for one in outcomes(iter(dataset)))


def test_files_are_named_in_many_ways_and_their_elements_follow_each_other(form):
    read, paths = form
    each = [outcomes(iter(read(path))) for path in paths]
    found = check_operator(lambda: read(paths), positions=9)
    assert_elements_equal(found, [element for elements in each for element in elements])
    generated = Dataset.from_generator(lambda: iter(paths), output_signature=TensorSpec((), bytes))
    for names in (tuple(map(Path, paths)), list(map(os.fsencode, paths)), Dataset.from_tensor_slices(paths), generated):
        assert_elements_equal(outcomes(iter(read(names))), found)
    with pytest.raises(TypeError, match=r"must be a path|filenames"):
        read(3)


@pytest.mark.parametrize("reads", [1, 2, AUTOTUNE])
def test_files_are_read_side_by_side(form, reads):
    read, paths = form
    check_operator(lambda: read(paths, num_parallel_reads=reads), positions=4)
    assert in_any_order(read(paths, num_parallel_reads=reads)) == in_any_order(read(paths))
    with pytest.raises(ValueError, match="must be at least 1, got 0"):
        read(paths, num_parallel_reads=0)


def test_remote_files_in_an_interleave(form):
    read, paths = form
    memory = fsspec.filesystem("memory")
    for path in paths:
        memory.pipe(f"/file_datasets/{Path(path).name}", Path(path).read_bytes())
    pattern = f"memory://file_datasets/*{Path(paths[0]).suffix}"
    make = lambda: Dataset.list_files(pattern, shuffle=False).interleave(read, 2)
    check_operator(make, positions=4)
    assert in_any_order(make()) == in_any_order(read(paths))
    memory.rm("/file_datasets", recursive=True)


def test_a_missing_file_takes_one_place_and_so_does_one_that_vanishes(form, tmp_path):
    read, paths = form
    first, last = (shutil.copy(path, tmp_path) for path in paths[:2])
    names = [first, str(tmp_path / "none"), last]
    before, after = (outcomes(iter(read(path))) for path in (first, last))
    dataset = read(names)
    found = check_operator(lambda: read(names), positions=9)
    missing = found.pop(len(before))
    assert_elements_equal(found, before + after)
    Path(last).unlink()
    *_, vanished = outcomes(iter(dataset))
    for error, name in ((missing, "none"), (vanished, last)):
        assert isinstance(error, FileNotFoundError)
        assert name in str(error)
        assert "from test_file_datasets.py:" in error.__notes__[0]


@pytest.mark.parametrize("read", [Dataset.from_parquet, Dataset.from_arrow_ipc, Dataset.from_json_lines])
def test_a_missing_first_file_is_said_at_the_call(read, tmp_path):
    with pytest.raises(FileNotFoundError, match="missing"):
        read(tmp_path / "missing")
    with pytest.raises(FileNotFoundError, match=rf"{read.__name__}\(\): no file matches '.*/\*\.a'"):
        read(f"{tmp_path}/*.a")
    with pytest.raises(IsADirectoryError):
        read(tmp_path)


@pytest.mark.parametrize("name", ["records", "lines", "records of one length", "rows", "JSON Lines", "tar"])
def test_wrong_arguments_are_said_at_the_call(name):
    read, _ = FORMATS[name]
    words = r'compression_type must be None, "", "GZIP", "ZLIB", "ZSTD", "SNAPPY" or "AUTO", got \'gz\''
    with pytest.raises(ValueError, match=words):
        read("a", compression_type="gz")
    with pytest.raises(ValueError, match=r"\w+\(\): buffer_size must be at least [01]"):
        read("a", buffer_size=-1)


@pytest.fixture
def lines(tmp_path):
    for name, text in (("a", b"one\r\n\ntwo"), ("b", b""), ("c", b"\n"), ("d", b"three\nfour\n")):
        (tmp_path / name).write_bytes(text)
    return [tmp_path / name for name in "abcd"]


LINES = [b"one", b"", b"two", b"", b"three", b"four"]


@pytest.mark.parametrize(("change", "error"), [(Path.unlink, FileNotFoundError), (Path.touch, DataLossError)])
def test_a_state_of_a_file_that_is_gone_or_shrank_fails_at_its_place(lines, change, error):
    assert list(TextLineDataset(lines)) == LINES
    state = state_after(TextLineDataset(lines), 2)
    lines[0].write_bytes(b"one")
    change(lines[0])
    resumed = iter(TextLineDataset(lines))
    resumed.load_state_dict(state)
    found = outcomes(resumed)
    assert isinstance(found[0], error)
    assert found[1:] == LINES[3:]
