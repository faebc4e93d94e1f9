"""Tests of TextLineDataset and FixedLengthRecordDataset: the contract of ops, several files, and damaged files."""

import gzip

import pytest

from dataset import DataLossError, Dataset, FixedLengthRecordDataset, TextLineDataset
from dataset.testing import check_operator, no_leaks, outcomes


@pytest.fixture
def lines(tmp_path):
    for name, text in (("a", b"one\r\n\ntwo"), ("b", b""), ("c", b"\n"), ("d", b"three\nfour\n")):
        (tmp_path / name).write_bytes(text)
    return [tmp_path / name for name in "abcd"]


@pytest.fixture
def records(tmp_path):
    for name, content in (("a", b"Haabbcc"), ("b", b"H"), ("c", b"Hdd")):
        (tmp_path / name).write_bytes(content)
    return [tmp_path / name for name in "abc"]


LINES = [b"one", b"", b"two", b"", b"three", b"four"]


@pytest.mark.parametrize("size", [None, 1, 4])
def test_lines(lines, size):
    check_operator(lambda: TextLineDataset(lines, buffer_size=size), LINES)


@pytest.mark.parametrize("size", [None, 1, 4])
def test_records(records, size):
    check_operator(lambda: FixedLengthRecordDataset(records, 2, 1, buffer_size=size), [b"aa", b"bb", b"cc", b"dd"])


def test_lines_of_several_files_at_once(lines):
    interleaved = [b"one", b"", b"three", b"", b"four", b"two"]
    check_operator(lambda: TextLineDataset([lines[0], lines[2], lines[3]], num_parallel_reads=2))
    found = check_operator(lambda: TextLineDataset([lines[0], lines[2], lines[3]], num_parallel_reads=3))
    assert found == interleaved


def test_names_of_a_dataset(lines):
    names = Dataset.from_tensor_slices([str(path) for path in lines])
    check_operator(lambda: TextLineDataset(names), LINES)
    check_operator(lambda: names.flat_map(TextLineDataset), LINES)
    check_operator(
        lambda: names.interleave(lambda name: FixedLengthRecordDataset(name, 1), cycle_length=1), positions=9
    )


def test_batches_and_orders(lines):
    check_operator(lambda: TextLineDataset(lines).batch(4))
    check_operator(lambda: TextLineDataset(lines).shuffle(3, seed=1).repeat(2).prefetch(1))


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


def test_records_that_do_not_fill_their_file_take_one_place(records, tmp_path):
    (tmp_path / "bad").write_bytes(b"Haab")
    found = check_operator(lambda: FixedLengthRecordDataset([records[0], tmp_path / "bad", records[2]], 2, 1))
    assert found[:3] + found[4:] == [b"aa", b"bb", b"cc", b"dd"]
    assert isinstance(found[3], DataLossError)
    assert "record_bytes=2" in str(found[3])
    (tmp_path / "bad").write_bytes(gzip.compress(b"Haab"))
    packed = FixedLengthRecordDataset(tmp_path / "bad", 2, 1, compression_type="GZIP")
    found = check_operator(lambda: packed)
    assert found[0] == b"aa"
    assert isinstance(found[1], DataLossError)
    assert len(found) == 2


def test_a_state_of_a_file_that_is_gone_fails_at_its_place(lines):
    iterator = iter(TextLineDataset(lines))
    next(iterator)
    state = iterator.state_dict()
    iterator.close()
    lines[0].unlink()
    resumed = iter(TextLineDataset(lines))
    resumed.load_state_dict(state)
    found = outcomes(resumed)
    assert isinstance(found[0], FileNotFoundError)
    assert found[1:] == LINES[3:]


def test_a_state_of_a_file_that_shrank_fails_at_its_place(lines):
    iterator = iter(TextLineDataset(lines))
    for _ in range(2):
        next(iterator)
    state = iterator.state_dict()
    iterator.close()
    lines[0].write_bytes(b"one")
    resumed = iter(TextLineDataset(lines))
    resumed.load_state_dict(state)
    found = outcomes(resumed)
    assert isinstance(found[0], DataLossError)
    assert found[1:] == LINES[3:]


def test_states_do_not_grow_with_the_file(tmp_path):
    (tmp_path / "a").write_bytes(b"line\n" * 50_000)
    iterator = iter(TextLineDataset(tmp_path / "a"))
    early = next(iterator) and len(repr(iterator.state_dict()))
    for _ in range(40_000):
        next(iterator)
    assert len(repr(iterator.state_dict())) < early + 20
    iterator.close()


def test_stopping_half_way_closes_the_files(lines):
    with no_leaks():
        for reads in (None, 3):
            iterator = iter(TextLineDataset(lines, num_parallel_reads=reads, buffer_size=1))
            next(iterator)
            iterator.close()
            iterator = iter(TextLineDataset(lines, num_parallel_reads=reads, buffer_size=1))
            next(iterator)
            del iterator


def test_arguments_that_are_wrong_are_said_at_the_call():
    with pytest.raises(ValueError, match=r'TextLineDataset|compression_type must be None, "", "GZIP" or "ZLIB"'):
        TextLineDataset("a", "gz")
    with pytest.raises(ValueError, match=r"TextLineDataset\(\): buffer_size must be at least 0, got -1"):
        TextLineDataset("a", buffer_size=-1)
    with pytest.raises(ValueError, match=r"FixedLengthRecordDataset\(\): record_bytes must be at least 1, got 0"):
        FixedLengthRecordDataset("a", 0)
    with pytest.raises(TypeError, match=r"FixedLengthRecordDataset\(\): header_bytes must be an int, got 1\.5"):
        FixedLengthRecordDataset("a", 1, 1.5)
    with pytest.raises(TypeError, match=r"TextLineDataset\(\): filenames must be a path"):
        TextLineDataset(3)
