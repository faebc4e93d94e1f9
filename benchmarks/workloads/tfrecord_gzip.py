"""TFRecord -> GZIP -> batch(128): the records of a compressed file as they are, both checksums of each verified.

Left out: grain, whose reader of TFRecord files knows no compression; ray.data, whose reader always parses Examples;
torch, torchdata.nodes, Hugging Face datasets, mlx-data, webdataset and spdl, which have no reader of TFRecord files.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from harness import digests
from harness.workload import Again, Pipeline, Workload
from harness_data import batches_of, chunks_of, objects, read_records, write_image_examples

RECORDS = 120_000
BATCH = 128


def make_data(folder: Path, scale: float) -> None:
    count = int(RECORDS * scale)
    write_image_examples(folder / "data.tfrecord.gz", count, "GZIP")
    (folder / "count").write_text(str(count))


WORKLOAD = Workload(
    title="TFRecord -> GZIP -> batch(128), raw records with both CRCs",
    make_data=make_data,
    count=len,
    digest=digests.of_texts,
    unit="records",
    notes="The package tfrecord does not verify record checksums; all verify GZIP's own checksum.",
)


@WORKLOAD.runner("dataset", settings="with the extra gzip, which decompresses with isal")
def dataset(folder: Path) -> Pipeline:
    from dataset import TFRecordDataset

    return TFRecordDataset(folder / "data.tfrecord.gz", "GZIP").batch(BATCH)


@WORKLOAD.runner("dataset, prefetch", settings="the same with prefetch(AUTOTUNE)")
def dataset_prefetch(folder: Path) -> Pipeline:
    from dataset import AUTOTUNE, TFRecordDataset

    return TFRecordDataset(folder / "data.tfrecord.gz", "GZIP").batch(BATCH).prefetch(AUTOTUNE)


@WORKLOAD.runner("dataset, zlib", settings="without that extra")
def dataset_zlib(folder: Path) -> Pipeline:
    from dataset import TFRecordDataset
    from dataset.io.files import compression

    compression.quick_library = lambda: None  # what it returns where isal is not installed
    return TFRecordDataset(folder / "data.tfrecord.gz", "GZIP").batch(BATCH)


@WORKLOAD.runner(
    "tf.data",
    settings='compression_type="GZIP", prefetch(AUTOTUNE)',
    source="https://www.tensorflow.org/api_docs/python/tf/data/TFRecordDataset",
)
def tf_data(folder: Path) -> Pipeline:
    import tensorflow as tf

    records = tf.data.TFRecordDataset(str(folder / "data.tfrecord.gz"), "GZIP")
    return Again(records.batch(BATCH).prefetch(tf.data.AUTOTUNE).as_numpy_iterator)


@WORKLOAD.runner(
    "tf.data, 8 MiB buffer",
    settings="buffer_size of 8 MiB, batch(num_parallel_calls=AUTOTUNE), prefetch(AUTOTUNE)",
    source="https://www.tensorflow.org/api_docs/python/tf/data/TFRecordDataset",
)
def tf_data_buffer(folder: Path) -> Pipeline:
    import tensorflow as tf

    records = tf.data.TFRecordDataset(str(folder / "data.tfrecord.gz"), "GZIP", 8 << 20)
    batches = records.batch(BATCH, num_parallel_calls=tf.data.AUTOTUNE)
    return Again(batches.prefetch(tf.data.AUTOTUNE).as_numpy_iterator)


@WORKLOAD.runner(
    "tfrecord, no CRCs",
    settings="tfrecord_iterator, which does not verify record checksums, and first inflates the file for its length",
    source="https://github.com/vahidk/tfrecord",
)
def tfrecord(folder: Path) -> Pipeline:
    from tfrecord.reader import tfrecord_iterator

    path = str(folder / "data.tfrecord.gz")

    def epoch() -> Iterator[list[bytes]]:
        return batches_of(map(bytes, tfrecord_iterator(path, compression_type="gzip")), BATCH)

    return Again(epoch)


@WORKLOAD.runner("numpy", settings="gzip, struct and the package crc32c")
def loop(folder: Path) -> Pipeline:
    def epoch() -> Iterator[np.ndarray]:
        return map(objects, batches_of(read_records(folder / "data.tfrecord.gz", "GZIP"), BATCH))

    return Again(epoch)


def inflated(folder: Path, decompressor: Any) -> int:
    """All that the file holds, 1 MiB at a time."""
    for chunk in chunks_of(folder / "data.tfrecord.gz"):
        decompressor.decompress(chunk)
    return int((folder / "count").read_text())


@WORKLOAD.limit("inflate by zlib, on one core")
def zlib_alone(folder: Path) -> int:
    import zlib

    return inflated(folder, zlib.decompressobj(31))


@WORKLOAD.limit("inflate by isal, on one core")
def isal_alone(folder: Path) -> int:
    from isal import isal_zlib

    return inflated(folder, isal_zlib.decompressobj(31))
