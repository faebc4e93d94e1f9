"""Numbers -> map(pure Python of about 200 us) in two processes -> batch(32): what it costs to send elements there.

The function holds the interpreter's lock, so threads gain nothing. Left out: tf.data and mlx-data, which call Python
functions in their own process only, and WebDataset, which leaves processes to the DataLoader of torch.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from harness.workload import Again, Pipeline, Workload

NUMBERS = 10_000
STEPS = 3_000  # about 200 us
BATCH = 32
WORKERS = 2


def make_data(folder: Path, scale: float) -> None:
    """How many numbers."""
    (folder / "numbers").write_text(str(int(NUMBERS * scale)))


def numbers(folder: Path) -> int:
    return int((folder / "numbers").read_text())


def spin(number: Any) -> int:
    total = int(number)
    for step in range(STEPS):
        total += step * step % 7
    return total


def spin_all(chosen: Iterable[Any]) -> np.ndarray:
    return np.array([spin(number) for number in chosen])


def batches(folder: Path) -> list[range]:
    whole = range(numbers(folder))
    return [whole[start : start + BATCH] for start in whole[::BATCH]]


class Numbers:
    """What a torch DataLoader wants: each element made when it is asked for."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> int:
        return spin(index)


def column(batch: Any) -> Any:
    return batch["id"] if isinstance(batch, dict) else batch


WORKLOAD = Workload(
    title=f"range -> map(pure Python, 200 us) in {WORKERS} processes -> batch({BATCH})",
    make_data=make_data,
    count=lambda batch: len(column(batch)),
    digest=lambda batch: int(np.asarray(column(batch), np.int64).sum()),
)


@WORKLOAD.runner("dataset", settings=f'num_parallel_calls={WORKERS}, executor="process"; prefetch(AUTOTUNE)')
def dataset(folder: Path) -> Pipeline:
    from dataset import AUTOTUNE, Dataset

    mapped = Dataset.range(numbers(folder)).map(spin, num_parallel_calls=WORKERS, executor="process")
    return mapped.batch(BATCH).prefetch(AUTOTUNE)


@WORKLOAD.runner("dataset, natural", settings="map(executor=AUTOTUNE), prefetch(AUTOTUNE)")
def dataset_natural(folder: Path) -> Pipeline:
    from dataset import AUTOTUNE, Dataset

    return Dataset.range(numbers(folder)).map(spin, executor=AUTOTUNE).batch(BATCH).prefetch(AUTOTUNE)


@WORKLOAD.runner(
    "grain",
    settings=f"mp_prefetch with {WORKERS} workers after the batch; no threads in them",
    source="https://google-grain.readthedocs.io/en/latest/tutorials/dataset_advanced_tutorial.html",
)
def grain_(folder: Path) -> Pipeline:
    import grain
    from absl import flags

    flags.FLAGS.mark_as_parsed()  # its workers read flags, which only absl's own start of a program parses
    mapped = grain.MapDataset.range(numbers(folder)).map(spin)
    made = mapped.to_iter_dataset(grain.ReadOptions(num_threads=0)).batch(BATCH)
    return made.mp_prefetch(grain.MultiprocessingOptions(num_workers=WORKERS))


@WORKLOAD.runner(
    "torch",
    settings=f"DataLoader of a map-style Dataset, {WORKERS} persistent workers",
    source="https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading",
)
def torch(folder: Path) -> Pipeline:
    from torch.utils.data import DataLoader

    made: Any = Numbers(numbers(folder))
    return DataLoader(made, BATCH, num_workers=WORKERS, persistent_workers=True)


@WORKLOAD.runner(
    "torchdata.nodes",
    settings=f"ParallelMapper with {WORKERS} processes over batches of numbers",
    source="https://meta-pytorch.org/data/main/torchdata.nodes.html#torchdata.nodes.ParallelMapper",
)
def torchdata_nodes(folder: Path) -> Pipeline:
    from torchdata.nodes import IterableWrapper, Loader, ParallelMapper

    return Loader(ParallelMapper(IterableWrapper(batches(folder)), spin_all, WORKERS, method="process"))


@WORKLOAD.runner(
    "spdl",
    settings=f"pipe(concurrency={WORKERS}) over batches of numbers, a persistent ProcessPoolExecutor as executor",
    source="https://facebookresearch.github.io/spdl/main/getting_started/parallelism.html",
)
def spdl(folder: Path) -> Pipeline:
    from concurrent.futures import ProcessPoolExecutor

    from spdl.pipeline import PipelineBuilder

    pool = ProcessPoolExecutor(WORKERS, multiprocessing.get_context("forkserver"))

    def epoch() -> Iterator[np.ndarray]:
        mapped = PipelineBuilder().add_source(batches(folder)).pipe(spin_all, executor=pool, concurrency=2 * WORKERS)
        pipeline = mapped.add_sink(3).build(num_threads=WORKERS)
        with pipeline.auto_stop():
            yield from pipeline

    return Again(epoch)


@WORKLOAD.runner(
    "HF datasets",
    settings=f"to_iterable_dataset(num_shards={WORKERS}).map in a torch DataLoader with {WORKERS} workers",
    source="https://huggingface.co/docs/datasets/use_with_pytorch#use-multiple-workers",
)
def hf_datasets(folder: Path) -> Pipeline:
    import datasets
    from torch.utils.data import DataLoader

    def map_rows(batch: dict[str, Any]) -> dict[str, Any]:
        return {"id": spin_all(batch["id"])}

    rows = datasets.Dataset.from_dict({"id": np.arange(numbers(folder))}).to_iterable_dataset(num_shards=WORKERS)
    mapped: Any = rows.map(map_rows, batched=True, batch_size=BATCH).with_format("torch")
    return DataLoader(mapped, BATCH, num_workers=WORKERS, persistent_workers=True)


@WORKLOAD.runner(
    "ray.data",
    settings=f"map_batches, {WORKERS} CPUs",
    source="https://docs.ray.io/en/latest/data/transforming-data.html#transforming-batches",
)
def ray_data(folder: Path) -> Pipeline:
    import ray

    ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False

    def map_rows(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {"id": spin_all(batch["id"])}

    mapped = ray.data.range(numbers(folder)).map_batches(map_rows, batch_size=BATCH)
    return Again(lambda: iter(mapped.iter_batches(batch_size=BATCH, batch_format="numpy")))


@WORKLOAD.runner("numpy")
def loop(folder: Path) -> Pipeline:
    def epoch() -> Iterator[np.ndarray]:
        made = map(spin, range(numbers(folder)))
        while batch := list(islice(made, BATCH)):
            yield np.array(batch)

    return Again(epoch)


@WORKLOAD.limit(f"the function alone, in {WORKERS} processes, nothing sent")
def alone(folder: Path) -> int:
    whole = range(numbers(folder))
    fork = multiprocessing.get_context("fork")
    parts = [fork.Process(target=call_all, args=(whole[worker::WORKERS],)) for worker in range(WORKERS)]
    for process in parts:
        process.start()
    for process in parts:
        process.join()
        assert process.exitcode == 0
    return len(whole)


def call_all(chosen: Iterable[int]) -> None:
    for number in chosen:
        spin(number)
