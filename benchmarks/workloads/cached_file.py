"""Arrays -> map -> cache in a file -> batch(128), 5 epochs: what it costs to read again what is kept.

The file is written before time is taken, and small enough to stay in the page cache. Left out: torch, torchdata.nodes,
SPDL, Grain and mlx-data, which keep no elements in files; WebDataset, which keeps shards; ray.data, which keeps what is
materialized in memory (cached_memory.py), and what it writes to files is another dataset.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from harness.workload import Again, Pipeline, Workload

from workloads import cached_memory as memory
from workloads import slices_shuffle_buffer as mnist
from workloads.cached_memory import BATCH, EPOCHS, ROWS, scale

WORKLOAD = Workload(
    title=f"arrays of {ROWS:,} x 28 x 28 -> map(to float32) -> cache(file) -> batch({BATCH}), {EPOCHS} epochs from it",
    make_data=mnist.make_data,
    count=mnist.count,
    digest=memory.digest,
    whole_first_epoch=True,
)


@cache
def own_folder(folder: Path) -> tempfile.TemporaryDirectory[str]:
    """Beside the data, as long as this process lives: each run fills its cache anew."""
    return tempfile.TemporaryDirectory(dir=folder)


@WORKLOAD.runner("dataset")
def dataset(folder: Path) -> Pipeline:
    from dataset import Dataset

    file = Path(own_folder(folder).name) / "cache"
    return Dataset.from_tensor_slices(mnist.arrays(folder)).map(scale).cache(file).batch(BATCH).repeat(EPOCHS)


@WORKLOAD.runner(
    "tf.data",
    settings="cache(filename); parallel map and prefetch, both AUTOTUNE",
    source="https://www.tensorflow.org/guide/data_performance#caching",
)
def tf_data(folder: Path) -> Pipeline:
    return memory.tf_data(folder, str(Path(own_folder(folder).name) / "cache"))


@WORKLOAD.runner(
    "HF datasets",
    settings="map(batched=True) into an Arrow file, mapped into memory; in the format numpy",
    source="https://huggingface.co/docs/datasets/about_cache",
)
def hf_datasets(folder: Path) -> Pipeline:
    import datasets

    def scale_rows(batch: dict[str, Any]) -> dict[str, Any]:
        return {"image": scale(batch["image"], None)[0], "label": batch["label"]}

    features = datasets.Features(image=datasets.Array2D((28, 28), "float32"), label=datasets.Value("int64"))
    file = str(Path(own_folder(folder).name) / "cache.arrow")
    rows = mnist.hf_rows(folder).with_format("numpy")
    kept = rows.map(scale_rows, batched=True, features=features, cache_file_name=file)
    return Again(lambda: (batch for _ in range(EPOCHS) for batch in kept.iter(batch_size=BATCH)))


@WORKLOAD.runner("numpy", settings="kept as two memory-mapped .npy files; each batch is a copy of their rows")
def loop(folder: Path) -> Pipeline:
    @cache
    def kept() -> list[np.ndarray]:
        mapped = [scale(image, label) for image, label in zip(*mnist.arrays(folder), strict=True)]
        files = [Path(own_folder(folder).name) / name for name in ("images.npy", "labels.npy")]
        for file, column in zip(files, zip(*mapped, strict=True), strict=True):
            np.save(file, np.stack(column))
        return [np.load(file, mmap_mode="r") for file in files]

    def epochs() -> Iterator[tuple[np.ndarray, ...]]:
        images, labels = kept()
        for _ in range(EPOCHS):
            for start in range(0, len(images), BATCH):
                yield np.array(images[start : start + BATCH]), np.array(labels[start : start + BATCH])

    return Again(epochs)


@cache
def scaled_file(folder: Path) -> Path:
    file = Path(own_folder(folder).name) / "scaled"
    memory.scaled(folder).tofile(file)
    return file


@WORKLOAD.limit("page-cache read of the images into one array of a batch, again and again, on one core")
def read(folder: Path) -> int:
    batch = memoryview(np.empty((BATCH, 28, 28), np.float32)).cast("B")
    size = 0
    with scaled_file(folder).open("rb", buffering=0) as file:
        while got := file.readinto(batch):
            size += got
    return size // (28 * 28 * 4)
