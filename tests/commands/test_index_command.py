"""Tests of ``index``: an index next to each file."""

import gzip
import json
import warnings

import pytest

from dataset import JsonLinesDataset, TextLineDataset, TFRecordDataset, io
from dataset.commands.main import main


def test_an_index_is_written_beside_each_file(run, write, digits):
    other = write([b"a", b"b"])
    status, out, err = run("index", digits, other)
    assert (status, err) == (0, "")
    assert out == f"{digits}.index: 20 records\n{other}.index: 2 records\n"
    with io.TFRecordIndex.open(other) as index:
        assert list(index) == [b"a", b"b"]
    assert len(TFRecordDataset(str(digits), index=True)) == 20


def test_a_file_without_one_keeps_no_other_from_its_own(run, write, tmp_path):
    bad, packed, good = write([b"abc"] * 3), write([b"a"], compression="GZIP"), write([b"a"])
    bad.write_bytes(bad.read_bytes()[:-1])
    document = run.json("index", bad, packed, tmp_path / "missing", good, status=2)
    assert [file["records"] for file in document["files"]] == [None, None, None, 1]
    assert document["files"][0]["damage"]["record"] == 2
    assert len(document["errors"]) == 3
    assert run("index", bad, good)[0] == 1
    assert not bad.with_name(bad.name + ".index").exists()


def test_a_file_that_is_no_index_is_not_overwritten(run, write):
    path = write([b"a"])
    other = path.with_name(path.name + ".index")
    other.write_bytes(b"something else")
    assert "this file exists and is not an index" in run.error("index", path)
    assert other.read_bytes() == b"something else"


def test_indexes_that_a_pattern_matches_are_passed_over(run, write, digits):
    run("index", digits, write([b"a"]))
    document = run.json("info", *sorted(digits.parent.iterdir()))
    assert [file["records"] for file in document["files"]] == [20, 1]
    assert run.json("verify", digits.parent / "*")["good"]
    assert "not a TFRecord file" in run.error("info", f"{digits}.index")


def test_the_format_of_a_file_follows_from_its_name_or_the_option(capsys, tmp_path, digits):
    text, rows, other = (tmp_path / name for name in ("a.txt", "b.jsonl", "c.md"))
    for path in (text, rows, other):
        path.write_bytes(b'{"n": 1}\n\n{"n": 2}\n')
    assert main(["index", str(text), str(tmp_path / "*.jsonl"), str(digits)]) == 0
    out = capsys.readouterr().out
    assert out == f"{text}.index: 3 lines\n{rows}.index: 3 lines\n{digits}.index: 20 records\n"
    assert main(["index", str(other)]) == 2
    assert "not a TFRecord file" in capsys.readouterr().err
    assert main(["index", "--json", "--format", "lines", str(other)]) == 0
    assert json.loads(capsys.readouterr().out)["files"][0]["records"] == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(TextLineDataset(str(other), index=True)) == 3
        assert len(JsonLinesDataset(str(rows), index=True)) == 2


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl"])
def test_a_compressed_text_has_no_index(capsys, tmp_path, name):
    path = tmp_path / name
    path.write_bytes(gzip.compress(b"line\n" * 100))
    assert main(["index", str(path)]) == 2
    assert "a compressed file can't have an index; decompress it first" in capsys.readouterr().err
    assert not path.with_name(f"{name}.index").exists()
