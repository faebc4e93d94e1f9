"""Tests of the file datasets whose elements are bytes: the contract of ops, several files, and damaged files."""

import gzip
from functools import partial
from pathlib import Path

import pytest

from dataset import AUTOTUNE, DataLossError, Dataset, FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
from dataset.io import TFRecordWriter
from dataset.io.dataset_files import FilesOperator
from dataset.testing import check_operator, outcomes
from support.states import rest_of


@pytest.fixture
def lines(tmp_path):
    for name, text in (("a", b"one\r\n\ntwo"), ("b", b""), ("c", b"\n"), ("d", b"three\nfour\n")):
        (tmp_path / name).write_bytes(text)
    return [tmp_path / name for name in "abcd"]


@pytest.fixture
def records(tmp_path):
    for name, content in (("x", b"Haabbcc"), ("y", b"H"), ("z", b"Hdd")):
        (tmp_path / name).write_bytes(content)
    return [tmp_path / name for name in "xyz"]


LINES = [b"one", b"", b"two", b"", b"three", b"four"]


@pytest.mark.parametrize("size", [None, 1, 4])
def test_lines_and_records_keep_to_the_contract(lines, records, size):
    check_operator(lambda: TextLineDataset(lines, buffer_size=size), LINES)
    check_operator(lambda: FixedLengthRecordDataset(records, 2, 1, buffer_size=size), [b"aa", b"bb", b"cc", b"dd"])


def test_several_files_at_once_and_names_of_a_dataset(lines):
    check_operator(lambda: TextLineDataset(lines[:1] + lines[2:], num_parallel_reads=2))
    interleaved = [b"one", b"", b"three", b"", b"four", b"two"]
    check_operator(lambda: TextLineDataset(lines[:1] + lines[2:], num_parallel_reads=3), interleaved)
    names = Dataset.from_tensor_slices([str(path) for path in lines])
    check_operator(lambda: names.flat_map(TextLineDataset), LINES)
    check_operator(
        lambda: names.interleave(lambda name: FixedLengthRecordDataset(name, 1), cycle_length=1), positions=9
    )


def test_a_missing_file_takes_one_place(lines, tmp_path):
    files = [lines[0], tmp_path / "none", lines[3]]
    found = check_operator(lambda: TextLineDataset(files))
    assert isinstance(found[3], FileNotFoundError)
    assert "none" in str(found[3])
    assert "TextLineDataset from test_file_datasets.py:" in found[3].__notes__[0]
    assert found[:3] + found[4:] == LINES[:3] + LINES[4:]


@pytest.mark.parametrize("reads", [None, 2])
def test_a_damaged_file_takes_one_place_and_loses_no_whole_line(tmp_path, reads):
    bad, good = tmp_path / "bad", tmp_path / "good"
    bad.write_bytes(gzip.compress(b"one\ntwo\nthree")[:-9])
    good.write_bytes(gzip.compress(b"four"))
    found = check_operator(lambda: TextLineDataset([bad, good], "GZIP", num_parallel_reads=reads))
    [error] = [value for value in found if isinstance(value, Exception)]
    assert isinstance(error, DataLossError)
    assert (error.path, error.record, error.offset) == (str(bad), 2, 8)
    assert sorted(value for value in found if value is not error) == [b"four", b"one", b"two"]


@pytest.mark.parametrize(("change", "error"), [(Path.unlink, FileNotFoundError), (Path.touch, DataLossError)])
def test_a_state_of_a_file_that_is_gone_or_shrank_fails_at_its_place(lines, change, error):
    with iter(TextLineDataset(lines)) as iterator:
        assert [next(iterator) for _ in range(2)] == LINES[:2]
        state = iterator.state_dict()
    lines[0].write_bytes(b"one")
    change(lines[0])
    resumed = iter(TextLineDataset(lines))
    resumed.load_state_dict(state)
    found = outcomes(resumed)
    assert isinstance(found[0], error)
    assert found[1:] == LINES[3:]


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (
            lambda: TextLineDataset("a", "gz"),
            ValueError,
            'compression_type must be None, "", "GZIP", "ZLIB", "ZSTD", "SNAPPY" or "AUTO"',
        ),
        (
            lambda: TextLineDataset("a", buffer_size=-1),
            ValueError,
            r"TextLineDataset\(\): buffer_size must be at least 0",
        ),
        (lambda: TextLineDataset(3), TypeError, r"TextLineDataset\(\): filenames must be a path"),
        (lambda: FixedLengthRecordDataset("a", 0), ValueError, "record_bytes must be at least 1, got 0"),
        (lambda: FixedLengthRecordDataset("a", 1, 1.5), TypeError, "header_bytes must be an int, got 1\\.5"),
    ],
)
def test_arguments_that_are_wrong_are_said_at_the_call(make, error, words):
    with pytest.raises(error, match=words):
        make()


@pytest.mark.parametrize("make", [TextLineDataset, TFRecordDataset, partial(FixedLengthRecordDataset, record_bytes=5)])
@pytest.mark.parametrize("prefetches", [False, True])
def test_elements_of_a_block_are_taken_in_runs_and_the_state_is_that_after_each(
    tmp_path, monkeypatch, make, prefetches
):
    counted = []
    pull = FilesOperator.pull
    monkeypatch.setattr(FilesOperator, "pull", lambda self, n: counted.append(n) or pull(self, n))
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        with TFRecordWriter(path) if make is TFRecordDataset else path.open("wb") as file:
            for number in range(1000):
                file.write(b"%04d\n" % number)
    dataset = make(list(map(str, paths)))
    if prefetches:
        dataset = dataset.prefetch(AUTOTUNE)
    iterator, elements, places = iter(dataset), [], []
    for number, element in enumerate(iterator, 1):
        elements.append(element)
        if number in (1, 2, 3, 500, 999, 1000, 1001, 2000):
            places.append((number, iterator.state_dict()))
    assert len(elements) == 2000
    assert len(counted) < 1000
    for number, state in places:
        file = (state["operator"]["source"] if prefetches else state["operator"])["file"]
        assert (file["path"], file["number"]) == (str(paths[number > 1000]), number - 1000 * (number > 1000))
        assert rest_of(dataset, state) == elements[number:]
