"""Numbers -> map(x * 2 + 1) -> filter(not a multiple of 3) -> batch(1000): nothing but the library's own cost."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
from harness.workload import Again, Pipeline, Workload

NUMBERS = 3_000_000
BATCH = 1000


def make_data(folder: Path, scale: float) -> None:
    """How many numbers."""
    (folder / "numbers").write_text(str(int(NUMBERS * scale)))


def numbers(folder: Path) -> int:
    return int((folder / "numbers").read_text())


def double(x):
    return x * 2 + 1


def wanted(x):
    return x % 3 != 0


WORKLOAD = Workload(
    title="range -> map(x * 2 + 1) -> filter(x % 3 != 0) -> batch(1000)",
    make_data=make_data,
    count=len,
    digest=lambda batch: int(np.asarray(batch, np.uint64).sum()),
)


@WORKLOAD.runner("dataset")
def dataset(folder: Path) -> Pipeline:
    from dataset import Dataset

    return Dataset.range(numbers(folder)).map(double).filter(wanted).batch(BATCH)


@WORKLOAD.runner(
    "tf.data",
    settings="parallel map and prefetch, both AUTOTUNE",
    source="https://www.tensorflow.org/guide/data_performance",
)
def tf_data(folder: Path) -> Pipeline:
    import tensorflow as tf

    mapped = tf.data.Dataset.range(numbers(folder)).map(double, num_parallel_calls=tf.data.AUTOTUNE)
    return Again(mapped.filter(wanted).batch(BATCH).prefetch(tf.data.AUTOTUNE).as_numpy_iterator)


@WORKLOAD.runner("numpy")
def loop(folder: Path) -> Pipeline:
    def epoch() -> Iterator[np.ndarray]:
        passed = (y for y in (double(x) for x in range(numbers(folder))) if wanted(y))
        while batch := list(islice(passed, BATCH)):
            yield np.array(batch)

    return Again(epoch)


@WORKLOAD.limit("NumPy on all numbers at once")
def at_best(folder: Path) -> int:
    made = double(np.arange(numbers(folder)))
    return len(made[wanted(made)])
