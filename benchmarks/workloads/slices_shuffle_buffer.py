"""Arrays in memory -> shuffle(10000) -> batch(128), 30 epochs: what a library adds to gathering rows.

Left out: torch and torchdata.nodes, which shuffle arrays as a whole (slices_shuffle_global.py) and have no buffer that
shuffles a stream; SPDL, which has none either; WebDataset, which reads shards and not arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from harness import digests
from harness.workload import Again, Pipeline, Workload

ROWS = 60_000
EPOCHS = 30  # of MNIST one alone is over in an instant
BUFFER = 10_000
BATCH = 128


def make_data(folder: Path, scale: float) -> None:
    """Images and labels in the shapes of MNIST."""
    rng = np.random.default_rng(0)
    rows = int(ROWS * scale)
    np.save(folder / "images.npy", rng.integers(0, 256, (rows, 28, 28), np.uint8))
    np.save(folder / "labels.npy", rng.integers(0, 10, rows))


def arrays(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    return np.load(folder / "images.npy"), np.load(folder / "labels.npy")


def by_name(folder: Path) -> dict[str, np.ndarray]:
    images, labels = arrays(folder)
    return {"image": images, "label": labels}


def columns(batch: Any) -> tuple[Any, Any]:
    """The images and the labels of a batch: some libraries give tuples, some give dicts."""
    return (batch["image"], batch["label"]) if isinstance(batch, dict) else tuple(batch)


def count(batch: Any) -> int:
    return len(columns(batch)[0])


def digest(batch: Any) -> int:
    """Bound to its label, each image counts; a label with the wrong image shows. The dtype does not matter."""
    images, labels = columns(batch)
    images = np.asarray(images).astype(np.uint8)
    return sum(digests.of_rows(images[i : i + 1]) * (int(label) + 1) for i, label in enumerate(np.asarray(labels)))


def again_and_again(epoch: Iterable[Any]) -> Pipeline:
    """All epochs of a library that has no ``repeat`` of its own."""
    return Again(lambda: (batch for _ in range(EPOCHS) for batch in epoch))


WORKLOAD = Workload(
    title=f"arrays of {ROWS:,} x 28 x 28 -> shuffle({BUFFER}) -> batch({BATCH}), {EPOCHS} epochs",
    make_data=make_data,
    count=count,
    digest=digest,
    notes="numpy permutes all rows, which shuffles more and is less work than a buffer: it is what one writes by hand.",
)


@WORKLOAD.runner("dataset")
def dataset(folder: Path) -> Pipeline:
    from dataset import Dataset

    return Dataset.from_tensor_slices(arrays(folder)).shuffle(BUFFER).batch(BATCH).repeat(EPOCHS)


@WORKLOAD.runner(
    "tf.data", settings="prefetch(AUTOTUNE)", source="https://www.tensorflow.org/guide/data_performance#prefetching"
)
def tf_data(folder: Path, buffer: int = BUFFER) -> Pipeline:
    import tensorflow as tf

    slices = tf.data.Dataset.from_tensor_slices(arrays(folder)).shuffle(buffer).batch(BATCH).repeat(EPOCHS)
    return Again(slices.prefetch(tf.data.AUTOTUNE).as_numpy_iterator)


@WORKLOAD.runner(
    "tf.data, indices",
    settings="shuffles and batches indices, then tf.gather in a parallel map and prefetch, both AUTOTUNE",
    source="https://www.tensorflow.org/guide/data_performance#vectorizing_mapping",
)
def tf_data_indices(folder: Path, buffer: int = BUFFER) -> Pipeline:
    import tensorflow as tf

    images, labels = map(tf.constant, arrays(folder))

    def gather(chosen: Any) -> Any:
        return tf.gather(images, chosen), tf.gather(labels, chosen)

    chosen = tf.data.Dataset.range(len(images)).shuffle(buffer).batch(BATCH).repeat(EPOCHS)
    gathered = chosen.map(gather, num_parallel_calls=tf.data.AUTOTUNE)
    return Again(gathered.prefetch(tf.data.AUTOTUNE).as_numpy_iterator)


class Rows:
    """What Grain wants of a source: its length, and an element by its index."""

    def __init__(self, folder: Path) -> None:
        self.images, self.labels = arrays(folder)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: Any) -> dict[str, np.ndarray]:
        return {"image": self.images[index], "label": self.labels[index]}


@WORKLOAD.runner(
    "grain",
    settings="WindowShuffleIterDataset, which shuffles one window after the other; no threads for data in memory",
    source="https://google-grain.readthedocs.io/en/latest/tutorials/dataset_advanced_tutorial.html",
)
def grain_(folder: Path) -> Pipeline:
    import grain

    rows = grain.MapDataset.source(Rows(folder)).to_iter_dataset(grain.ReadOptions(num_threads=0))
    shuffled = grain.experimental.WindowShuffleIterDataset(rows, window_size=BUFFER, seed=0)
    return again_and_again(shuffled.batch(BATCH))


@WORKLOAD.runner(
    "mlx-data",
    settings="prefetch(8, 2): two threads",
    source="https://ml-explore.github.io/mlx-data/build/html/quick_start.html",
)
def mlx_data(folder: Path) -> Pipeline:
    import mlx.data as dx

    images, labels = arrays(folder)
    buffer = dx.buffer_from_vector([{"image": i, "label": n} for i, n in zip(images, labels, strict=True)])

    def epoch() -> Iterator[Any]:
        return iter(buffer.to_stream().shuffle(BUFFER).batch(BATCH).prefetch(8, 2))

    return again_and_again(Again(epoch))


@WORKLOAD.runner(
    "HF datasets",
    settings="to_iterable_dataset().shuffle(buffer_size), in the format numpy, which makes pixels int64",
    source="https://huggingface.co/docs/datasets/about_mapstyle_vs_iterable#speed-differences",
)
def hf_datasets(folder: Path) -> Pipeline:
    rows = hf_rows(folder).to_iterable_dataset().shuffle(seed=0, buffer_size=BUFFER).with_format("numpy")
    return again_and_again(Again(lambda: rows.iter(batch_size=BATCH)))


def hf_rows(folder: Path) -> Any:
    import datasets

    features = datasets.Features(image=datasets.Array2D((28, 28), "uint8"), label=datasets.Value("int64"))
    return datasets.Dataset.from_dict(by_name(folder), features=features)


@WORKLOAD.runner(
    "ray.data",
    settings="iter_batches(local_shuffle_buffer_size), 2 CPUs",
    source="https://docs.ray.io/en/latest/data/shuffling-data.html#local-buffer-shuffle",
)
def ray_data(folder: Path) -> Pipeline:
    rows = ray_rows(folder).materialize()

    def epoch() -> Iterable[Any]:
        return rows.iter_batches(batch_size=BATCH, batch_format="numpy", local_shuffle_buffer_size=BUFFER)

    return again_and_again(Again(epoch))


def ray_rows(folder: Path) -> Any:
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    images, labels = arrays(folder)

    def name(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {"image": batch["data"], "label": labels[batch["id"]]}

    return ray.data.from_numpy(images).zip(ray.data.range(len(labels))).map_batches(name)


@WORKLOAD.runner("numpy")
def loop(folder: Path) -> Pipeline:
    images, labels = arrays(folder)

    def epoch() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        order = np.random.default_rng().permutation(len(images))
        for start in range(0, len(order), BATCH):
            chosen = order[start : start + BATCH]
            yield images[chosen], labels[chosen]

    return again_and_again(Again(epoch))


cached_arrays = cache(arrays)  # to read them is not what the machine's limit is about


@WORKLOAD.limit("rows gathered by random indices into one array of a batch, again and again, on one core")
def gather(folder: Path) -> int:
    images, labels = cached_arrays(folder)
    order = np.random.default_rng().permutation(len(images))
    order = order[: len(order) - len(order) % BATCH].reshape(-1, BATCH)
    rows, numbers = np.empty((BATCH, 28, 28), np.uint8), np.empty(BATCH, np.int64)
    for _ in range(EPOCHS):
        for chosen in order:
            np.take(images, chosen, 0, rows, mode="clip")
            np.take(labels, chosen, 0, numbers, mode="clip")
    return order.size * EPOCHS
