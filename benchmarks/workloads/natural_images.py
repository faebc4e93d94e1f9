"""The natural way: TFRecord -> shuffle(2000) -> map(one function that parses and computes) -> batch(128) -> prefetch.

Each library is used as its README shows it, with one Python function per element and AUTOTUNE where there is one. The
function parses an Example, decodes 28x28 bytes, and scales them to floats. For comparison, both do the same by batch,
which is the best form of tf.data. Left out: the libraries that tfrecord_parse_each.py leaves out, and those that do not
verify checksums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from harness import digests
from harness.workload import Again, Pipeline, Workload
from harness_data import batches_of, checksum_of, example_class, read_records, shuffled, write_image_examples

EXAMPLES = 300_000
BATCH = 128
BUFFER = 2000


def make_data(folder: Path, scale: float) -> None:
    count = int(EXAMPLES * scale)
    write_image_examples(folder / "data.tfrecord", count)
    (folder / "count").write_text(str(count))


def digest(batch: Any) -> int:
    """Of the pixels as bytes again, with their labels."""
    images, labels = batch
    assert images.dtype == np.float32
    pixels = np.rint((np.asarray(images) + 0.5) * 255).astype(np.int64)
    return digests.of_rows(np.concatenate([pixels, np.asarray(labels, np.int64)[:, np.newaxis]], axis=1))


WORKLOAD = Workload(
    title="The natural way: TFRecord -> shuffle(2000) -> map(parse, decode, scale) -> batch(128) -> prefetch",
    make_data=make_data,
    count=lambda batch: len(batch[1]),
    digest=digest,
    unit="Examples",
)


def loaded(records: Any, calls: int | None) -> Pipeline:
    """The batches of records that this library has read."""
    from dataset import AUTOTUNE, io

    features = {"image": io.FixedLenFeature((), bytes), "label": io.FixedLenFeature((), np.int64)}

    def load(record: bytes) -> tuple[np.ndarray, np.int64]:
        example = io.parse_single_example(record, features)
        image = io.decode_raw(example["image"], np.uint8)
        return image.astype(np.float32) / 255 - 0.5, example["label"]

    return records.shuffle(BUFFER).map(load, num_parallel_calls=calls).batch(BATCH).prefetch(AUTOTUNE)


@WORKLOAD.runner("dataset", settings="map and prefetch with AUTOTUNE")
def dataset_natural(folder: Path) -> Pipeline:
    from dataset import AUTOTUNE, TFRecordDataset

    return loaded(TFRecordDataset(folder / "data.tfrecord"), AUTOTUNE)


@WORKLOAD.runner("dataset, sequential map", settings="the same with a sequential map")
def dataset_sequential(folder: Path) -> Pipeline:
    from dataset import TFRecordDataset

    return loaded(TFRecordDataset(folder / "data.tfrecord"), None)


@WORKLOAD.runner("dataset, by batch", settings="batch, then a map with AUTOTUNE of whole batches; prefetch(AUTOTUNE)")
def dataset_by_batch(folder: Path) -> Pipeline:
    from dataset import AUTOTUNE, TFRecordDataset, io

    features = {"image": io.FixedLenFeature((), bytes), "label": io.FixedLenFeature((), np.int64)}

    def load(records: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        examples = io.parse_example(records, features)
        images = io.decode_raw(examples["image"], np.uint8)
        return images.astype(np.float32) / 255 - 0.5, examples["label"]

    records = TFRecordDataset(folder / "data.tfrecord").shuffle(BUFFER).batch(BATCH)
    return records.map(load, num_parallel_calls=AUTOTUNE).prefetch(AUTOTUNE)


def loaded_by_tf(records: Any, *, by_batch: bool) -> Pipeline:
    """The batches of records that TensorFlow has read."""
    import tensorflow as tf

    features = {"image": tf.io.FixedLenFeature((), tf.string), "label": tf.io.FixedLenFeature((), tf.int64)}
    parse = tf.io.parse_example if by_batch else tf.io.parse_single_example

    def load(record: Any) -> Any:
        example = parse(record, features)
        image = tf.io.decode_raw(example["image"], tf.uint8)
        return tf.cast(image, tf.float32) / 255 - 0.5, example["label"]

    records = records.shuffle(BUFFER)
    if by_batch:
        batches = records.batch(BATCH).map(load, num_parallel_calls=tf.data.AUTOTUNE)
    else:
        batches = records.map(load, num_parallel_calls=tf.data.AUTOTUNE).batch(BATCH)
    return Again(batches.prefetch(tf.data.AUTOTUNE).as_numpy_iterator)


@WORKLOAD.runner(
    "tf.data",
    settings="map and prefetch with AUTOTUNE",
    source="https://www.tensorflow.org/guide/data_performance",
)
def tf_data(folder: Path) -> Pipeline:
    import tensorflow as tf

    return loaded_by_tf(tf.data.TFRecordDataset(str(folder / "data.tfrecord")), by_batch=False)


@WORKLOAD.runner(
    "tf.data, by batch",
    settings="batch, then a map with AUTOTUNE that parses, decodes and scales whole batches; prefetch(AUTOTUNE)",
    source="https://www.tensorflow.org/guide/data_performance#vectorizing_mapping",
)
def tf_data_by_batch(folder: Path) -> Pipeline:
    import tensorflow as tf

    return loaded_by_tf(tf.data.TFRecordDataset(str(folder / "data.tfrecord")), by_batch=True)


def loaded_by_hand(records: Callable[[], Iterator[bytes]]) -> Pipeline:
    """The batches of records, by a plain loop."""
    example_of = example_class().FromString

    def load(record: bytes) -> tuple[np.ndarray, int]:
        feature = example_of(record).features.feature
        image = np.frombuffer(feature["image"].bytes_list.value[0], np.uint8)
        return image.astype(np.float32) / 255 - 0.5, feature["label"].int64_list.value[0]

    def epoch() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for batch in batches_of(map(load, shuffled(records(), BUFFER)), BATCH):
            images, labels = zip(*batch, strict=True)
            yield np.stack(images), np.array(labels)

    return Again(epoch)


@WORKLOAD.runner("numpy", settings="struct, the package crc32c, and protobuf")
def loop(folder: Path) -> Pipeline:
    return loaded_by_hand(lambda: read_records(folder / "data.tfrecord"))


@WORKLOAD.limit("page-cache read and CRC32C of all bytes, on one core")
def checksum(folder: Path) -> int:
    checksum_of(folder / "data.tfrecord")
    return int((folder / "count").read_text())
