"""Tests of write_tfrecord against tf.data.experimental.TFRecordWriter and TensorFlow's reader.

That writer is deprecated, writes one file and accepts only scalar strings; tf.data has no other one to compare with.
"""

import warnings
from pathlib import Path

import numpy as np
import pytest
from compare import theirs, uncompressed

from dataset import Dataset, TFRecordDataset

RECORDS = [b"", b"one", b"two\x00", b"\xff" * 300, bytes(100_000), *(b"%d" % i for i in range(500))]


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_the_records_are_those_that_tf_data_writes(tmp_path, compression):
    path = tmp_path / "theirs"

    def written(lib):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            writer = lib.tf.data.experimental.TFRecordWriter(str(path), compression)
            writer.write(lib.from_tensor_slices(RECORDS))
        return path.read_bytes()

    path.write_bytes(theirs(written))
    (ours,) = Dataset.from_tensor_slices(RECORDS).write_tfrecord(tmp_path / "ours", compression=compression)
    if not compression:
        assert Path(ours).read_bytes() == path.read_bytes()
    assert list(TFRecordDataset([ours, path], compression)) == RECORDS * 2
    assert_tf_data_reads([ours], compression)


def assert_tf_data_reads(paths, compression, **arguments):
    def check(lib):
        assert list(lib.TFRecordDataset(paths, compression, **arguments).as_numpy_iterator()) == RECORDS

    theirs(check, [uncompressed(path, compression) for path in paths])


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_shards_that_tf_data_reads_in_turn_are_the_elements_in_order(tmp_path, compression):
    pattern = tmp_path / "train-{shard:05d}-of-{num_shards:05d}.tfrecord"
    paths = Dataset.from_tensor_slices(RECORDS).write_tfrecord(pattern, 7, compression)
    assert_tf_data_reads(paths, compression, num_parallel_reads=7)


def test_examples_that_tensorflow_parses(tmp_path):
    images = np.random.default_rng(0).random((20, 2, 3)).astype(np.float32)
    source = Dataset.from_tensor_slices({"image": images, "label": np.arange(20), "name": [f"n{i}" for i in range(20)]})
    paths = source.write_tfrecord(tmp_path / "{shard}", 3)

    def read(lib):
        features = {
            "image": lib.tf.io.FixedLenFeature((2, 3), lib.tf.float32),
            "label": lib.tf.io.FixedLenFeature((), lib.tf.int64),
            "name": lib.tf.io.FixedLenFeature((), lib.tf.string),
        }
        records = lib.TFRecordDataset(paths, num_parallel_reads=3)
        return list(records.map(lambda record: lib.tf.io.parse_single_example(record, features)).as_numpy_iterator())

    parsed = theirs(read, [uncompressed(path) for path in paths])
    assert [int(element["label"]) for element in parsed] == list(range(20))
    assert [element["name"] for element in parsed] == [b"n%d" % i for i in range(20)]
    assert np.array_equal([element["image"] for element in parsed], images)
