"""Tests of the command line with files written by TensorFlow, and of TensorFlow with files of the command line."""

import json

import numpy as np
import pytest
from compare import theirs, uncompressed

from dataset.commands.main import main

COUNT = 50


@pytest.fixture(params=["", "GZIP", "ZLIB"])
def compression(request):
    return request.param


@pytest.fixture
def written(tmp_path, compression):
    """Return a file of Examples that tf.io.TFRecordWriter wrote, and its records."""
    path = tmp_path / "written"

    def write(lib):
        train, records = lib.tf.train, []
        for i in range(COUNT):
            image = lib.tf.io.encode_png(np.full((3 + i % 2, 5, 3), i, np.uint8)).numpy()
            feature = {
                "image": train.Feature(bytes_list=train.BytesList(value=[image])),
                "label": train.Feature(int64_list=train.Int64List(value=[i])),
                "box": train.Feature(float_list=train.FloatList(value=[0.1] * (i % 3))),
            }
            example = train.Example(features=train.Features(feature=feature))
            records.append(example.SerializeToString(deterministic=True))
        with lib.tf.io.TFRecordWriter(str(path), compression) as writer:
            for record in records:
                writer.write(record)
        return path.read_bytes(), records

    content, records = theirs(write)
    path.write_bytes(content)
    return str(path), records


def document(capsys, *words):
    assert main(["tfrecord", *map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_info_and_verify_and_head(written, compression, capsys):
    path, records = written
    found = document(capsys, "info", path)
    assert found["files"][0]["compression"] == (compression or "none").lower()
    assert found["total"]["record_bytes"] == sum(map(len, records))
    features = {feature["name"]: feature for feature in found["features"]}
    assert features["image"]["looks"] == {"png": COUNT}
    assert features["image"]["height"] == {"min": 3, "max": 4}
    assert features["box"]["values"] == {"min": 0, "max": 2}
    assert document(capsys, "verify", path)["files"][0]["records"] == COUNT
    head = document(capsys, "head", "-n", COUNT, path)["files"][0]["records"]
    assert [record["features"]["label"] for record in head] == [[i] for i in range(COUNT)]
    assert head[1]["features"]["box"] == [0.1]


def test_sequence_examples(tmp_path, capsys):
    path = tmp_path / "written"

    def write(lib):
        message = lib.tf.train.SequenceExample()
        message.context.feature["id"].int64_list.value.append(7)
        for step in range(3):
            message.feature_lists.feature_list["steps"].feature.add().float_list.value.extend([step, 0.5])
        with lib.tf.io.TFRecordWriter(str(path)) as writer:
            writer.write(message.SerializeToString(deterministic=True))
        return path.read_bytes()

    path.write_bytes(theirs(write))
    (record,) = document(capsys, "head", path)["files"][0]["records"]
    assert record["kind"] == "SequenceExample"
    assert record["features"] == {"id": [7]}
    assert record["feature_lists"] == {"steps": [[0.0, 0.5], [1.0, 0.5], [2.0, 0.5]]}


def test_tensorflow_reads_what_split_and_merge_write(written, compression, tmp_path, capsys):
    path, records = written
    shards = document(capsys, "split", path, "--num-shards", 4, "--output", tmp_path / "{shard}-of-{num_shards}")
    names = [file["path"] for file in shards["files"]]
    assert_tensorflow_reads(names, compression, records)
    document(capsys, "merge", *names, "--output", tmp_path / "merged", "--compression", "none")
    assert_tensorflow_reads([str(tmp_path / "merged")], "", records)


def assert_tensorflow_reads(paths, compression, records):
    def check(lib):
        assert list(lib.TFRecordDataset(paths, compression).as_numpy_iterator()) == records

    theirs(check, [uncompressed(path, compression) for path in paths])
