"""Tests of the command line with files written by TensorFlow, and of TensorFlow with files of the command line."""

import json

import numpy as np
import pytest
from compare import oracle

from dataset.commands.main import main

COUNT = 50


@pytest.fixture(params=["", "GZIP", "ZLIB"])
def compression(request):
    return request.param


@pytest.fixture
def written(tmp_path, compression):
    """Return a file of Examples that tf.io.TFRecordWriter wrote, and its records."""
    tf = oracle().tf
    path = str(tmp_path / "written")
    records = []
    with tf.io.TFRecordWriter(path, compression) as writer:
        for i in range(COUNT):
            image = np.full((3 + i % 2, 5, 3), i, np.uint8)
            feature = {
                "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[tf.io.encode_png(image).numpy()])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[i])),
                "box": tf.train.Feature(float_list=tf.train.FloatList(value=[0.1] * (i % 3))),
            }
            record = tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()
            writer.write(record)
            records.append(record)
    return path, records


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
    tf = oracle().tf
    message = tf.train.SequenceExample()
    message.context.feature["id"].int64_list.value.append(7)
    for step in range(3):
        message.feature_lists.feature_list["steps"].feature.add().float_list.value.extend([step, 0.5])
    path = str(tmp_path / "written")
    with tf.io.TFRecordWriter(path) as writer:
        writer.write(message.SerializeToString())
    (record,) = document(capsys, "head", path)["files"][0]["records"]
    assert record["kind"] == "SequenceExample"
    assert record["features"] == {"id": [7]}
    assert record["feature_lists"] == {"steps": [[0.0, 0.5], [1.0, 0.5], [2.0, 0.5]]}


def test_tensorflow_reads_what_split_and_merge_write(written, compression, tmp_path, capsys):
    path, records = written
    tf = oracle().tf
    shards = document(capsys, "split", path, "--num-shards", 4, "--output", tmp_path / "{shard}-of-{num_shards}")
    names = [file["path"] for file in shards["files"]]
    assert list(tf.data.TFRecordDataset(names, compression).as_numpy_iterator()) == records
    document(capsys, "merge", *names, "--output", tmp_path / "merged", "--compression", "none")
    assert list(tf.data.TFRecordDataset(str(tmp_path / "merged")).as_numpy_iterator()) == records
