"""Tests of make_batched_features_dataset against tf.data.experimental.make_batched_features_dataset."""

import numpy as np
import pytest
from compare import assert_both_raise, in_both, outcomes_of, refused, same

from dataset import io

DTYPES = {"x": np.int64, "w": bytes, "f": np.float32}


@pytest.fixture(scope="module")
def pattern(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")
    for number, size in enumerate([5, 0, 3]):
        with io.TFRecordWriter(folder / f"{number}.tfrecord") as writer:
            for i in range(size):
                x = 10 * number + i
                words = [f"{x}"] * (i % 3)
                writer.write(io.encode_example({"x": x, "w": words or np.array([], object), "f": [x / 2, 1.0]}))
    return str(folder / "*.tfrecord")


def features(lib, *names):
    found = lib.tf.io if lib.name != "dataset" else io
    text = lib.tf.string if lib.name != "dataset" else bytes
    made = {
        "x": found.FixedLenFeature((), np.int64, default_value=-1),
        "f": found.FixedLenFeature((2,), np.float32),
        "w": found.VarLenFeature(text),
        "q": found.FixedLenSequenceFeature((), np.float32, allow_missing=True),
        "r": found.RaggedFeature(text, value_key="w", row_splits_dtype=np.int64),
    }
    return {name: made[name] for name in names}


def build(lib, pattern, names, batch_size=3, **options):
    make = io if lib.name == "dataset" else lib.tf.data.experimental
    options = {"num_epochs": 1, "shuffle": False, **options}
    return make.make_batched_features_dataset(pattern, batch_size, features(lib, *names), **options)


NAMES = {
    "dense": (["x", "f"], {}),
    "sparse": (["w"], {}),
    "rows": (["q", "x"], {}),
    "label": (["x", "f", "w"], {"label_key": "x"}),
}
OPTIONS = {
    "one epoch": {},
    "two epochs": {"num_epochs": 2},
    "no rest": {"drop_final_batch": True},
    "two files at once": {"reader_num_threads": 2},
    "threads": {"parser_num_threads": 1, "prefetch_buffer_size": 1},
    "endless": {"num_epochs": None},
}
test_batches = same(
    lambda lib, pattern, names, options: build(lib, pattern, names[0], **names[1], **options),
    NAMES,
    OPTIONS,
    fixture="pattern",
    limit=8,
    cardinality=False,
)
test_ragged = same(
    lambda lib, pattern, options: build(lib, pattern, ["r"], **options),
    [{}, {"num_epochs": None}],
    fixture="pattern",
    limit=8,
    cardinality=False,
    spec="compatible",
)


def test_shuffled_batches_hold_the_same_examples(pattern):
    def numbers(lib):
        batches = outcomes_of(lib, build(lib, pattern, ["x"], shuffle=True, shuffle_seed=3))
        return sorted(np.concatenate([batch["x"] for batch in batches]).tolist())

    ours, theirs = in_both(numbers)
    assert ours == theirs == [0, 1, 2, 3, 4, 20, 21, 22]


def test_reader_and_its_arguments(pattern):
    def read(lib):
        reader = lib.TFRecordDataset
        built = build(lib, pattern, ["x"], reader=lambda name, kind: reader(name, kind).take(2), reader_args=[""])
        return [batch["x"].tolist() for batch in outcomes_of(lib, built)]

    ours, theirs = in_both(read)
    assert ours == theirs == [[0, 1, 20], [21]]


test_refused = refused(
    {
        ValueError: {"label": {"label_key": "nothing"}, "batch size": {"batch_size": 0}},
        TypeError: {"reader": {"reader": 3}},
    },
    lambda lib, pattern, options: build(lib, pattern, ["x"], **options),
    fixture="pattern",
)


def test_no_file_matches(tmp_path):
    assert_both_raise(lambda lib: list(build(lib, str(tmp_path / "*"), ["x"])), Exception)
