"""Tests of write_tfrecord against tf.data.experimental.TFRecordWriter and TensorFlow's reader.

That writer is deprecated, writes one file and accepts only scalar strings; tf.data has no other one to compare with.
"""

import warnings
from pathlib import Path

import numpy as np
import pytest
from compare import oracle

from dataset import Dataset, TFRecordDataset

RECORDS = [b"", b"one", b"two\x00", b"\xff" * 300, bytes(100_000), *(b"%d" % i for i in range(500))]


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_the_records_are_those_that_tf_data_writes(tmp_path, compression):
    tf = oracle().tf
    theirs = str(tmp_path / "theirs")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        writer = tf.data.experimental.TFRecordWriter(theirs, compression)
        writer.write(tf.data.Dataset.from_tensor_slices(RECORDS))
    (ours,) = Dataset.from_tensor_slices(RECORDS).write_tfrecord(tmp_path / "ours", compression=compression)
    if not compression:
        assert Path(ours).read_bytes() == Path(theirs).read_bytes()
    assert list(TFRecordDataset([ours, theirs], compression)) == RECORDS * 2
    assert list(tf.data.TFRecordDataset([ours, theirs], compression).as_numpy_iterator()) == RECORDS * 2


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_shards_that_tf_data_reads_in_turn_are_the_elements_in_order(tmp_path, compression):
    tf = oracle().tf
    pattern = tmp_path / "train-{shard:05d}-of-{num_shards:05d}.tfrecord"
    paths = Dataset.from_tensor_slices(RECORDS).write_tfrecord(pattern, 7, compression)
    read = tf.data.TFRecordDataset(paths, compression, num_parallel_reads=7)
    assert list(read.as_numpy_iterator()) == RECORDS


def test_examples_that_tensorflow_parses(tmp_path):
    tf = oracle().tf
    images = np.random.default_rng(0).random((20, 2, 3)).astype(np.float32)
    source = Dataset.from_tensor_slices({"image": images, "label": np.arange(20), "name": [f"n{i}" for i in range(20)]})
    paths = source.write_tfrecord(tmp_path / "{shard}", 3)
    features = {
        "image": tf.io.FixedLenFeature((2, 3), tf.float32),
        "label": tf.io.FixedLenFeature((), tf.int64),
        "name": tf.io.FixedLenFeature((), tf.string),
    }
    read = tf.data.TFRecordDataset(paths, num_parallel_reads=3)
    parsed = list(read.map(lambda record: tf.io.parse_single_example(record, features)).as_numpy_iterator())
    assert [int(element["label"]) for element in parsed] == list(range(20))
    assert [element["name"] for element in parsed] == [b"n%d" % i for i in range(20)]
    assert np.array_equal([element["image"] for element in parsed], images)
