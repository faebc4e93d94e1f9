"""TFRecord -> batch(128) -> parse: Examples of 100 token ids each, as dense int64 of shape (128, 100).

Each id is a varint of up to three bytes, which has to be decoded one by one. Left out: torch, torchdata.nodes, Hugging
Face datasets, mlx-data, webdataset and spdl, which have no reader of TFRecord files.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from harness import digests
from harness.workload import Again, Pipeline, Workload
from harness_data import batches_of, checksum_of, example_class, read_records, start_ray

EXAMPLES = 150_000
IDS = 100
VOCABULARY = 50_000
BATCH = 128
NO_CHECKSUMS = "cannot verify checksums"


def make_data(folder: Path, scale: float) -> None:
    """Ids as frequent as words are: small ones often."""
    from dataset import io

    count = int(EXAMPLES * scale)
    rng = np.random.default_rng(0)
    with io.TFRecordWriter(folder / "data.tfrecord") as writer:
        for start in range(0, count, 1000):
            for ids in (VOCABULARY ** rng.random((min(1000, count - start), IDS))).astype(np.int64):
                writer.write(io.encode_example({"ids": ids}))
    (folder / "count").write_text(str(count))


def ids_of(batch: Any) -> Any:
    return batch["ids"] if isinstance(batch, dict) else batch


def digest(batch: Any) -> int:
    ids = np.asarray(ids_of(batch))
    assert ids.dtype == np.int64
    assert ids.shape[1:] == (IDS,)
    return digests.of_rows(ids)


WORKLOAD = Workload(
    title="TFRecord -> batch(128) -> parse int64 lists of 100 ids",
    make_data=make_data,
    count=lambda batch: len(ids_of(batch)),
    digest=digest,
    unit="Examples",
    notes="Only dataset, tf.data and the loop by hand verify checksums; the others skip that work.",
)


@WORKLOAD.runner("dataset", settings="map(parse_example) on batches of records")
def dataset(folder: Path) -> Pipeline:
    from dataset import TFRecordDataset, io

    features = {"ids": io.FixedLenFeature((IDS,), np.int64)}
    batches = TFRecordDataset(folder / "data.tfrecord").batch(BATCH)
    return batches.map(lambda records: io.parse_example(records, features))


@WORKLOAD.runner("dataset, parallel", settings="the same with map(num_parallel_calls=AUTOTUNE) and prefetch(AUTOTUNE)")
def dataset_parallel(folder: Path) -> Pipeline:
    from dataset import AUTOTUNE, TFRecordDataset, io

    features = {"ids": io.FixedLenFeature((IDS,), np.int64)}
    batches = TFRecordDataset(folder / "data.tfrecord").batch(BATCH)
    parsed = batches.map(lambda records: io.parse_example(records, features), num_parallel_calls=AUTOTUNE)
    return parsed.prefetch(AUTOTUNE)


@WORKLOAD.runner("dataset, ExampleParser", settings="map(ExampleParser) before batch, as in the README")
def dataset_parser(folder: Path) -> Pipeline:
    from dataset import TFRecordDataset, io

    parser = io.ExampleParser({"ids": io.FixedLenFeature((IDS,), np.int64)})
    return TFRecordDataset(folder / "data.tfrecord").map(parser).batch(BATCH)


@WORKLOAD.runner(
    "tf.data",
    settings="batches before parse_example, as the guide advises for cheap functions; map and prefetch with AUTOTUNE",
    source="https://www.tensorflow.org/guide/data_performance#vectorizing_mapping",
)
def tf_data(folder: Path) -> Pipeline:
    import tensorflow as tf

    features = {"ids": tf.io.FixedLenFeature((IDS,), tf.int64)}
    batches = tf.data.TFRecordDataset(str(folder / "data.tfrecord")).batch(BATCH)
    parsed = batches.map(lambda batch: tf.io.parse_example(batch, features), num_parallel_calls=tf.data.AUTOTUNE)
    return Again(parsed.prefetch(tf.data.AUTOTUNE).as_numpy_iterator)


@WORKLOAD.runner(
    "grain, no CRCs",
    settings=f"TFRecordIterDataset, which {NO_CHECKSUMS}; map with protobuf; prefetch of 2 batches in a thread",
    source="https://google-grain.readthedocs.io/",
)
def grain(folder: Path) -> Pipeline:
    import grain

    example_of = example_class().FromString

    def parse(record: bytes) -> np.ndarray:
        return np.array(example_of(record).features.feature["ids"].int64_list.value, np.int64)

    records = grain.experimental.TFRecordIterDataset(str(folder / "data.tfrecord"))
    return grain.experimental.ThreadPrefetchIterDataset(records.map(parse).batch(BATCH), prefetch_buffer_size=2)


def loaded_by_torch(folder: Path, workers: int) -> Pipeline:
    from tfrecord.tools.tfrecord2idx import create_index
    from tfrecord.torch.dataset import TFRecordDataset
    from torch.utils.data import DataLoader

    path, index = str(folder / "data.tfrecord"), None
    if workers:
        index = str(folder / "data.index")
        create_index(path, index)
    examples = TFRecordDataset(path, index, {"ids": "int"})
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


def dense(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What Ray runs on batches of its columns: lists of ids as one array."""
    return {"ids": np.stack(batch["ids"])}


@WORKLOAD.runner(
    "ray.data, no CRCs",
    settings=f"read_tfrecords, which {NO_CHECKSUMS}; map_batches makes one array of the lists",
    source="https://docs.ray.io/en/latest/data/loading-data.html#reading-files",
)
def ray_data(folder: Path) -> Pipeline:
    examples = start_ray().read_tfrecords(str(folder / "data.tfrecord")).map_batches(dense, batch_size=None)
    return Again(lambda: examples.iter_batches(batch_size=BATCH))


@WORKLOAD.runner("numpy", settings="struct, the package crc32c, and protobuf")
def loop(folder: Path) -> Pipeline:
    example_of = example_class().FromString

    def epoch() -> Iterator[np.ndarray]:
        for records in batches_of(read_records(folder / "data.tfrecord"), BATCH):
            yield np.array([example_of(record).features.feature["ids"].int64_list.value for record in records])

    return Again(epoch)


@WORKLOAD.limit("page-cache read and CRC32C of all bytes, on one core")
def checksum(folder: Path) -> int:
    checksum_of(folder / "data.tfrecord")
    return int((folder / "count").read_text())
