"""TFRecord -> shuffle(2000) -> batch(128) -> parse a batch of Examples at once: 28x28 bytes and a label of each record.

Left out: grain, ray.data and the package tfrecord, which parse Examples one by one (tfrecord_parse_each.py has them);
torch, torchdata.nodes, Hugging Face datasets, mlx-data, webdataset and spdl, which have no reader of TFRecord files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from harness.workload import Again, Pipeline, Workload
from harness_data import (
    batches_of,
    checksum_of,
    example_class,
    of_images_and_labels,
    read_records,
    shuffled,
    write_image_examples,
)

EXAMPLES = 300_000
BATCH = 128
BUFFER = 2000


def make_data(folder: Path, scale: float) -> None:
    count = int(EXAMPLES * scale)
    write_image_examples(folder / "data.tfrecord", count)
    (folder / "count").write_text(str(count))


WORKLOAD = Workload(
    title="TFRecord -> shuffle(2000) -> batch(128) -> parse_example",
    make_data=make_data,
    count=lambda batch: len(batch[1]),
    digest=of_images_and_labels,
    unit="Examples",
)


def parser_of_dataset() -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    from dataset import io

    features = {"image": io.FixedLenFeature((), bytes), "label": io.FixedLenFeature((), np.int64)}

    def parse(records: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        examples = io.parse_example(records, features)
        return io.decode_raw(examples["image"], np.uint8), examples["label"]

    return parse


@WORKLOAD.runner("dataset", settings="map(parse_example) on batches of records")
def dataset(folder: Path) -> Pipeline:
    from dataset import TFRecordDataset

    return TFRecordDataset(folder / "data.tfrecord").shuffle(BUFFER).batch(BATCH).map(parser_of_dataset())


@WORKLOAD.runner("dataset, parallel", settings="the same with map(num_parallel_calls=AUTOTUNE) and prefetch(AUTOTUNE)")
def dataset_parallel(folder: Path) -> Pipeline:
    from dataset import AUTOTUNE, TFRecordDataset

    batches = TFRecordDataset(folder / "data.tfrecord").shuffle(BUFFER).batch(BATCH)
    return batches.map(parser_of_dataset(), num_parallel_calls=AUTOTUNE).prefetch(AUTOTUNE)


@WORKLOAD.runner(
    "tf.data",
    settings="batches before parse_example, as the guide advises for cheap functions; map and prefetch with AUTOTUNE",
    source="https://www.tensorflow.org/guide/data_performance#vectorizing_mapping",
)
def tf_data(folder: Path) -> Pipeline:
    import tensorflow as tf

    features = {"image": tf.io.FixedLenFeature((), tf.string), "label": tf.io.FixedLenFeature((), tf.int64)}

    def parse(records: Any) -> Any:
        examples = tf.io.parse_example(records, features)
        return tf.io.decode_raw(examples["image"], tf.uint8), examples["label"]

    records = tf.data.TFRecordDataset(str(folder / "data.tfrecord")).shuffle(BUFFER)
    batches = records.batch(BATCH).map(parse, num_parallel_calls=tf.data.AUTOTUNE)
    return Again(batches.prefetch(tf.data.AUTOTUNE).as_numpy_iterator)


@WORKLOAD.runner("numpy", settings="struct, the package crc32c, and protobuf: a batch's Examples one after another")
def loop(folder: Path) -> Pipeline:
    example_of = example_class().FromString

    def epoch() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for records in batches_of(shuffled(read_records(folder / "data.tfrecord"), BUFFER), BATCH):
            features = [example_of(record).features.feature for record in records]
            images = b"".join(feature["image"].bytes_list.value[0] for feature in features)
            labels = np.array([feature["label"].int64_list.value[0] for feature in features])
            yield np.frombuffer(images, np.uint8).reshape(len(records), -1), labels

    return Again(epoch)


@WORKLOAD.limit("page-cache read and CRC32C of all bytes, on one core")
def checksum(folder: Path) -> int:
    checksum_of(folder / "data.tfrecord")
    return int((folder / "count").read_text())
