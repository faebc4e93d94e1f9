"""make_batched_features_dataset on its own. tests/oracle compares its batches with tf.data's."""

import numpy as np
import pytest

from dataset import Dataset, ParseError, io
from dataset.testing import check_operator

FEATURES = {"x": io.FixedLenFeature((), np.int64), "w": io.RaggedFeature(bytes)}


@pytest.fixture
def pattern(tmp_path):
    for number in range(3):
        with io.TFRecordWriter(tmp_path / f"{number}.tfrecord", "GZIP") as writer:
            for i in range(5):
                writer.write(io.encode_example({"x": 10 * number + i, "w": ["a"] * (i + 1)}))
    return str(tmp_path / "*.tfrecord")


def batches(pattern, **options):
    options = {"reader_args": ["GZIP"], "num_epochs": 2, "shuffle_seed": 1, **options}
    return io.make_batched_features_dataset(pattern, 4, FEATURES, **options)


@pytest.mark.parametrize("threads", [1, 2, -1])
def test_it_is_resumed_exactly(pattern, threads):
    expected = list(batches(pattern, reader_num_threads=threads))
    assert sorted(np.concatenate([batch["x"] for batch in expected]).tolist()) == sorted(
        [10 * number + i for number in range(3) for i in range(5)] * 2
    )
    check_operator(lambda: batches(pattern, reader_num_threads=threads), expected, positions=3)


def test_a_record_that_cannot_be_parsed_takes_the_place_of_its_batch(pattern):
    reader = lambda name: Dataset.from_list([b"", io.encode_example({"x": 1})])
    iterator = iter(io.make_batched_features_dataset(pattern, 1, FEATURES, reader, num_epochs=1, shuffle=False))
    with pytest.raises(ParseError):
        next(iterator)
    assert next(iterator)["x"].tolist() == [1]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"label_key": "y"}, ValueError, r"label_key must be one of the features \['x', 'w'\], got 'y'"),
        ({"shuffle": 1}, TypeError, "shuffle must be True or False"),
        ({"reader_num_threads": 0}, ValueError, "make_batched_features_dataset"),
    ],
)
def test_arguments_are_checked(pattern, options, error, words):
    with pytest.raises(error, match=words):
        batches(pattern, **options)
