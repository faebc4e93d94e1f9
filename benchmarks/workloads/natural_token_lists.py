"""The natural way: TFRecord -> map(parse one list of token ids) -> padded_batch(64) -> prefetch.

Each library is used as its README shows it, with one Python function per element and AUTOTUNE where there is one. Left
out: the libraries that tfrecord_parse_each.py leaves out, and those that do not verify checksums.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from harness.workload import Again, Pipeline, Workload
from harness_data import batches_of, checksum_of, digest_of_tokens, example_class, make_token_lists, read_records

BATCH = 64


WORKLOAD = Workload(
    title="The natural way: TFRecord -> map(parse a token list) -> padded_batch(64) -> prefetch",
    make_data=make_token_lists,
    count=lambda batch: len(batch[1]),
    digest=digest_of_tokens,
    unit="Examples",
)


def dataset(folder: Path, calls: int | None) -> Pipeline:
    from dataset import AUTOTUNE, TFRecordDataset, io

    features = {"ids": io.RaggedFeature(np.int64), "label": io.FixedLenFeature((), np.int64)}

    def load(record: bytes) -> tuple[np.ndarray, np.int64]:
        example = io.parse_single_example(record, features)
        return example["ids"], example["label"]

    records = TFRecordDataset(folder / "data.tfrecord")
    return records.map(load, num_parallel_calls=calls).padded_batch(BATCH).prefetch(AUTOTUNE)


@WORKLOAD.runner("dataset", settings="map and prefetch with AUTOTUNE")
def dataset_natural(folder: Path) -> Pipeline:
    from dataset import AUTOTUNE

    return dataset(folder, AUTOTUNE)


@WORKLOAD.runner("dataset, sequential map", settings="the same with a sequential map")
def dataset_sequential(folder: Path) -> Pipeline:
    return dataset(folder, None)


def parsed_by_tf(folder: Path, *, by_batch: bool) -> Pipeline:
    import tensorflow as tf

    features = {"ids": tf.io.RaggedFeature(tf.int64), "label": tf.io.FixedLenFeature((), tf.int64)}

    def load(record: Any) -> Any:
        example = tf.io.parse_single_example(record, features)
        return example["ids"], example["label"]

    def load_batch(records: Any) -> Any:
        examples = tf.io.parse_example(records, features)
        return examples["ids"].to_tensor(), examples["label"]

    records = tf.data.TFRecordDataset(str(folder / "data.tfrecord"))
    if by_batch:
        batches = records.batch(BATCH).map(load_batch, num_parallel_calls=tf.data.AUTOTUNE)
    else:
        batches = records.map(load, num_parallel_calls=tf.data.AUTOTUNE).padded_batch(BATCH)
    return Again(batches.prefetch(tf.data.AUTOTUNE).as_numpy_iterator)


@WORKLOAD.runner(
    "tf.data",
    settings="map and prefetch with AUTOTUNE",
    source="https://www.tensorflow.org/guide/data_performance",
)
def tf_data(folder: Path) -> Pipeline:
    return parsed_by_tf(folder, by_batch=False)


@WORKLOAD.runner(
    "tf.data, by batch",
    settings="batches before parse_example, to_tensor(); map and prefetch with AUTOTUNE",
    source="https://www.tensorflow.org/guide/data_performance#vectorizing_mapping",
)
def tf_data_by_batch(folder: Path) -> Pipeline:
    return parsed_by_tf(folder, by_batch=True)


@WORKLOAD.runner("numpy", settings="struct, the package crc32c, and protobuf")
def loop(folder: Path) -> Pipeline:
    example_of = example_class().FromString

    def load(record: bytes) -> tuple[np.ndarray, int]:
        feature = example_of(record).features.feature
        return np.array(feature["ids"].int64_list.value, np.int64), feature["label"].int64_list.value[0]

    def epoch() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for batch in batches_of(map(load, read_records(folder / "data.tfrecord")), BATCH):
            ids, labels = zip(*batch, strict=True)
            padded = np.zeros((len(ids), max(map(len, ids))), np.int64)
            for row, some in zip(padded, ids, strict=True):
                row[: len(some)] = some
            yield padded, np.array(labels)

    return Again(epoch)


@WORKLOAD.limit("page-cache read and CRC32C of all bytes, on one core")
def checksum(folder: Path) -> int:
    checksum_of(folder / "data.tfrecord")
    return int((folder / "count").read_text())
