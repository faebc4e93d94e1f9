"""Numbers -> map(x * 2 + 1) -> filter(not a multiple of 3) -> batch(1000): nothing but the library's own cost.

Where a library calls functions with whole batches, its users write them so: ``, batched``. Left out: WebDataset,
whose elements are samples of shards.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

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


def column(batch: Any) -> Any:
    return batch["id"] if isinstance(batch, dict) else batch


def double_column(batch: dict[str, Any]) -> dict[str, Any]:
    return {"id": double(batch["id"])}


def double_wanted(batch: dict[str, Any]) -> dict[str, Any]:
    doubled = double(batch["id"])
    return {"id": doubled[wanted(doubled)]}


WORKLOAD = Workload(
    title="range -> map(x * 2 + 1) -> filter(x % 3 != 0) -> batch(1000)",
    make_data=make_data,
    count=lambda batch: len(column(batch)),
    digest=lambda batch: int(np.asarray(column(batch), np.uint64).sum()),
    small=0.005,
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


@WORKLOAD.runner(
    "tf.data, batched",
    settings="batch, then map and tf.boolean_mask in a parallel map, rebatch, prefetch, AUTOTUNE",
    source="https://www.tensorflow.org/guide/data_performance#vectorizing_mapping",
)
def tf_data_batched(folder: Path) -> Pipeline:
    import tensorflow as tf

    def keep(x):
        doubled = double(x)
        return tf.boolean_mask(doubled, wanted(doubled))

    batches = tf.data.Dataset.range(numbers(folder)).batch(BATCH).map(keep, num_parallel_calls=tf.data.AUTOTUNE)
    return Again(batches.rebatch(BATCH).prefetch(tf.data.AUTOTUNE).as_numpy_iterator)


@WORKLOAD.runner(
    "grain",
    settings="no threads, as data is in memory",
    source="https://google-grain.readthedocs.io/en/latest/tutorials/dataset_basic_tutorial.html",
)
def grain_(folder: Path) -> Pipeline:
    import grain

    mapped = grain.MapDataset.range(numbers(folder)).map(double)
    return mapped.to_iter_dataset(grain.ReadOptions(num_threads=0)).filter(wanted).batch(BATCH)


@WORKLOAD.runner(
    "torch",
    settings="DataLoader of an IterableDataset, whose generator maps and filters, in the same process",
    source="https://docs.pytorch.org/docs/stable/data.html#iterable-style-datasets",
)
def torch(folder: Path) -> Pipeline:
    from torch.utils.data import DataLoader, IterableDataset

    class Numbers(IterableDataset[int]):
        def __iter__(self) -> Iterator[int]:
            return filter(wanted, map(double, range(numbers(folder))))

    return DataLoader(Numbers(), BATCH)


@WORKLOAD.runner(
    "torchdata.nodes",
    settings="Mapper, Batcher, np.array in a Mapper, in the same thread; filters in the source, as there is no filter",
    source="https://meta-pytorch.org/data/main/getting_started_with_torchdata_nodes.html",
)
def torchdata_nodes(folder: Path) -> Pipeline:
    from torchdata.nodes import Batcher, IterableWrapper, Loader, Mapper

    passed = Again(lambda: (x for x in range(numbers(folder)) if wanted(double(x))))
    return Loader(Mapper(Batcher(Mapper(IterableWrapper(passed), double), BATCH, drop_last=False), np.array))


@WORKLOAD.runner(
    "mlx-data",
    settings="a stream of a Python iterable, sample_transform, prefetch(8, 2)",
    source="https://ml-explore.github.io/mlx-data/build/html/quick_start.html",
)
def mlx_data(folder: Path) -> Pipeline:
    import mlx.data as dx

    def keep(sample):
        doubled = double(sample["id"])
        return {"id": doubled} if wanted(doubled) else {}

    def epoch() -> Iterator[Any]:
        stream = dx.stream_python_iterable(lambda: ({"id": x} for x in range(numbers(folder))))
        return iter(stream.sample_transform(keep).batch(BATCH).prefetch(8, 2))

    return Again(epoch)


@WORKLOAD.runner(
    "spdl",
    settings="a stage that maps and filters, aggregate, np.array, one thread each",
    source="https://facebookresearch.github.io/spdl/main/getting_started/intro.html",
)
def spdl(folder: Path) -> Pipeline:
    from spdl.pipeline import PipelineBuilder

    def keep(x):
        doubled = double(x)
        return doubled if wanted(doubled) else None  # which drops it

    def epoch() -> Iterator[np.ndarray]:
        builder = PipelineBuilder().add_source(range(numbers(folder))).pipe(keep).aggregate(BATCH).pipe(np.array)
        pipeline = builder.add_sink(3).build(num_threads=2)
        with pipeline.auto_stop():
            yield from pipeline

    return Again(epoch)


@WORKLOAD.runner(
    "HF datasets, batched",
    settings="to_iterable_dataset().map(batched).filter(batched), in the format numpy",
    source="https://huggingface.co/docs/datasets/about_map_batch",
)
def hf_datasets(folder: Path) -> Pipeline:
    import datasets

    rows = datasets.Dataset.from_dict({"id": np.arange(numbers(folder))}).to_iterable_dataset().with_format("numpy")
    mapped = rows.map(double_column, batched=True, batch_size=BATCH)
    passed = mapped.filter(lambda batch: wanted(batch["id"]), batched=True, batch_size=BATCH)
    return Again(lambda: iter(passed.iter(batch_size=BATCH)))


@WORKLOAD.runner(
    "ray.data, batched",
    settings="map_batches, 2 CPUs",
    source="https://docs.ray.io/en/latest/data/transforming-data.html#transforming-batches",
)
def ray_data(folder: Path) -> Pipeline:
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    passed = ray.data.range(numbers(folder)).map_batches(double_wanted)
    return Again(lambda: iter(passed.iter_batches(batch_size=BATCH, batch_format="numpy")))


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
