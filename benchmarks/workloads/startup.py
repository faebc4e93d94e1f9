"""1000 small arrays -> map(x * 2) -> shuffle(1000) -> batch(32): what it takes until the first batch is there.

What counts here is construction and the first batch, and how fast short epochs go by; not elements per second.
Construction includes the import of the library. Left out: WebDataset, which reads shards and not arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from harness import digests
from harness.workload import Again, Pipeline, Workload

ROWS = 1000
BATCH = 32


def make_data(folder: Path, scale: float) -> None:
    np.save(folder / "rows.npy", np.random.default_rng(0).random((ROWS, 10), np.float32))


def rows_of(folder: Path) -> np.ndarray:
    return np.load(folder / "rows.npy")


def double(x: Any) -> Any:
    return x * 2


def column(batch: Any) -> Any:
    return batch["data"] if isinstance(batch, dict) else batch


WORKLOAD = Workload(
    title=f"{ROWS} small arrays -> map(x * 2) -> shuffle({ROWS}) -> batch({BATCH}): start-up",
    make_data=make_data,
    count=lambda batch: len(column(batch)),
    digest=lambda batch: digests.of_rows(np.asarray(column(batch))),
    notes="Compare the construction, which includes the import, and the first batch, not the elements per second.",
)


@WORKLOAD.runner("dataset")
def dataset(folder: Path) -> Pipeline:
    from dataset import Dataset

    return Dataset.from_tensor_slices(rows_of(folder)).map(double).shuffle(ROWS).batch(BATCH)


@WORKLOAD.runner(
    "tf.data",
    settings="parallel map and prefetch, both AUTOTUNE",
    source="https://www.tensorflow.org/guide/data_performance",
)
def tf_data(folder: Path) -> Pipeline:
    import tensorflow as tf

    slices = tf.data.Dataset.from_tensor_slices(rows_of(folder))
    batches = slices.map(double, num_parallel_calls=tf.data.AUTOTUNE).shuffle(ROWS).batch(BATCH)
    return Again(batches.prefetch(tf.data.AUTOTUNE).as_numpy_iterator)


@WORKLOAD.runner(
    "grain",
    settings="no threads, as data is in memory",
    source="https://google-grain.readthedocs.io/en/latest/tutorials/dataset_basic_tutorial.html",
)
def grain_(folder: Path) -> Pipeline:
    import grain

    batches = grain.MapDataset.source(rows_of(folder)).shuffle(seed=0).map(double).batch(BATCH)
    return batches.to_iter_dataset(grain.ReadOptions(num_threads=0))


class Doubled:
    """What a torch DataLoader wants: each element made when it is asked for."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> np.ndarray:
        return double(self.rows[index])


@WORKLOAD.runner(
    "torch",
    settings="DataLoader(shuffle=True) of a map-style Dataset, in the same process",
    source="https://docs.pytorch.org/docs/stable/data.html#single-process-data-loading",
)
def torch(folder: Path, workers: int = 0) -> Pipeline:
    from torch.utils.data import DataLoader

    rows: Any = Doubled(rows_of(folder))
    return DataLoader(rows, BATCH, shuffle=True, num_workers=workers, persistent_workers=workers > 0)


@WORKLOAD.runner(
    "torch, 2 workers",
    settings="the same in persistent worker processes",
    source="https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading",
)
def torch_workers(folder: Path) -> Pipeline:
    return torch(folder, workers=2)


@WORKLOAD.runner(
    "torchdata.nodes",
    settings="MapStyleWrapper over a RandomSampler, Batcher, np.stack in a Mapper, in the same thread",
    source="https://meta-pytorch.org/data/main/getting_started_with_torchdata_nodes.html",
)
def torchdata_nodes(folder: Path) -> Pipeline:
    from torch.utils.data import RandomSampler
    from torchdata.nodes import Batcher, Loader, Mapper, MapStyleWrapper

    rows: Any = Doubled(rows_of(folder))
    batches = Batcher(MapStyleWrapper(rows, RandomSampler(rows)), BATCH, drop_last=False)
    return Loader(Mapper(batches, np.stack))


@WORKLOAD.runner(
    "mlx-data",
    settings="a shuffled buffer, key_transform, ordered_prefetch(8, 2)",
    source="https://ml-explore.github.io/mlx-data/build/html/quick_start.html",
)
def mlx_data(folder: Path) -> Pipeline:
    import mlx.data as dx

    rows = dx.buffer_from_vector([{"data": row} for row in rows_of(folder)])
    return Again(lambda: iter(rows.shuffle().key_transform("data", double).batch(BATCH).ordered_prefetch(8, 2)))


@WORKLOAD.runner(
    "spdl",
    settings="DataLoader over shuffled rows, one thread",
    source="https://facebookresearch.github.io/spdl/main/migration/pytorch.html",
)
def spdl(folder: Path) -> Pipeline:
    from spdl.dataloader import DataLoader

    rows = rows_of(folder)
    shuffled: Any = Again(lambda: iter(np.random.default_rng().permutation(rows)))
    return DataLoader(shuffled, preprocessor=double, batch_size=BATCH, aggregator=np.stack, num_threads=1)


@WORKLOAD.runner(
    "HF datasets",
    settings="to_iterable_dataset().map(batched).shuffle(buffer_size), in the format numpy",
    source="https://huggingface.co/docs/datasets/stream#shuffle",
)
def hf_datasets(folder: Path) -> Pipeline:
    import datasets

    def double_rows(batch: dict[str, Any]) -> dict[str, Any]:
        return {"data": double(batch["data"])}

    rows = datasets.Dataset.from_dict({"data": rows_of(folder)}).with_format("numpy").to_iterable_dataset()
    mapped = rows.map(double_rows, batched=True).shuffle(seed=0, buffer_size=ROWS).with_format("numpy")
    return Again(lambda: iter(mapped.iter(batch_size=BATCH)))


@WORKLOAD.runner(
    "ray.data",
    settings="map_batches, iter_batches(local_shuffle_buffer_size), 2 CPUs",
    source="https://docs.ray.io/en/latest/data/shuffling-data.html#local-buffer-shuffle",
)
def ray_data(folder: Path) -> Pipeline:
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False

    def double_rows(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {"data": double(batch["data"])}

    mapped = ray.data.from_numpy(rows_of(folder)).map_batches(double_rows)

    def epoch() -> Iterator[Any]:
        return iter(mapped.iter_batches(batch_size=BATCH, batch_format="numpy", local_shuffle_buffer_size=ROWS))

    return Again(epoch)


@WORKLOAD.runner("numpy")
def loop(folder: Path) -> Pipeline:
    rows = rows_of(folder)

    def epoch() -> Iterator[np.ndarray]:
        order = np.random.default_rng().permutation(len(rows))
        for start in range(0, len(order), BATCH):
            yield np.stack([double(rows[index]) for index in order[start : start + BATCH]])

    return Again(epoch)
