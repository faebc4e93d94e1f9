"""The natural way with many files: interleave(TFRecordDataset) -> shuffle(2000) -> map -> batch(128) -> prefetch.

The same as natural_images.py, whose functions it uses, but the records are in 16 files, of which four are read in turn,
with AUTOTUNE. The files are in the page cache. The loop reads one file after another.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.workload import Pipeline, Workload
from harness_data import checksum_of, read_records, write_image_examples

from workloads.natural_images import digest, loaded, loaded_by_hand, loaded_by_tf

FILES = 16
EXAMPLES_EACH = 20_000
CYCLE = 4


def make_data(folder: Path, scale: float) -> None:
    each = max(1, int(EXAMPLES_EACH * scale))
    for name in names(folder):
        write_image_examples(Path(name), each)
    (folder / "count").write_text(str(FILES * each))


def names(folder: Path) -> list[str]:
    return [str(folder / f"data-{number:02}.tfrecord") for number in range(FILES)]


WORKLOAD = Workload(
    title="The natural way, 16 files: interleave(TFRecordDataset) -> shuffle -> map(parse, decode, scale) -> batch",
    make_data=make_data,
    count=lambda batch: len(batch[1]),
    digest=digest,
    unit="Examples",
)


def interleaved(folder: Path, calls: int | None) -> Any:
    from dataset import Dataset, TFRecordDataset

    files = Dataset.from_tensor_slices(names(folder))
    return files.interleave(TFRecordDataset, cycle_length=CYCLE, num_parallel_calls=calls)


@WORKLOAD.runner("dataset", settings="interleave, map and prefetch with AUTOTUNE")
def dataset_natural(folder: Path) -> Pipeline:
    from dataset import AUTOTUNE

    return loaded(interleaved(folder, AUTOTUNE), AUTOTUNE)


@WORKLOAD.runner("dataset, sequential", settings="sequential interleave and map; prefetch(AUTOTUNE)")
def dataset_sequential(folder: Path) -> Pipeline:
    return loaded(interleaved(folder, None), None)


def interleaved_by_tf(folder: Path) -> Any:
    import tensorflow as tf

    files = tf.data.Dataset.from_tensor_slices(names(folder))
    return files.interleave(tf.data.TFRecordDataset, cycle_length=CYCLE, num_parallel_calls=tf.data.AUTOTUNE)


@WORKLOAD.runner(
    "tf.data",
    settings="interleave, map and prefetch with AUTOTUNE",
    source="https://www.tensorflow.org/guide/data_performance",
)
def tf_data(folder: Path) -> Pipeline:
    return loaded_by_tf(interleaved_by_tf(folder), by_batch=False)


@WORKLOAD.runner(
    "tf.data, by batch",
    settings="the same, but batch before a map that parses, decodes and scales whole batches",
    source="https://www.tensorflow.org/guide/data_performance#vectorizing_mapping",
)
def tf_data_by_batch(folder: Path) -> Pipeline:
    return loaded_by_tf(interleaved_by_tf(folder), by_batch=True)


@WORKLOAD.runner("numpy", settings="struct, the package crc32c, and protobuf; one file after another")
def loop(folder: Path) -> Pipeline:
    def records() -> Iterator[bytes]:
        return itertools.chain.from_iterable(map(read_records, map(Path, names(folder))))

    return loaded_by_hand(records)


@WORKLOAD.limit("page-cache read and CRC32C of all bytes, on one core")
def checksum(folder: Path) -> int:
    for name in names(folder):
        checksum_of(Path(name))
    return int((folder / "count").read_text())
