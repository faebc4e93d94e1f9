"""Measures TFRecord files with an index: making one, and reading records in any order.

    python benchmarks/studies/files_index.py [--runs 9] [--only TEXT]

60,000 records of an MNIST-shaped Example. tf.data has nothing of the kind; making an index is set beside passes over
all records, and random access beside what one writes by hand: seek and read at offsets that are known, without looking
at a checksum.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
from side_by_side import Suite

EXAMPLES = 60_000
BATCH = 128


def make_data(folder: Path) -> None:
    from dataset import io

    rng = np.random.default_rng(0)
    with io.TFRecordWriter(folder / "mnist.tfrecord") as writer:
        for label in rng.integers(0, 10, EXAMPLES):
            writer.write(io.encode_example({"image": rng.bytes(28 * 28), "label": label}))


SUITE = Suite(__doc__, make_data, "records")

BUILD = "TFRecordIndex.build(), beside reading all records"


@SUITE.workload(BUILD, "dataset")
def build_dataset(folder: Path) -> int:
    from dataset import io

    index = io.TFRecordIndex.build(folder / "mnist.tfrecord")
    assert len(index) == EXAMPLES
    return EXAMPLES


@SUITE.workload(BUILD, "our full read")
def read_dataset(folder: Path) -> int:
    from dataset import TFRecordDataset

    return sum(map(len, TFRecordDataset(folder / "mnist.tfrecord").batch(BATCH)))


@SUITE.workload(BUILD, "tf.data's full read")
def read_tf(folder: Path) -> int:
    import tensorflow as tf

    records = tf.data.TFRecordDataset(str(folder / "mnist.tfrecord"), buffer_size=8 << 20)
    return sum(map(len, records.batch(BATCH).prefetch(tf.data.AUTOTUNE).as_numpy_iterator()))


@functools.cache
def order() -> list[int]:
    return np.random.default_rng(1).permutation(EXAMPLES).tolist()


@functools.cache
def indexed(folder: Path) -> Any:
    from dataset import TFRecordDataset

    return TFRecordDataset(folder / "mnist.tfrecord", index=True)


@functools.cache
def offsets(folder: Path) -> list[int]:
    from dataset import io

    return io.TFRecordIndex.open(folder / "mnist.tfrecord").offsets.tolist()


RANDOM = "dataset[i] in a random order"


@SUITE.workload(RANDOM, "dataset")
def random_dataset(folder: Path) -> int:
    dataset = indexed(folder)
    for i in order():
        dataset[i]
    return EXAMPLES


def by_hand(folder: Path) -> list[bytes]:
    edges = offsets(folder)
    found = []
    with (folder / "mnist.tfrecord").open("rb", buffering=0) as file:
        for i in order():
            file.seek(edges[i] + 12)
            found.append(file.read(edges[i + 1] - edges[i] - 16))
    return found


@SUITE.workload(RANDOM, "loop")
def random_loop(folder: Path) -> int:
    return len(by_hand(folder))


SHUFFLED = "shuffle(None) -> batch(128)"


@SUITE.workload(SHUFFLED, "dataset")
def shuffled_dataset(folder: Path) -> int:
    return sum(map(len, indexed(folder).shuffle(None).batch(BATCH)))


@SUITE.workload(SHUFFLED, "loop")
def shuffled_loop(folder: Path) -> int:
    records = by_hand(folder)
    return sum(len(np.array(records[i : i + BATCH], object)) for i in range(0, EXAMPLES, BATCH))


SHARDED = "shard(8, 3) -> batch(128), beside reading all records for it"


@SUITE.workload(SHARDED, "dataset")
def sharded_dataset(folder: Path) -> int:
    return sum(map(len, indexed(folder).shard(8, 3).batch(BATCH)))


@SUITE.workload(SHARDED, "tf.data")
def sharded_tf(folder: Path) -> int:
    import tensorflow as tf

    records = tf.data.TFRecordDataset(str(folder / "mnist.tfrecord"), buffer_size=8 << 20).shard(8, 3)
    return sum(map(len, records.batch(BATCH).prefetch(tf.data.AUTOTUNE).as_numpy_iterator()))


if __name__ == "__main__":
    SUITE.main()
