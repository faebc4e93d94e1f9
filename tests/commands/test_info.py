"""Tests of ``info``: counts, sizes and features."""

import gzip

import numpy as np
import pytest

from dataset import io
from dataset.commands import info
from support.folders import flip


def features(document):
    return {feature["name"]: feature for feature in document["features"]}


def test_the_output_is_a_table_of_files_and_one_of_features(run, digits, monkeypatch):
    monkeypatch.chdir(digits.parent)
    status, out, err = run("info", digits.name)
    assert (status, err) == (0, "")
    assert (
        out
        == """\
FILE        RECORDS    BYTES  COMPRESSION  SMALLEST    MEAN  LARGEST
0.tfrecord       20  1.80 kB  none             63 B  74.2 B     86 B

tf.train.Example: all 20 records.

FEATURE  KIND      IN  VALUES  CONTENT
label    int64    all  1       0 to 9
note     bytes  50.0%  1       text such as "number 1", 8 B to 9 B
pixels   bytes    all  1       raw bytes, 4 B each
weights  float    all  2       0 to 19
"""
    )


def test_the_json_document_has_every_number(run, digits):
    document = run.json("info", digits)
    (file,) = document["files"]
    lengths = [len(record) for record in io.TFRecordIndex.build(digits)]
    assert file == {
        "path": str(digits),
        "bytes": digits.stat().st_size,
        "compression": "none",
        "records": 20,
        "exact": True,
        "record_bytes": sum(lengths),
        "smallest": min(lengths),
        "mean": sum(lengths) / 20,
        "largest": max(lengths),
        "damage": None,
    }
    assert document["sample"] == {"records": 20, "all": True, "kinds": {"Example": 20}}
    found = features(document)
    assert list(found) == ["label", "note", "pixels", "weights"]
    assert (found["note"]["records"], found["note"]["looks"]) == (10, {"text": 10})
    assert found["pixels"]["bytes"] == {"min": 4, "max": 4}
    assert found["label"]["numbers"] == {"min": 0, "max": 9}
    assert found["weights"]["values"] == {"min": 2, "max": 2}
    assert found["weights"]["numbers"] == {"min": 0, "max": 19}


def test_files_are_summed_up(run, write):
    document = run.json("info", write([b"a"]), write([b"abc", b"ab"], compression="GZIP"), write([]))
    total = document["total"]
    assert (total["records"], total["record_bytes"], total["smallest"], total["largest"]) == (3, 6, 1, 3)
    assert document["files"][2]["smallest"] is document["files"][2]["mean"] is None


def test_files_share_the_sample_and_all_their_records_are_counted(run, write):
    path = write({"number": i} for i in range(50))
    document = run.json("info", path, "--sample", "7")
    assert document["sample"]["records"] == 7
    assert not document["sample"]["all"]
    assert (document["files"][0]["records"], document["files"][0]["exact"]) == (50, True)
    assert features(document)["number"]["numbers"] == {"min": 0, "max": 6}
    assert features(run.json("info", path, "--all"))["number"]["numbers"] == {"min": 0, "max": 49}
    paths = [write([{"a": 1}] * 10), write([{"b": 1}] * 10)]
    found = features(run.json("info", *paths, "--sample", "8"))
    assert {name: feature["records"] for name, feature in found.items()} == {"a": 4, "b": 4}


@pytest.mark.parametrize("compression", [None, "GZIP"])
def test_quick_numbers_say_that_they_are_estimates(run, write, compression):
    rng = np.random.default_rng(0)
    path = write((rng.bytes(1000) for _ in range(3000)), compression=compression)
    (file,) = run.json("info", path, "--quick", "--sample", "500")["files"]
    assert not file["exact"]
    assert file["records"] == pytest.approx(3000, rel=0.3)
    assert "about " in run("info", path, "--quick", "--sample", "500")[1]
    assert run.json("info", path, "--quick", "--sample", "5000")["files"][0]["exact"]


def test_large_records_end_the_sample(run, write, monkeypatch):
    monkeypatch.setattr(info, "SAMPLE_BYTES_MAX", 1000)
    document = run.json("info", write([bytes(400_000)] * 5))
    assert document["sample"]["records"] < 5
    assert document["files"][0]["records"] == 5


def test_pictures_are_recognized_by_their_headers(run, write):
    pytest.importorskip("cv2")
    images = [np.zeros((10 + i, 20, 3), np.uint8) for i in range(4)]
    path = write({"image": io.encode_jpeg(image) if i else io.encode_png(image)} for i, image in enumerate(images))
    found = features(run.json("info", path))["image"]
    assert found["looks"] == {"jpeg": 3, "png": 1}
    assert (found["width"], found["height"]) == ({"min": 20, "max": 20}, {"min": 10, "max": 13})
    assert "JPEG 20 x 10-13 (75%), PNG 20 x 10-13 (25%)" in run("info", path)[1]


def test_feature_lists_have_steps(run, sequences):
    document = run.json("info", sequences)
    assert document["sample"]["kinds"] == {"SequenceExample": 4}
    tokens = features(document)["tokens"]
    assert tokens["feature_list"]
    assert (tokens["steps"], tokens["values"]) == ({"min": 1, "max": 4}, {"min": 2, "max": 2})
    assert "1 to 4 steps of 2" in run("info", sequences)[1]


def test_a_feature_may_have_several_kinds_or_none_and_numbers_that_are_not_finite(run, write):
    path = write([{"x": 1}, {"x": b"a"}, {"x": []}])
    assert features(run.json("info", path))["x"]["kinds"] == {"int64": 1, "bytes": 1, "none": 1}
    path = write([{"x": np.array([np.nan, np.inf, 1.5], np.float32)}])
    found = features(run.json("info", path))["x"]
    assert (found["numbers"], found["not_finite"]) == ({"min": 1.5, "max": 1.5}, 2)


def test_damage_is_reported_and_the_records_before_it_are_counted(run, write):
    path = write([b"%d" % i for i in range(10)])
    flip(path, 17 * 4 + 3)  # in the length of record 4
    status, out, err = run("info", path)
    assert status == 1
    assert ">= 4" in out
    assert f"{path}, record 4, at byte 68: the checksum of a record's length is wrong" in err
    document = run.json("info", path, status=1)
    assert not document["files"][0]["exact"]
    assert document["files"][0]["damage"]["record"] == 4
    path = write([b"%d" % i for i in range(10)])
    flip(path, 17 * 4 + 12)  # in its data, so that later records can be counted
    (file,) = run.json("info", path, status=1)["files"]
    assert (file["records"], file["exact"], file["damage"]["record"]) == (10, True, 4)


def test_a_truncated_gzip_file_is_damaged_and_one_of_text_is_not_a_tfrecord_file(run, write, tmp_path):
    path = write([{"x": i} for i in range(1000)], compression="GZIP")
    path.write_bytes(path.read_bytes()[:-1000])
    status, _, err = run("info", path)
    assert status == 1
    assert "is truncated" in err
    text = tmp_path / "a.gz"
    text.write_bytes(gzip.compress(b"only some text, but compressed"))
    assert "not a TFRecord file: it starts, decompressed, with b'only some te'" in run.error("info", text)


def test_hostile_names_are_bounded_and_escaped(run, write):
    path = write({f"\x1b]0;{i}-{j}\x07\u202e": j for j in range(100)} for i in range(20))
    status, out, _ = run("info", path)
    assert status == 0
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "\\x1b]0;0-0\\x07\\u202e" in out
    assert "... and 1,000 more" in out
    assert len(run.json("info", path)["features"]) == 1000
