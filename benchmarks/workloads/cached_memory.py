"""Arrays -> map -> cache in memory -> batch(128), 5 epochs: what it costs to give again what is kept.

The cache is full before time is taken. Left out: torch, torchdata.nodes and WebDataset (whose cache is of shards),
which keep no elements; SPDL, whose ``cache_iterator`` repeats a few for profiling; Hugging Face datasets, which keep
in a file what was mapped (cached_file.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from harness.workload import Again, Pipeline, Workload

from workloads import slices_shuffle_buffer as mnist

ROWS = 60_000
EPOCHS = 5
BATCH = 128

Element = tuple[Any, Any]


def scale(image: Any, label: Any) -> Element:
    return image.astype(np.float32) / np.float32(255), label


def digest(batch: Any) -> float:
    """Of sums that floats hold exactly, whatever the order: of pixels, and of each image's first with its label."""
    images, labels = mnist.columns(batch)
    pixels = np.rint(np.asarray(images, np.float64) * 255).astype(np.int64)
    return int(pixels.sum() + (pixels[:, 0, 0] * np.asarray(labels, np.int64)).sum())


WORKLOAD = Workload(
    title=f"arrays of {ROWS:,} x 28 x 28 -> map(to float32) -> cache() -> batch({BATCH}), {EPOCHS} epochs from it",
    make_data=mnist.make_data,
    count=mnist.count,
    digest=digest,
    whole_first_epoch=True,
)


@WORKLOAD.runner("dataset")
def dataset(folder: Path) -> Pipeline:
    from dataset import Dataset

    return Dataset.from_tensor_slices(mnist.arrays(folder)).map(scale).cache().batch(BATCH).repeat(EPOCHS)


@WORKLOAD.runner(
    "tf.data",
    settings="cache(); parallel map and prefetch, both AUTOTUNE",
    source="https://www.tensorflow.org/guide/data_performance#caching",
)
def tf_data(folder: Path, file: str = "") -> Pipeline:
    import tensorflow as tf

    def scale_tensors(image: Any, label: Any) -> Any:
        return tf.cast(image, tf.float32) / 255, label

    slices = tf.data.Dataset.from_tensor_slices(mnist.arrays(folder))
    kept = slices.map(scale_tensors, num_parallel_calls=tf.data.AUTOTUNE).cache(file)
    return Again(kept.batch(BATCH).repeat(EPOCHS).prefetch(tf.data.AUTOTUNE).as_numpy_iterator)


@WORKLOAD.runner(
    "grain",
    settings="CacheIterDataset under RepeatIterDataset, its iterator kept between passes, because it owns the cache",
    source="https://google-grain.readthedocs.io/en/latest/grain.experimental.html",
)
def grain_(folder: Path) -> Pipeline:
    import grain

    def scale_row(row: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        image, label = scale(row["image"], row["label"])
        return {"image": image, "label": label}

    rows = mnist.Rows(folder)
    mapped = grain.MapDataset.source(rows).map(scale_row).to_iter_dataset(grain.ReadOptions(num_threads=0))
    kept = grain.experimental.CacheIterDataset(mapped).batch(BATCH)
    batches = iter(grain.experimental.RepeatIterDataset(kept))
    return Again(lambda: islice(batches, EPOCHS * -(-len(rows) // BATCH)))


@WORKLOAD.runner(
    "mlx-data",
    settings="to_buffer(), then batch and ordered_prefetch(8, 2)",
    source="https://ml-explore.github.io/mlx-data/build/html/python/stream.html",
)
def mlx_data(folder: Path) -> Pipeline:
    import mlx.data as dx

    images, labels = mnist.arrays(folder)
    slices = dx.buffer_from_vector([{"image": i, "label": n} for i, n in zip(images, labels, strict=True)])
    mapped = slices.key_transform("image", lambda image: image.astype(np.float32) / np.float32(255))
    kept = mapped.to_stream().to_buffer()
    return Again(lambda: (batch for _ in range(EPOCHS) for batch in kept.batch(BATCH).ordered_prefetch(8, 2)))


@WORKLOAD.runner(
    "ray.data",
    settings="materialize(), 2 CPUs",
    source="https://docs.ray.io/en/latest/data/performance-tips.html",
)
def ray_data(folder: Path) -> Pipeline:
    def scale_rows(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {"image": batch["image"].astype(np.float32) / np.float32(255), "label": batch["label"]}

    kept = mnist.ray_rows(folder).map_batches(scale_rows).materialize()

    def epochs() -> Iterator[Any]:
        for _ in range(EPOCHS):
            yield from kept.iter_batches(batch_size=BATCH, batch_format="numpy")

    return Again(epochs)


@WORKLOAD.runner("numpy", settings="kept as two arrays; each batch is a copy of their rows")
def loop(folder: Path) -> Pipeline:
    @cache
    def kept() -> tuple[np.ndarray, np.ndarray]:
        mapped = [scale(image, label) for image, label in zip(*mnist.arrays(folder), strict=True)]
        return np.stack([image for image, _ in mapped]), np.array([label for _, label in mapped])

    def epochs() -> Iterator[Element]:
        images, labels = kept()
        for _ in range(EPOCHS):
            for start in range(0, len(images), BATCH):
                yield images[start : start + BATCH].copy(), labels[start : start + BATCH].copy()

    return Again(epochs)


@cache
def scaled(folder: Path) -> np.ndarray:
    return mnist.arrays(folder)[0].astype(np.float32)


@WORKLOAD.limit("memory copy of the images into one array of a batch, again and again, on one core")
def copy(folder: Path) -> int:
    images = scaled(folder)
    batch = np.empty((BATCH, 28, 28), np.float32)
    whole = len(images) // BATCH * BATCH
    for start in range(0, whole, BATCH):
        np.copyto(batch, images[start : start + BATCH])
    return whole
