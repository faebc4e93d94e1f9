"""Tests of ``repair``: what is intact is written, what is not is listed, and nothing is written otherwise."""

import pytest

from dataset import TFRecordDataset
from support.folders import flip

RECORDS = [b"%04d" % i for i in range(100)]  # each takes 20 bytes in a file


@pytest.fixture
def damaged(write):
    path = write(RECORDS, "damaged.tfrecord")
    content = bytearray(path.read_bytes())
    content[50 * 20 + 13] ^= 1
    content[70 * 20 : 72 * 20] = b""
    content[80 * 20 : 80 * 20] = b"noise"
    path.write_bytes(content)
    return path


def test_intact_records_are_written_and_the_rest_is_listed(run, damaged, tmp_path):
    status, out, err = run("repair", damaged, "--output", tmp_path / "new")
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        f"97 records: {tmp_path / 'new'}",
        "left out: 25 bytes in 2 places",
        "          at byte 1,000: 20 bytes",
        "          at byte 1,600: 5 bytes",
    ]
    kept = [record for i, record in enumerate(RECORDS) if i not in {50, 70, 71}]
    assert list(TFRecordDataset(tmp_path / "new")) == kept
    assert run("verify", tmp_path / "new")[0] == 0
    document = run.json("repair", damaged, "--output", tmp_path / "again")
    verified = run.json("verify", damaged, status=1)["files"][0]
    same = ("damaged_places", "lost_bytes", "searched_all", "stream_damage")
    assert [document[key] for key in same] == [verified[key] for key in same] == [2, 25, True, None]
    assert document["gaps"] == [{"offset": 1000, "bytes": 20}, {"offset": 1600, "bytes": 5}]


def test_a_compressed_stream_that_ends_early(run, write, tmp_path):
    path = write([b"%d" % (i * i) for i in range(5000)], "damaged.gz", "GZIP")
    path.write_bytes(path.read_bytes()[:-2000])
    status, out, _ = run("repair", path, "--output", tmp_path / "new.gz")
    assert status == 0
    assert "everything after the damage of the compressed stream" in out
    kept = list(TFRecordDataset(tmp_path / "new.gz", compression_type="GZIP"))
    assert 0 < len(kept) < 5000
    assert kept == [b"%d" % (i * i) for i in range(len(kept))]
    (file,) = run.json("verify", path, status=1)["files"]
    assert (file["records"], file["records_after"]) == (len(kept), 0)
    assert "is truncated" in file["stream_damage"]
    assert "everything after the damage of the compressed stream" in run("verify", path)[1]


def test_a_good_file_is_copied(run, digits, tmp_path):
    assert "left out: nothing, the file is good" in run("repair", digits, "--output", tmp_path / "new")[1]
    assert (tmp_path / "new").read_bytes() == digits.read_bytes()


def test_many_places_are_counted(run, write, tmp_path):
    path = write(RECORDS, "damaged.tfrecord")
    flip(path, *range(20 + 13, 2000, 40))
    out = run("repair", path, "--output", tmp_path / "new")[1]
    assert out.splitlines()[1] == "left out: 1,000 bytes in 50 places"
    assert out.splitlines()[-1] == "          and 30 more places"


@pytest.mark.parametrize("content", [b"", b"x" * 1000])
def test_without_an_intact_record_nothing_is_written(run, tmp_path, content):
    path = tmp_path / "a"
    path.write_bytes(content)
    if content:
        assert "no record is intact" in run.error("repair", path, "--output", tmp_path / "new", status=1)
        assert [file.name for file in tmp_path.iterdir()] == ["a"]
    else:
        assert run("repair", path, "--output", tmp_path / "new")[0] == 0


def test_several_files_are_refused(run, write, tmp_path):
    write([], "a-1")
    write([], "a-2")
    assert "but 2 match" in run.error("repair", tmp_path / "a-*", "--output", tmp_path / "new")
