"""The natural way: a loop over the records of a TFRecord file, one at a time, without batches.

Left out: the libraries that tfrecord_raw_crc.py leaves out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harness import digests
from harness.workload import Again, Pipeline, Workload
from harness_data import read_records

from workloads.tfrecord_raw_crc import NO_CHECKSUMS, make_data

WORKLOAD = Workload(
    title="The natural way: for record in TFRecordDataset(file)",
    make_data=make_data,
    count=lambda _: 1,
    digest=lambda record: digests.of_texts([record]),
    unit="records",
    small=0.05,
    notes="Only dataset, tf.data and the loop by hand verify checksums; the others skip that work.",
)


@WORKLOAD.runner("dataset")
def dataset(folder: Path) -> Pipeline:
    from dataset import TFRecordDataset

    return TFRecordDataset(folder / "data.tfrecord")


@WORKLOAD.runner("dataset, prefetch", settings="prefetch(AUTOTUNE): a thread next to an idle consumer")
def dataset_prefetch(folder: Path) -> Pipeline:
    from dataset import AUTOTUNE, TFRecordDataset

    return TFRecordDataset(folder / "data.tfrecord").prefetch(AUTOTUNE)


@WORKLOAD.runner(
    "tf.data",
    settings="prefetch(AUTOTUNE); as_numpy_iterator",
    source="https://www.tensorflow.org/guide/data_performance#prefetching",
)
def tf_data(folder: Path) -> Pipeline:
    import tensorflow as tf

    records = tf.data.TFRecordDataset(str(folder / "data.tfrecord"))
    return Again(records.prefetch(tf.data.AUTOTUNE).as_numpy_iterator)


@WORKLOAD.runner(
    "tf.data, batches taken apart",
    settings="batch(128), prefetch(AUTOTUNE), as_numpy_iterator; the loop takes the records out of each batch",
    source="https://www.tensorflow.org/guide/data_performance#prefetching",
)
def tf_data_batches(folder: Path) -> Pipeline:
    import tensorflow as tf

    batches = tf.data.TFRecordDataset(str(folder / "data.tfrecord")).batch(128).prefetch(tf.data.AUTOTUNE)

    def epoch() -> Iterator[bytes]:
        for batch in batches.as_numpy_iterator():
            yield from batch

    return Again(epoch)


@WORKLOAD.runner(
    "grain, no CRCs",
    settings=f"TFRecordIterDataset, which {NO_CHECKSUMS}",
    source="https://google-grain.readthedocs.io/",
)
def grain(folder: Path) -> Pipeline:
    import grain

    return grain.experimental.TFRecordIterDataset(str(folder / "data.tfrecord"))


@WORKLOAD.runner(
    "tfrecord, no CRCs",
    settings=f"tfrecord_iterator, which {NO_CHECKSUMS}; each view copied to bytes, as the next record overwrites it",
    source="https://github.com/vahidk/tfrecord",
)
def tfrecord(folder: Path) -> Pipeline:
    from tfrecord.reader import tfrecord_iterator

    return Again(lambda: map(bytes, tfrecord_iterator(str(folder / "data.tfrecord"))))


@WORKLOAD.runner("numpy", settings="struct and the package crc32c")
def loop(folder: Path) -> Pipeline:
    return Again(lambda: read_records(folder / "data.tfrecord"))
