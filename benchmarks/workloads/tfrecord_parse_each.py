"""TFRecord -> shuffle(2000) -> map(parse one Example) -> batch(128) -> prefetch: 28x28 bytes and a label of each.

Left out: Hugging Face datasets, mlx-data, webdataset, spdl and torchdata.nodes, which have no reader of TFRecord files.
torch has none either, but the package tfrecord is made for its DataLoader.
"""

from __future__ import annotations

from collections.abc import Iterator
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
    start_ray,
    write_image_examples,
)

EXAMPLES = 300_000
BATCH = 128
BUFFER = 2000
NO_CHECKSUMS = "cannot verify checksums"


def make_data(folder: Path, scale: float) -> None:
    """One file, and the index that lets the package tfrecord deal its records out to workers."""
    count = int(EXAMPLES * scale)
    write_image_examples(folder / "data.tfrecord", count)
    (folder / "count").write_text(str(count))


WORKLOAD = Workload(
    title="TFRecord -> shuffle(2000) -> map(parse one) -> batch(128) -> prefetch",
    make_data=make_data,
    count=lambda batch: len(batch["label"] if isinstance(batch, dict) else batch[1]),
    digest=of_images_and_labels,
    unit="Examples",
    notes="Only dataset, tf.data and the loop by hand verify checksums; the others skip that work.",
)


def features_of_dataset() -> dict[str, Any]:
    from dataset import io

    return {"image": io.FixedLenFeature((), bytes), "label": io.FixedLenFeature((), np.int64)}


@WORKLOAD.runner("dataset", settings="map(parse_single_example) in a function of one record, prefetch(AUTOTUNE)")
def dataset(folder: Path) -> Pipeline:
    from dataset import AUTOTUNE, TFRecordDataset, io

    features = features_of_dataset()

    def parse(record: bytes) -> tuple[np.ndarray, np.int64]:
        example = io.parse_single_example(record, features)
        return io.decode_raw(example["image"], np.uint8), example["label"]

    records = TFRecordDataset(folder / "data.tfrecord").shuffle(BUFFER)
    return records.map(parse).batch(BATCH).prefetch(AUTOTUNE)


@WORKLOAD.runner(
    "dataset, vectorized",
    settings="map(ExampleParser), then a function that takes columns, as in the README; prefetch(AUTOTUNE)",
)
def dataset_vectorized(folder: Path) -> Pipeline:
    import dataset
    from dataset import AUTOTUNE, TFRecordDataset, io

    @dataset.vectorized
    def decode(examples: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        return io.decode_raw(examples["image"], np.uint8), examples["label"]

    records = TFRecordDataset(folder / "data.tfrecord").shuffle(BUFFER)
    return records.map(io.ExampleParser(features_of_dataset())).map(decode).batch(BATCH).prefetch(AUTOTUNE)


def parsed_by_tf(folder: Path, calls: int) -> Pipeline:
    import tensorflow as tf

    features = {"image": tf.io.FixedLenFeature((), tf.string), "label": tf.io.FixedLenFeature((), tf.int64)}

    def parse(record: Any) -> Any:
        example = tf.io.parse_single_example(record, features)
        return tf.io.decode_raw(example["image"], tf.uint8), example["label"]

    records = tf.data.TFRecordDataset(str(folder / "data.tfrecord")).shuffle(BUFFER)
    batches = records.map(parse, num_parallel_calls=calls).batch(BATCH)
    return Again(batches.prefetch(tf.data.AUTOTUNE).as_numpy_iterator)


@WORKLOAD.runner(
    "tf.data",
    settings="map and prefetch with AUTOTUNE",
    source="https://www.tensorflow.org/guide/data_performance",
)
def tf_data(folder: Path) -> Pipeline:
    import tensorflow as tf

    return parsed_by_tf(folder, tf.data.AUTOTUNE)


@WORKLOAD.runner(
    "tf.data, 8 calls",
    settings="map with 8 parallel calls, the fastest number that we found on two cores; prefetch(AUTOTUNE)",
    source="https://www.tensorflow.org/guide/data_performance",
)
def tf_data_8(folder: Path) -> Pipeline:
    return parsed_by_tf(folder, 8)


@WORKLOAD.runner(
    "grain, no CRCs",
    settings=f"TFRecordIterDataset, which {NO_CHECKSUMS}; a window shuffle; protobuf; 2 batches ahead in a thread",
    source="https://google-grain.readthedocs.io/",
)
def grain(folder: Path) -> Pipeline:
    import grain

    example_of = example_class().FromString

    def parse(record: bytes) -> tuple[np.ndarray, int]:
        feature = example_of(record).features.feature
        return np.frombuffer(feature["image"].bytes_list.value[0], np.uint8), feature["label"].int64_list.value[0]

    records = grain.experimental.TFRecordIterDataset(str(folder / "data.tfrecord"))
    windows = grain.experimental.WindowShuffleIterDataset(records, window_size=BUFFER, seed=0)
    batches = windows.map(parse).batch(BATCH)
    return grain.experimental.ThreadPrefetchIterDataset(batches, prefetch_buffer_size=2)


def to_arrays(example: dict[str, Any]) -> dict[str, np.ndarray]:
    """What the package tfrecord calls on each Example: its bytes as an array that torch may write to."""
    return {"image": np.frombuffer(bytearray(example["image"]), np.uint8), "label": example["label"]}


def loaded_by_torch(folder: Path, workers: int) -> Pipeline:
    from tfrecord.tools.tfrecord2idx import create_index
    from tfrecord.torch.dataset import TFRecordDataset
    from torch.utils.data import DataLoader

    path, index = str(folder / "data.tfrecord"), None
    if workers:
        index = str(folder / "data.index")
        create_index(path, index)
    description = {"image": "byte", "label": "int"}
    examples = TFRecordDataset(path, index, description, shuffle_queue_size=BUFFER, transform=to_arrays)
    return DataLoader(examples, batch_size=BATCH, num_workers=workers, persistent_workers=workers > 0)


@WORKLOAD.runner(
    "tfrecord, no CRCs",
    settings=f"its TFRecordDataset in torch's DataLoader, no workers; {NO_CHECKSUMS}; batches are tensors",
    source="https://github.com/vahidk/tfrecord",
)
def tfrecord(folder: Path) -> Pipeline:
    return loaded_by_torch(folder, 0)


@WORKLOAD.runner(
    "tfrecord, 2 workers, no CRCs",
    settings=f"the same with an index, which 2 persistent workers share; {NO_CHECKSUMS}; batches are tensors",
    source="https://github.com/vahidk/tfrecord",
)
def tfrecord_workers(folder: Path) -> Pipeline:
    return loaded_by_torch(folder, 2)


def image_arrays(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What Ray runs on batches of its columns: the images' bytes as one array."""
    return {"image": np.stack([np.frombuffer(image, np.uint8) for image in batch["image"]]), "label": batch["label"]}


@WORKLOAD.runner(
    "ray.data, no CRCs",
    settings=f"read_tfrecords, which {NO_CHECKSUMS}; map_batches, local_shuffle_buffer_size=2000",
    source="https://docs.ray.io/en/latest/data/iterating-over-data.html#iterating-over-batches-with-shuffling",
)
def ray_data(folder: Path) -> Pipeline:
    examples = start_ray().read_tfrecords(str(folder / "data.tfrecord")).map_batches(image_arrays, batch_size=None)
    return Again(lambda: examples.iter_batches(batch_size=BATCH, local_shuffle_buffer_size=BUFFER))


@WORKLOAD.runner("numpy", settings="struct, the package crc32c, and protobuf")
def loop(folder: Path) -> Pipeline:
    example_of = example_class().FromString

    def parse(record: bytes) -> tuple[np.ndarray, int]:
        feature = example_of(record).features.feature
        return np.frombuffer(feature["image"].bytes_list.value[0], np.uint8), feature["label"].int64_list.value[0]

    def epoch() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        examples = map(parse, shuffled(read_records(folder / "data.tfrecord"), BUFFER))
        for batch in batches_of(examples, BATCH):
            images, labels = zip(*batch, strict=True)
            yield np.stack(images), np.array(labels)

    return Again(epoch)


@WORKLOAD.limit("page-cache read and CRC32C of all bytes, on one core")
def checksum(folder: Path) -> int:
    checksum_of(folder / "data.tfrecord")
    return int((folder / "count").read_text())
