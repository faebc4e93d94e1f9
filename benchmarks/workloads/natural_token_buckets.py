"""The natural way: TFRecord -> map(parse one list of token ids) -> bucket_by_sequence_length -> prefetch.

Each library is used as its README shows it, with one Python function per element and AUTOTUNE where there is one. Left
out: the libraries that tfrecord_parse_each.py leaves out, and those that have no buckets or do not verify checksums.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from harness.workload import Again, Pipeline, Workload
from harness_data import checksum_of, digest_of_tokens, example_class, make_token_lists, read_records

BOUNDARIES = [16, 32, 64, 128, 256]
BATCH = 64
SIZES = [BATCH] * (len(BOUNDARIES) + 1)


WORKLOAD = Workload(
    title="The natural way: TFRecord -> map(parse a token list) -> bucket_by_sequence_length -> prefetch",
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
    examples = records.map(load, num_parallel_calls=calls)
    return examples.bucket_by_sequence_length(lambda ids, _: len(ids), BOUNDARIES, SIZES).prefetch(AUTOTUNE)


@WORKLOAD.runner("dataset", settings="map and prefetch with AUTOTUNE")
def dataset_natural(folder: Path) -> Pipeline:
    from dataset import AUTOTUNE

    return dataset(folder, AUTOTUNE)


@WORKLOAD.runner("dataset, sequential map", settings="the same with a sequential map")
def dataset_sequential(folder: Path) -> Pipeline:
    return dataset(folder, None)


@WORKLOAD.runner(
    "tf.data",
    settings="map and prefetch with AUTOTUNE",
    source="https://www.tensorflow.org/api_docs/python/tf/data/Dataset#bucket_by_sequence_length",
)
def tf_data(folder: Path) -> Pipeline:
    import tensorflow as tf

    features = {"ids": tf.io.RaggedFeature(tf.int64), "label": tf.io.FixedLenFeature((), tf.int64)}

    def load(record: Any) -> Any:
        example = tf.io.parse_single_example(record, features)
        return example["ids"], example["label"]

    records = tf.data.TFRecordDataset(str(folder / "data.tfrecord"))
    examples = records.map(load, num_parallel_calls=tf.data.AUTOTUNE)
    batches = examples.bucket_by_sequence_length(lambda ids, _: tf.size(ids), BOUNDARIES, SIZES)
    return Again(batches.prefetch(tf.data.AUTOTUNE).as_numpy_iterator)


@WORKLOAD.runner("numpy", settings="struct, the package crc32c, and protobuf")
def loop(folder: Path) -> Pipeline:
    example_of = example_class().FromString

    def load(record: bytes) -> tuple[np.ndarray, int]:
        feature = example_of(record).features.feature
        return np.array(feature["ids"].int64_list.value, np.int64), feature["label"].int64_list.value[0]

    def padded(batch: list[tuple[np.ndarray, int]]) -> tuple[np.ndarray, np.ndarray]:
        ids, labels = zip(*batch, strict=True)
        rows = np.zeros((len(ids), max(map(len, ids))), np.int64)
        for row, some in zip(rows, ids, strict=True):
            row[: len(some)] = some
        return rows, np.array(labels)

    def epoch() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        buckets: list[list[tuple[np.ndarray, int]]] = [[] for _ in SIZES]
        for example in map(load, read_records(folder / "data.tfrecord")):
            number = bisect.bisect_right(BOUNDARIES, len(example[0]))
            buckets[number].append(example)
            if len(buckets[number]) == SIZES[number]:
                yield padded(buckets[number])
                buckets[number] = []
        yield from map(padded, filter(None, buckets))

    return Again(epoch)


@WORKLOAD.limit("page-cache read and CRC32C of all bytes, on one core")
def checksum(folder: Path) -> int:
    checksum_of(folder / "data.tfrecord")
    return int((folder / "count").read_text())
