"""Numbers -> map(x + 1), one element at a time, no batches: what it costs to be asked for one.

The time of an element is one second by the elements per second. Left out: WebDataset, whose elements are samples of
shards.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from harness.workload import Again, Pipeline, Workload

NUMBERS = 1_000_000


def make_data(folder: Path, scale: float) -> None:
    """How many numbers."""
    (folder / "numbers").write_text(str(int(NUMBERS * scale)))


def numbers(folder: Path) -> int:
    return int((folder / "numbers").read_text())


def increased(x: Any) -> Any:
    return x + 1


def increased_row(row: dict[str, Any]) -> dict[str, Any]:
    return {"id": row["id"] + 1}


def value(element: Any) -> int:
    return int(element["id"] if isinstance(element, dict) else element)


WORKLOAD = Workload(
    title="range -> map(x + 1), one element at a time",
    make_data=make_data,
    count=lambda _: 1,
    digest=value,
    small=0.01,
)


@WORKLOAD.runner("dataset")
def dataset(folder: Path) -> Pipeline:
    from dataset import Dataset

    return Dataset.range(numbers(folder)).map(increased)


@WORKLOAD.runner(
    "tf.data",
    settings="parallel map and prefetch, both AUTOTUNE; as_numpy_iterator",
    source="https://www.tensorflow.org/guide/data_performance",
)
def tf_data(folder: Path) -> Pipeline:
    import tensorflow as tf

    mapped = tf.data.Dataset.range(numbers(folder)).map(increased, num_parallel_calls=tf.data.AUTOTUNE)
    return Again(mapped.prefetch(tf.data.AUTOTUNE).as_numpy_iterator)


@WORKLOAD.runner(
    "tf.data, map in turn",
    settings="no parallel map, no prefetch: handing over to another thread costs more than the element",
    source="https://www.tensorflow.org/guide/data_performance#reducing_memory_footprint",
)
def tf_data_in_turn(folder: Path) -> Pipeline:
    import tensorflow as tf

    return Again(tf.data.Dataset.range(numbers(folder)).map(increased).as_numpy_iterator)


@WORKLOAD.runner(
    "grain",
    settings="no threads, as data is in memory",
    source="https://google-grain.readthedocs.io/en/latest/tutorials/dataset_basic_tutorial.html",
)
def grain_(folder: Path) -> Pipeline:
    import grain

    mapped = grain.MapDataset.range(numbers(folder)).map(increased)
    return mapped.to_iter_dataset(grain.ReadOptions(num_threads=0))


@WORKLOAD.runner(
    "torch",
    settings="DataLoader of an IterableDataset, batch_size=None, in the same process",
    source="https://docs.pytorch.org/docs/stable/data.html#disable-automatic-batching",
)
def torch(folder: Path) -> Pipeline:
    from torch.utils.data import DataLoader, IterableDataset

    class Numbers(IterableDataset[int]):
        def __iter__(self) -> Iterator[int]:
            return map(increased, range(numbers(folder)))

    return DataLoader(Numbers(), batch_size=None)


@WORKLOAD.runner(
    "torchdata.nodes",
    settings="Mapper over an IterableWrapper, in the same thread",
    source="https://meta-pytorch.org/data/main/getting_started_with_torchdata_nodes.html",
)
def torchdata_nodes(folder: Path) -> Pipeline:
    from torchdata.nodes import IterableWrapper, Loader, Mapper

    return Loader(Mapper(IterableWrapper(range(numbers(folder))), increased))


@WORKLOAD.runner(
    "mlx-data",
    settings="a buffer of dicts as a stream, key_transform",
    source="https://ml-explore.github.io/mlx-data/build/html/quick_start.html",
)
def mlx_data(folder: Path) -> Pipeline:
    import mlx.data as dx

    mapped = dx.buffer_from_vector([{"id": x} for x in range(numbers(folder))]).key_transform("id", increased)
    return Again(lambda: iter(mapped.to_stream()))


@WORKLOAD.runner(
    "spdl",
    settings="one stage, one thread",
    source="https://facebookresearch.github.io/spdl/main/getting_started/intro.html",
)
def spdl(folder: Path) -> Pipeline:
    from spdl.pipeline import PipelineBuilder

    def epoch() -> Iterator[Any]:
        builder = PipelineBuilder().add_source(range(numbers(folder))).pipe(increased)
        pipeline = builder.add_sink(100).build(num_threads=1)
        with pipeline.auto_stop():
            yield from pipeline

    return Again(epoch)


@WORKLOAD.runner(
    "HF datasets",
    settings="rows of to_iterable_dataset().map()",
    source="https://huggingface.co/docs/datasets/about_mapstyle_vs_iterable",
)
def hf_datasets(folder: Path) -> Pipeline:
    import datasets

    rows = datasets.Dataset.from_dict({"id": np.arange(numbers(folder))}).to_iterable_dataset()
    return rows.map(increased_row)


@WORKLOAD.runner(
    "ray.data",
    settings="map_batches, then iter_rows(), 2 CPUs",
    source="https://docs.ray.io/en/latest/data/iterating-over-data.html#iterating-over-rows",
)
def ray_data(folder: Path) -> Pipeline:
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    return Again(lambda: iter(ray.data.range(numbers(folder)).map_batches(increased_row).iter_rows()))


@WORKLOAD.runner("numpy", settings="plain Python")
def loop(folder: Path) -> Pipeline:
    return Again(lambda: (increased(x) for x in range(numbers(folder))))


@WORKLOAD.limit("a list of the numbers, iterated over")
def at_best(folder: Path) -> int:
    made = increased(np.arange(numbers(folder))).tolist()
    for _ in made:
        pass
    return len(made)
