"""Tests of make_batched_features_dataset against tf.data.experimental.make_batched_features_dataset."""

import numpy as np
import pytest
from compare import assert_both_raise, in_both, outcomes_of, refused, same

from dataset import io


@pytest.fixture(scope="module")
def pattern(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")
    for number, size in enumerate([5, 0, 3]):
        with io.TFRecordWriter(folder / f"{number}.tfrecord") as writer:
            for x in range(10 * number, 10 * number + size):
                words = np.array([f"{x}"] * (x % 10 % 3), object)
                writer.write(io.encode_example({"x": x, "w": words, "f": [x / 2, 1.0]}))
    return str(folder / "*.tfrecord")


def build(lib, pattern, names="x", batch_size=3, **options):
    module, make, text = io, io, bytes
    if lib.name != "dataset":
        module, make, text = lib.tf.io, lib.tf.data.experimental, lib.tf.string
    features = {
        "x": module.FixedLenFeature((), np.int64, default_value=-1),
        "f": module.FixedLenFeature((2,), np.float32),
        "w": module.VarLenFeature(text),
        "q": module.FixedLenSequenceFeature((), np.float32, allow_missing=True),
        "r": module.RaggedFeature(text, value_key="w", row_splits_dtype=np.int64),
    }
    options = {"num_epochs": 1, "shuffle": False, **options}
    return make.make_batched_features_dataset(pattern, batch_size, {name: features[name] for name in names}, **options)


OPTIONS = [{}, {"num_epochs": 2}, {"drop_final_batch": True}, {"reader_num_threads": 2}, {"num_epochs": None}]
OPTIONS += [{"parser_num_threads": 1, "prefetch_buffer_size": 1}]
NAMES = {"dense": ("xf", {}), "sparse": ("w", {}), "rows": ("qx", {}), "label": ("xfw", {"label_key": "x"})}
test_batches = same(
    "build(pattern, names[0], **names[1], **options)",
    names=NAMES,
    options=OPTIONS,
    fixture="pattern",
    limit=8,
    cardinality=False,
)
test_ragged = same(
    "build(pattern, 'r', num_epochs=count)",
    count=[1, None],
    fixture="pattern",
    limit=8,
    cardinality=False,
    spec="compatible",
)


def test_shuffled_batches_hold_the_same_examples(pattern):
    def numbers(lib):
        batches = outcomes_of(lib, build(lib, pattern, shuffle=True, shuffle_seed=3))
        return sorted(np.concatenate([batch["x"] for batch in batches]).tolist())

    assert in_both(numbers) == ([0, 1, 2, 3, 4, 20, 21, 22],) * 2


def test_reader_and_its_arguments(pattern):
    def read(lib):
        reader = lib.TFRecordDataset
        built = build(lib, pattern, reader=lambda name, kind: reader(name, kind).take(2), reader_args=[""])
        return [batch["x"].tolist() for batch in outcomes_of(lib, built)]

    assert in_both(read) == ([[0, 1, 20], [21]],) * 2


test_refused = refused(
    {ValueError: [{"label_key": "nothing"}, {"batch_size": 0}], TypeError: [{"reader": 3}]},
    "build(pattern, **case)",
    fixture="pattern",
)


def test_no_file_matches(tmp_path):
    assert_both_raise(lambda lib: list(build(lib, str(tmp_path / "*"))), Exception)
