"""Tests of ``verify``: good files, damaged files, and correct counts."""

import zlib

import pytest

from dataset import TFRecordDataset
from support.folders import flip
from support.tfrecord_files import header


def test_good_files(run, write, digits):
    status, out, err = run("verify", digits, write([], "none"), write([b"x"] * 3, "three.gz", "GZIP"))
    assert (status, err) == (0, "")
    lines = [line.split(maxsplit=2) for line in out.splitlines()]
    assert [line[0] for line in lines[:3]] == ["good", "good", "good"]
    assert [line[2].split(",")[0] for line in lines[:3]] == ["20 good records", "0 good records", "3 good records"]
    assert out.splitlines()[3].startswith("3 files: 3 good, 0 damaged; 23 good records")


def test_the_report_says_where_and_what_and_how_much(run, write):
    path = write([b"%04d" % i for i in range(2000)])
    content = bytearray(path.read_bytes())
    content[20 * 1234 + 12] ^= 1
    content[20 * 1500 : 20 * 1500 + 5] = b""
    path.write_bytes(content)
    status, out, _ = run("verify", path)
    assert status == 1
    lines = out.splitlines()
    assert lines[0].startswith("damaged")
    assert lines[1].endswith("first bad record: number 1,234 (from 0), at byte 24,680")
    assert "damage:           the checksum of a record's 4 bytes is wrong" in lines[2]
    assert lines[3].endswith("after it:         764 complete good records")
    assert lines[4].endswith("lost:             35 bytes in 2 places")


def test_a_damaged_file_keeps_no_other_from_its_turn_and_neither_does_a_missing_one(run, write, tmp_path):
    good, bad = write([b"a", b"b"]), write([b"a"])
    bad.write_bytes(bad.read_bytes()[:-1])
    document = run.json("verify", bad, tmp_path / "missing", tmp_path, good, status=2)
    assert [file["good"] for file in document["files"]] == [False, True]
    assert len(document["errors"]) == 2
    assert not document["good"]
    assert run("verify", bad, good)[0] == 1


@pytest.mark.parametrize("size", [0x178, 0x9C78, 0xDA78])
def test_a_damaged_record_whose_length_looks_like_zlib_is_no_stream(run, write, size, tmp_path):
    path = write([bytes(size)] * 3)
    flip(path, 9)
    (file,) = run.json("verify", path, status=1)["files"]
    assert (file["compression"], file["records"]) == ("none", 2)
    assert "ZLIB" not in file["first_damage"]["message"]
    assert run("repair", path, "--output", tmp_path / "b")[0] == 0
    assert list(TFRecordDataset(tmp_path / "b")) == [bytes(size)] * 2
    path.write_bytes(zlib.compress(path.read_bytes())[:-1])
    assert run.json("verify", path, status=1)["files"][0]["compression"] == "zlib"


def test_a_search_that_was_given_up_is_said_to_be(run, tmp_path, monkeypatch):
    from dataset.io.tfrecord.damage import salvage

    monkeypatch.setattr(salvage, "WASTE_BYTES", 0)
    monkeypatch.setattr(salvage, "WASTE_FACTOR", 0)

    path = tmp_path / "hostile"
    path.write_bytes(b"".join(header(max(12 * (197 - i), 0)) for i in range(199)))
    status, out, _ = run("verify", path)
    assert status == 1
    assert "there may be more records" in out
    assert not run.json("verify", path, status=1)["files"][0]["searched_all"]
