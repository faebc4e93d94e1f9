"""TFRecord -> batch(128): records of 830 bytes as they are, both checksums of each verified.

Left out, because records are not what they give: ray.data, whose reader always parses Examples; Hugging Face datasets,
mlx-data, webdataset and spdl, which have no reader of TFRecord files. torch has none either but that of the package
tfrecord.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from harness import digests
from harness.workload import Again, Pipeline, Workload
from harness_data import batches_of, checksum_of, objects, read_records, read_through, write_image_examples

RECORDS = 300_000
BATCH = 128
NO_CHECKSUMS = "cannot verify checksums"


def make_data(folder: Path, scale: float) -> None:
    count = int(RECORDS * scale)
    write_image_examples(folder / "data.tfrecord", count)
    (folder / "count").write_text(str(count))


WORKLOAD = Workload(
    title="TFRecord -> batch(128), raw records with both CRCs",
    make_data=make_data,
    count=len,
    digest=digests.of_texts,
    unit="records",
    notes="Only dataset, tf.data and the loop by hand verify checksums; the others skip that work.",
)


@WORKLOAD.runner("dataset")
def dataset(folder: Path) -> Pipeline:
    from dataset import TFRecordDataset

    return TFRecordDataset(folder / "data.tfrecord").batch(BATCH)


@WORKLOAD.runner("dataset, prefetch", settings="prefetch(AUTOTUNE): a thread next to an idle consumer")
def dataset_prefetch(folder: Path) -> Pipeline:
    from dataset import AUTOTUNE, TFRecordDataset

    return TFRecordDataset(folder / "data.tfrecord").batch(BATCH).prefetch(AUTOTUNE)


@WORKLOAD.runner(
    "tf.data", settings="prefetch(AUTOTUNE)", source="https://www.tensorflow.org/guide/data_performance#prefetching"
)
def tf_data(folder: Path) -> Pipeline:
    import tensorflow as tf

    records = tf.data.TFRecordDataset(str(folder / "data.tfrecord"))
    return Again(records.batch(BATCH).prefetch(tf.data.AUTOTUNE).as_numpy_iterator)


@WORKLOAD.runner(
    "tf.data, 8 MiB buffer",
    settings="buffer_size of 8 MiB, batch(num_parallel_calls=AUTOTUNE), prefetch(AUTOTUNE)",
    source="https://www.tensorflow.org/api_docs/python/tf/data/TFRecordDataset",
)
def tf_data_buffer(folder: Path) -> Pipeline:
    import tensorflow as tf

    records = tf.data.TFRecordDataset(str(folder / "data.tfrecord"), buffer_size=8 << 20)
    batches = records.batch(BATCH, num_parallel_calls=tf.data.AUTOTUNE)
    return Again(batches.prefetch(tf.data.AUTOTUNE).as_numpy_iterator)


@WORKLOAD.runner(
    "grain, no CRCs",
    settings=f"TFRecordIterDataset, which {NO_CHECKSUMS}; batches are lists of bytes",
    source="https://google-grain.readthedocs.io/",
)
def grain(folder: Path) -> Pipeline:
    import grain

    records = grain.experimental.TFRecordIterDataset(str(folder / "data.tfrecord"))
    return records.batch(BATCH, batch_fn=list)


@WORKLOAD.runner(
    "tfrecord, no CRCs",
    settings=f"tfrecord_iterator, which {NO_CHECKSUMS}; each view copied to bytes, as the next record overwrites it",
    source="https://github.com/vahidk/tfrecord",
)
def tfrecord(folder: Path) -> Pipeline:
    from tfrecord.reader import tfrecord_iterator

    def epoch() -> Iterator[list[bytes]]:
        return batches_of(map(bytes, tfrecord_iterator(str(folder / "data.tfrecord"))), BATCH)

    return Again(epoch)


@WORKLOAD.runner(
    "torchdata.nodes, no CRCs",
    settings=f"IterableWrapper of the package tfrecord's iterator, which {NO_CHECKSUMS}; Batcher, no thread",
    source="https://pytorch.org/data/0.11/getting_started_with_torchdata_nodes.html",
)
def torchdata_nodes(folder: Path) -> Pipeline:
    from tfrecord.reader import tfrecord_iterator
    from torchdata.nodes import Batcher, IterableWrapper, Loader

    records = Again(lambda: map(bytes, tfrecord_iterator(str(folder / "data.tfrecord"))))
    return Loader(Batcher(IterableWrapper(records), BATCH, drop_last=False))


@WORKLOAD.runner("numpy", settings="struct and the package crc32c")
def loop(folder: Path) -> Pipeline:
    def epoch() -> Iterator[np.ndarray]:
        return map(objects, batches_of(read_records(folder / "data.tfrecord"), BATCH))

    return Again(epoch)


@WORKLOAD.limit("page-cache read")
def page_cache(folder: Path) -> int:
    read_through(folder / "data.tfrecord")
    return int((folder / "count").read_text())


@WORKLOAD.limit("page-cache read and CRC32C of all bytes, on one core")
def checksum(folder: Path) -> int:
    checksum_of(folder / "data.tfrecord")
    return int((folder / "count").read_text())
