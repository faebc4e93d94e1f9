"""Tests of the index of lines: TextLineDataset(index=True) and JsonLinesDataset(index=True)."""

from __future__ import annotations

import json
import os
import pickle
import random
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset import (
    DataLossError,
    Dataset,
    FixedLengthRecordDataset,
    JsonLinesDataset,
    ParseError,
    TextLineDataset,
    TFRecordDataset,
    io,
)
from dataset.io.indexed.index_file import NotAnIndexError, pack_index
from dataset.io.text.fixed_length_index import FixedLengthIndex
from dataset.io.text.line_index import LineIndex, RowLineIndex
from dataset.testing import assert_elements_equal, check_operator, no_leaks, outcomes
from support.folders import flipped
from support.states import state_after

CONTENTS = {
    "empty": b"",
    "one empty line": b"\n",
    "only a carriage return": b"\r",
    "carriage returns at the end": b"a\n\r\r",
    "no last line end": b"one\ntwo",
    "carriage returns": b"one\r\n\r\nt\rwo\r\n",
    "null bytes and UTF-8": "a\0b\nçé\u2028ü\n\0\n".encode(),
    "short lines": b"\n" * 10_000 + b"x\n" * 5000,
    "long lines": b"a\n" * 10 + b"x" * 300_000 + b"\nb\n" + b"y" * 600_000,
    "lines of the size of a group": b"".join(b"x" * size + b"\n" for size in (4094, 4095, 4096, 4097, 8191, 8192)),
    "blocks end in line ends": (b"x" * 63 + b"\n") * 8192,
    "blocks end between line ends": (b"x" * 62 + b"\r\n") * 4097 + b"z",
}


def lines_of(path):
    return list(TextLineDataset(str(path)))


def write(path, content):
    path.write_bytes(content)
    return str(path)


@pytest.mark.parametrize("name", CONTENTS)
def test_lines_are_those_of_the_sequential_reader(name, tmp_path):
    path = write(tmp_path / "a.txt", CONTENTS[name])
    expected = lines_of(path)
    with no_leaks():
        dataset = TextLineDataset(path, index=True)
        assert len(dataset) == len(expected)
        assert list(dataset) == expected
        assert list(TextLineDataset(path, buffer_size=1, index=True)) == expected
        places = random.Random(0).choices(range(len(expected)), k=200 if expected else 0)
        assert [dataset[i] for i in places] == [expected[i] for i in places]
        assert sorted(dataset.shuffle(None, seed=1)) == sorted(expected)
        del dataset
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the saved index is used
        assert list(TextLineDataset(path, index=True)) == expected


PIECES = [
    b"\n",
    b"\r",
    b"\r\n",
    b" ",
    b"\t",
    b"a",
    b"{}",
    b"\xef\xbb\xbf",
    b"\0",
    b"x" * 4090,
    b" " * 4095,
    b"word " * 30,
]


@settings(max_examples=150, deadline=None)
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=60))
def test_lines_of_any_content_are_those_of_the_sequential_reader(pieces):
    content = b"".join(pieces)
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder, "a"), content)
        expected = lines_of(path)
        index = LineIndex.build(path)
        with RowLineIndex.build(path) as rows:
            assert list(rows.columns()[0]) == list(index.columns()[0])
            first = [line.removeprefix(b"\xef\xbb\xbf") for line in expected[:1]]
            numbers = [i for i, line in enumerate(first + expected[1:]) if line.strip(b" \t\r")]
            assert len(rows) == len(numbers)
            assert rows.line_numbers(np.arange(len(rows))).tolist() == numbers
            reader = rows.open_records()
            texts = [(first + expected[1:])[i] for i in numbers]
            assert [reader.record(i) for i in range(len(rows))] == texts
            reader.close()
        assert len(index) == len(expected)
        assert int(index.offsets[-1]) == len(content)
        reader = index.open_records()
        assert [reader.record(i) for i in range(len(index))] == expected
        for first_line in range(0, len(index), 7):
            assert reader.records(first_line, len(index)) == (expected[first_line:], None)
        reader.close()


def test_a_group_is_at_most_four_kibibytes_or_one_line(tmp_path):
    path = write(tmp_path / "a", b"".join(b"x" * (i * 7919 % 9000) + b"\n" for i in range(500)))
    sizes, lines, rows = LineIndex.build(path).columns()
    assert all((sizes <= 4096) | (lines == 1))
    assert sizes.mean() > 2000
    assert (rows <= lines).all()


@pytest.fixture
def paths(tmp_path):
    texts = [b"a\nb\n", b"", b"\n", b"".join(b"line %d\r\n" % i for i in range(30))]
    return [write(tmp_path / f"{i}.txt", text) for i, text in enumerate(texts)]


@pytest.mark.parametrize(
    "chain",
    [
        lambda d: d,
        lambda d: d.skip(2).shard(3, 2).skip(1).take(4),
        lambda d: d.shard(2, 1).shuffle(None, seed=1).repeat(2).batch(5),
        lambda d: d.map(lambda x: x * 2).shuffle(None, seed=1).skip(3),
        lambda d: Dataset.zip(d, d.skip(3)).shuffle(None, seed=2),
        lambda d: d.split([0.5, 0.5], seed=1)[0],
    ],
)
def test_chains_keep_to_the_contract_and_return_what_an_array_returns(paths, chain):
    lines = np.array(list(TextLineDataset(paths)), object)
    found = check_operator(lambda: chain(TextLineDataset(paths, index=True)), positions=8)
    assert_elements_equal(found, outcomes(iter(chain(Dataset.from_tensor_slices(lines)))))


def test_the_state_of_a_full_shuffle_does_not_grow_with_the_file(tmp_path):
    path = write(tmp_path / "a", b"line\n" * 5000)
    dataset = TextLineDataset(path, index=True).shuffle(None, seed=1).batch(8).prefetch(2)
    assert len(pickle.dumps(state_after(dataset, 1))) < 3000


# Damage and age


def test_no_damage_of_the_saved_index_changes_a_line(tmp_path):
    path = write(tmp_path / "a.txt", CONTENTS["carriage returns"] * 900)
    expected = lines_of(path)
    saved = Path(LineIndex.open(path).index_path)
    content = saved.read_bytes()
    damaged = [flipped(content, at, 1 << at % 8) for at in range(len(content))]
    for found in (*damaged, *(content[:size] for size in range(len(content)))):
        saved.write_bytes(found)
        with pytest.warns(UserWarning, match="is not used: it"):
            index = LineIndex.open(path)
        assert len(index) == len(expected)
        assert saved.read_bytes() in (content, found)  # one that is not recognized is left alone
        saved.write_bytes(content)
    assert lines_of(path) == list(TextLineDataset(path, index=True))


def test_numbers_that_do_not_match_the_lines_are_an_error_and_no_other_lines(tmp_path):
    path = write(tmp_path / "a.txt", b"one\ntwo\nthree\n" * 1000)
    index = LineIndex.build(path)
    sizes, lines, rows = (column.copy() for column in index.columns())
    lines[1], lines[2] = lines[1] + 1, lines[2] - 1
    Path(index.index_path).write_bytes(pack_index(index.KIND, [sizes, lines, rows], index.stamp))
    dataset = TextLineDataset(path, index=True)
    found, expected = outcomes(iter(dataset)), lines_of(path)
    assert len(found) == len(expected)
    for got, line in zip(found, expected, strict=True):
        assert isinstance(got, DataLossError) or got == line
    assert any(isinstance(got, DataLossError) for got in found)
    with pytest.raises(DataLossError, match="modified after its index was built"):
        dataset[int(lines[0])]


@pytest.mark.parametrize("column", [0, 1, 2])
def test_a_hostile_index_is_not_believed(column, tmp_path):
    index = LineIndex.build(write(tmp_path / "a.txt", b"one\ntwo\n" * 2000))
    for value in (2**62, 2**63 - 1):
        columns = [part.copy() for part in index.columns()]
        columns[column][:] = value
        with pytest.raises(NotAnIndexError):
            LineIndex.unpack(pack_index(index.KIND, columns, index.stamp))


def appended(path):
    with path.open("ab") as file:
        file.write(b"more\n")


def truncated(path):
    os.truncate(path, path.stat().st_size - 3)


def rewritten(path):
    stamp = path.stat()
    path.write_bytes(path.read_bytes()[::-1])
    os.utime(path, ns=(stamp.st_mtime_ns + 1, stamp.st_mtime_ns + 1))


@pytest.mark.parametrize("change", [appended, truncated, rewritten])
def test_the_index_of_a_modified_file_is_rebuilt_and_an_open_dataset_fails(change, tmp_path):
    path = tmp_path / "a.txt"
    write(path, b"one\ntwo\nthree\n" * 100)
    before = TextLineDataset(path, index=True)
    change(path)
    with pytest.raises(DataLossError, match="modified after its index was built"):
        before[0]
    with pytest.warns(UserWarning, match="does not match the size or time of .* It is rebuilt"):
        assert list(TextLineDataset(path, index=True)) == lines_of(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(TextLineDataset(path, index=True)) == lines_of(path)


@pytest.mark.parametrize("change", [appended, truncated, rewritten])
@pytest.mark.parametrize(
    "reader", [LineIndex.build, RowLineIndex.build, lambda path: FixedLengthIndex.of_file(path, 1, 0, 0)]
)
def test_no_line_or_record_of_an_open_file_is_returned_after_it_is_modified(change, reader, tmp_path):
    path = tmp_path / "a.txt"
    index = reader(write(path, b"one\ntwo\nsix\n" * 2000))
    opened = index.open_records()
    assert opened.record(0)
    change(path)
    for place in (0, len(index) // 2, len(index) - 1):
        with pytest.raises(DataLossError, match="modified after its index was built"):
            opened.record(place)
        with pytest.raises(DataLossError, match="modified after its index was built"):
            opened.records(place, len(index))
    opened.close()


def test_the_index_of_another_kind_is_replaced_and_another_file_is_not(tmp_path):
    path = write(tmp_path / "a", b"one\n")
    with io.TFRecordWriter(str(tmp_path / "b")) as writer:
        writer.write(b"one")
    TFRecordDataset(str(tmp_path / "b"), index=True)
    Path(f"{path}.index").write_bytes((tmp_path / "b.index").read_bytes())
    with pytest.warns(UserWarning, match=r"is of another kind\. .* rebuilt, and saved again"):
        assert list(TextLineDataset(path, index=True)) == [b"one"]
    Path(f"{path}.index").write_bytes(b"a checkpoint")
    with pytest.warns(UserWarning, match=r"another kind of file\. .* rebuilt\."):
        assert list(TextLineDataset(path, index=True)) == [b"one"]
    assert Path(f"{path}.index").read_bytes() == b"a checkpoint"


@pytest.mark.parametrize("index", [False, True])
def test_an_index_that_is_read_as_text_is_an_error(index, tmp_path):
    path = LineIndex.open(write(tmp_path / "a", b"one\n")).index_path
    with pytest.raises(DataLossError, match=r"this is the index of another file: use a file pattern that excludes"):
        list(TextLineDataset(path, index=index))


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"compression_type": "GZIP"}, ValueError, "can't be indexed.* write the records to uncompressed files"),
        ({"num_parallel_reads": 2}, ValueError, "can't be interleaved, got num_parallel_reads=2; omit it"),
        ({"index": 1}, TypeError, "index must be True or False"),
    ],
)
def test_arguments_that_do_not_go_together_are_refused(paths, arguments, error, words):
    with pytest.raises(error, match=words):
        TextLineDataset(paths, **{"index": True, **arguments})


# JSON Lines

ROWS = [
    b"",
    b'{"n": 0, "text": "zero"}',
    b" \t\r",
    b'  {"n": 1, "text": "one"}\r',
    b"",
    b"{not JSON}",
    b'{"n": 1.5, "text": "not an integer"}',
    *(b'{"n": %d, "text": "%d"}' % (i, i) for i in range(2, 500)),
    b" ",
    b'{"n": 500, "text": "last"}',
]


@pytest.mark.parametrize(
    "begin", [b"", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n", b"\n" * 9000], ids=["none", "BOM", "BOM line", "blank"]
)
def test_rows_are_those_of_the_sequential_reader_with_errors_in_their_places(begin, tmp_path):
    path = write(tmp_path / "a.jsonl", begin + b"\n".join(ROWS))
    columns = {"n": np.int64, "text": bytes}
    expected = outcomes(iter(JsonLinesDataset(path, columns)))
    dataset = JsonLinesDataset(path, columns, index=True)
    assert len(dataset) == len(expected) == 503
    found = outcomes(iter(dataset))
    assert sum(isinstance(one, ParseError) for one in found) == 2
    # The message names the same file, line and column.
    assert [str(one) for one in found] == [str(one) for one in expected]
    places = random.Random(0).choices(range(len(expected)), k=100)
    for place in places:
        if isinstance(expected[place], ParseError):
            with pytest.raises(ParseError):
                dataset[place]
        else:
            assert dataset[place] == expected[place]
    shuffled = dataset.shuffle(None, seed=1).ignore_errors()
    assert sorted(row["n"] for row in shuffled) == list(range(501))
    good = [one for one in expected if not isinstance(one, ParseError)]
    assert_elements_equal(list(dataset.ignore_errors()), good)


def test_text_and_json_share_the_saved_index_and_infer_the_same_columns(tmp_path):
    path = write(tmp_path / "a.jsonl", b'{"n": 1}\n\n{"n": 2}\n')
    assert len(TextLineDataset(path, index=True)) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dataset = JsonLinesDataset(path, index=True)
    assert [row["n"] for row in dataset] == [1, 2]
    found = check_operator(lambda: JsonLinesDataset(path, index=True).shuffle(None, seed=1), positions=3)
    assert len(found) == 2


def test_recorded_numbers_are_those_of_lines_also_after_blank_lines(tmp_path):
    path = write(tmp_path / "a.jsonl", b'\n{"n": 0}\n\n{"n": 1}\n{"n": 2}\n')
    listed = write(tmp_path / "skip.jsonl", json.dumps({"file": path, "number": 3}).encode())
    for index in (False, True):
        rows = JsonLinesDataset(path, index=index).skip_records(listed)
        assert [row["n"] for row in rows] == [0, 2]


# Fixed length


@pytest.mark.parametrize(("header", "footer"), [(0, 0), (4, 0), (3, 5)])
def test_fixed_length_records_are_those_of_the_sequential_reader(header, footer, tmp_path):
    paths = [
        write(tmp_path / f"{i}", b"H" * header + random.Random(i).randbytes(7 * count) + b"F" * footer)
        for i, count in enumerate((3, 0, 1000))
    ]
    expected = list(FixedLengthRecordDataset(paths, 7, header, footer))
    with no_leaks():
        dataset = FixedLengthRecordDataset(paths, 7, header, footer, index=True)
        assert len(dataset) == len(expected) == 1003
        assert list(dataset) == expected
        assert [dataset[i] for i in range(-1003, 0)] == expected
        assert sorted(dataset.shuffle(None, seed=1)) == sorted(expected)
        del dataset
    assert sorted(os.listdir(tmp_path)) == ["0", "1", "2"]  # noqa: PTH208  # only the names matter


def test_fixed_length_files_of_another_size_or_that_are_cut_are_errors(tmp_path):
    path = write(tmp_path / "a", b"x" * 70)
    with pytest.raises(DataLossError, match="not a multiple of record_bytes=8"):
        FixedLengthRecordDataset(path, 8, index=True)
    dataset = FixedLengthRecordDataset(path, 7, buffer_size=21, index=True)
    assert dataset[9] == b"x" * 7
    os.truncate(path, 30)
    found = outcomes(iter(FixedLengthRecordDataset(path, 10, index=True)))
    assert found == [b"x" * 10] * 3
    with pytest.raises(DataLossError, match="record 4, at byte 28: the file was modified"):
        dataset[4]
