"""TFRecord files: reading GZIP ones, reading damaged ones, writing shards.

    python benchmarks/studies/files_tfrecord.py [--runs 9] [--only TEXT]

tf.data reads with ``prefetch(AUTOTUNE)``, as its guide recommends; its inflating is part of that. It has no way to
write a dataset to shards but a loop with ``tf.io.TFRecordWriter``, which is ``loop`` here. ``dataset`` uses isal where
that is installed (the extra ``gzip``); ``dataset, zlib`` is the same without it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from side_by_side import Suite

EXAMPLES = 60_000
LARGE = 400
BATCH = 128
SHARDS = 16


def digits(rng: np.random.Generator) -> np.ndarray:
    """An image of 784 bytes of which four in five are 0, as in MNIST, so that it can be compressed."""
    image = rng.integers(0, 256, 784, np.uint8)
    image[rng.random(784) > 0.19] = 0
    return image


def make_data(folder: Path) -> None:
    from dataset import io

    rng = np.random.default_rng(0)
    small = [io.encode_example({"image": digits(rng).tobytes(), "label": i % 10}) for i in range(EXAMPLES)]
    large = [io.encode_example({"image": rng.bytes(100_000), "label": i % 10}) for i in range(LARGE)]
    noisy = [io.encode_example({"image": rng.integers(0, 16, 100_000, np.uint8).tobytes()}) for i in range(LARGE)]
    for name, records in (("small", small), ("large", large), ("noisy", noisy)):
        for compression in ("", "GZIP"):
            with io.TFRecordWriter(folder / f"{name}{compression}", compression) as writer:
                writer.write_all(records)


SUITE = Suite(__doc__, make_data)
workload = SUITE.workload


def count(elements: Any) -> int:
    """How many come, batches or records."""
    return sum(1 for _ in elements)


# GZIP files

GZIP = {
    "small": "GZIP, Examples of 800 bytes",
    "large": "GZIP, records of 100 kB, random bytes",
    "noisy": "GZIP, records of 100 kB, half as large compressed",
}


def batched_dataset(path: Path, compression: str, **arguments: Any) -> int:
    from dataset import TFRecordDataset

    return count(TFRecordDataset(path, compression, **arguments).batch(BATCH))


def single_dataset(path: Path, compression: str) -> int:
    from dataset import TFRecordDataset

    return count(TFRecordDataset(path, compression))


def without_isal(run: Callable[[], int]) -> int:
    from dataset.io.files import compression

    quick = compression.quick_library
    compression.quick_library = lambda: None
    try:
        return run()
    finally:
        compression.quick_library = quick


def batched_tf(path: Path, compression: str) -> int:
    import tensorflow as tf

    dataset = tf.data.TFRecordDataset(str(path), compression).batch(BATCH).prefetch(tf.data.AUTOTUNE)
    return count(dataset.as_numpy_iterator())


def single_tf(path: Path, compression: str) -> int:
    import tensorflow as tf

    dataset = tf.data.TFRecordDataset(str(path), compression).prefetch(tf.data.AUTOTUNE)
    return count(dataset.as_numpy_iterator())


def register_gzip(file: str, title: str) -> None:
    runners = {
        f"{title}, batch({BATCH})": (batched_dataset, batched_tf),
        f"{title}, one by one": (single_dataset, single_tf),
    }
    for name, (ours, theirs) in runners.items():
        workload(name, "dataset")(lambda folder, run=ours: run(folder / f"{file}GZIP", "GZIP"))
        workload(name, "dataset, zlib")(
            lambda folder, run=ours: without_isal(lambda: run(folder / f"{file}GZIP", "GZIP"))
        )
        workload(name, "tf.data")(lambda folder, run=theirs: run(folder / f"{file}GZIP", "GZIP"))


for key, words in GZIP.items():
    register_gzip(key, words)


# Passing over damage, of which there is none: what asking for it costs

SKIP = f"uncompressed, Examples of 800 bytes, batch({BATCH})"
workload(SKIP, "dataset")(lambda folder: batched_dataset(folder / "small", ""))
workload(SKIP, "on_error=skip")(lambda folder: batched_dataset(folder / "small", "", on_error="skip"))
workload(SKIP, "tf.data")(lambda folder: batched_tf(folder / "small", ""))


# Writing

WRITE = f"{EXAMPLES} records of 800 bytes into {SHARDS} shards"
NAMES = "{shard:05d}-of-{num_shards:05d}"


@workload(WRITE, "dataset")
def write_dataset(folder: Path) -> int:
    from dataset import TFRecordDataset

    return len(TFRecordDataset(folder / "small").write_tfrecord(folder / f"a-{NAMES}", SHARDS))


@workload(WRITE, "loop")
def write_loop(folder: Path) -> int:
    import tensorflow as tf

    names = [str(folder / "b-") + NAMES.format(shard=shard, num_shards=SHARDS) for shard in range(SHARDS)]
    writers = [tf.io.TFRecordWriter(name) for name in names]
    dataset = tf.data.TFRecordDataset(str(folder / "small")).prefetch(tf.data.AUTOTUNE)
    for number, record in enumerate(dataset.as_numpy_iterator()):
        writers[number % SHARDS].write(record)
    for writer in writers:
        writer.close()
    return SHARDS


ENCODE = f"{EXAMPLES} dicts as Examples into {SHARDS} shards"


def arrays() -> dict[str, np.ndarray]:
    return {"image": np.zeros((EXAMPLES, 784), np.uint8), "label": np.arange(EXAMPLES) % 10}


@workload(ENCODE, "dataset")
def encode_dataset(folder: Path) -> int:
    from dataset import Dataset, io

    def encode(element: dict[str, Any]) -> bytes:
        return io.encode_example({"image": element["image"].tobytes(), "label": element["label"]})

    return len(Dataset.from_tensor_slices(arrays()).write_tfrecord(folder / f"c-{NAMES}", SHARDS, encode=encode))


@workload(ENCODE, "loop")
def encode_loop(folder: Path) -> int:
    import tensorflow as tf

    names = [str(folder / "d-") + NAMES.format(shard=shard, num_shards=SHARDS) for shard in range(SHARDS)]
    writers = [tf.io.TFRecordWriter(name) for name in names]
    for number, (image, label) in enumerate(zip(*arrays().values(), strict=True)):
        feature = {
            "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image.tobytes()])),
            "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
        }
        example = tf.train.Example(features=tf.train.Features(feature=feature))
        writers[number % SHARDS].write(example.SerializeToString())
    for writer in writers:
        writer.close()
    return SHARDS


if __name__ == "__main__":
    SUITE.main()
