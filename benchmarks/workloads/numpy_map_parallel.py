"""Arrays -> map(a NumPy function of about 20 us) on two cores -> batch(128): what it costs to call and to spread it.

Each library spreads the calls over two threads or two processes, as it can; where it can do both, both are here.
Left out: WebDataset, which maps in the workers of a torch DataLoader as torch itself does.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from harness.workload import Again, Pipeline, Workload

ROWS = 40_000
SAMPLES = 1000
BATCH = 128
WORKERS = 2


def make_data(folder: Path, scale: float) -> None:
    rows = np.random.default_rng(0).standard_normal((int(ROWS * scale), SAMPLES), np.float32)
    np.save(folder / "signals.npy", rows)


def signals(folder: Path) -> np.ndarray:
    return np.load(folder / "signals.npy")


def spectrum(signal: np.ndarray) -> np.ndarray:
    """About 20 us for 1000 samples."""
    return np.log1p(np.abs(np.fft.rfft(signal)))


def spectra(rows: Sequence[np.ndarray]) -> np.ndarray:
    return np.stack([spectrum(row) for row in rows])


class Spectra:
    """What a torch DataLoader wants: each element made when it is asked for."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> np.ndarray:
        return spectra([self.rows[i] for i in index]) if isinstance(index, list) else spectrum(self.rows[index])


def column(batch: Any) -> Any:
    return batch["signal"] if isinstance(batch, dict) else batch


WORKLOAD = Workload(
    title=f"arrays of {ROWS:,} x {SAMPLES} -> map(NumPy, 20 us) on {WORKERS} cores -> batch({BATCH})",
    make_data=make_data,
    count=lambda batch: len(column(batch)),
    digest=lambda batch: float(np.asarray(column(batch), np.float64).sum()),
    tolerance=1e-6,  # TensorFlow has transforms and logarithms of its own, and sums of floats depend on the order
    notes="A library that analyzes the function may call NumPy once for many rows; tf.data with its own ops does so.",
)


@WORKLOAD.runner("dataset", settings=f"num_parallel_calls={WORKERS}: threads; prefetch(AUTOTUNE)")
def dataset(folder: Path) -> Pipeline:
    from dataset import AUTOTUNE, Dataset

    rows = Dataset.from_tensor_slices(signals(folder))
    return rows.map(spectrum, num_parallel_calls=WORKERS).batch(BATCH).prefetch(AUTOTUNE)


@WORKLOAD.runner("dataset, processes", settings=f'num_parallel_calls={WORKERS}, executor="process"; prefetch(AUTOTUNE)')
def dataset_processes(folder: Path) -> Pipeline:
    from dataset import AUTOTUNE, Dataset

    rows = Dataset.from_tensor_slices(signals(folder))
    mapped = rows.map(spectrum, num_parallel_calls=WORKERS, executor="process")
    return mapped.batch(BATCH).prefetch(AUTOTUNE)


@WORKLOAD.runner(
    "tf.data",
    settings="tf.numpy_function in a parallel map, and prefetch, both AUTOTUNE; its calls share the interpreter's lock",
    source="https://www.tensorflow.org/guide/data#applying_arbitrary_python_logic",
)
def tf_data(folder: Path) -> Pipeline:
    import tensorflow as tf

    def call(row: Any) -> Any:
        made = tf.numpy_function(spectrum, [row], tf.float32, stateful=False)
        return tf.ensure_shape(made, (SAMPLES // 2 + 1,))

    rows = tf.data.Dataset.from_tensor_slices(signals(folder)).map(call, num_parallel_calls=tf.data.AUTOTUNE)
    return Again(rows.batch(BATCH).prefetch(tf.data.AUTOTUNE).as_numpy_iterator)


@WORKLOAD.runner(
    "tf.data, batched",
    settings="the same after the batch: one tf.numpy_function for 128 calls of the function",
    source="https://www.tensorflow.org/guide/data_performance#vectorizing_mapping",
)
def tf_data_batched(folder: Path) -> Pipeline:
    import tensorflow as tf

    def call(rows: Any) -> Any:
        return tf.numpy_function(spectra, [rows], tf.float32, stateful=False)

    batches = tf.data.Dataset.from_tensor_slices(signals(folder)).batch(BATCH)
    mapped = batches.map(call, num_parallel_calls=tf.data.AUTOTUNE)
    return Again(mapped.prefetch(tf.data.AUTOTUNE).as_numpy_iterator)


@WORKLOAD.runner(
    "tf.data, TensorFlow ops",
    settings="the function rewritten with tf.signal.rfft; parallel map and prefetch, both AUTOTUNE",
    source="https://www.tensorflow.org/guide/data_performance#parallelizing_data_transformation",
)
def tf_data_ops(folder: Path) -> Pipeline:
    import tensorflow as tf

    def call(row: Any) -> Any:
        return tf.math.log1p(tf.abs(tf.signal.rfft(row)))

    rows = tf.data.Dataset.from_tensor_slices(signals(folder)).map(call, num_parallel_calls=tf.data.AUTOTUNE)
    return Again(rows.batch(BATCH).prefetch(tf.data.AUTOTUNE).as_numpy_iterator)


@WORKLOAD.runner(
    "grain, threads",
    settings=f"ReadOptions(num_threads={WORKERS})",
    source="https://google-grain.readthedocs.io/en/latest/tutorials/dataset_basic_tutorial.html",
)
def grain_threads(folder: Path) -> Pipeline:
    import grain

    rows = grain.MapDataset.source(signals(folder)).map(spectrum)
    return rows.to_iter_dataset(grain.ReadOptions(num_threads=WORKERS)).batch(BATCH)


@WORKLOAD.runner(
    "grain, processes",
    settings=f"mp_prefetch with {WORKERS} workers after the batch; no threads in them, as data is in memory",
    source="https://google-grain.readthedocs.io/en/latest/tutorials/dataset_advanced_tutorial.html",
)
def grain_processes(folder: Path) -> Pipeline:
    import grain
    from absl import flags

    flags.FLAGS.mark_as_parsed()  # its workers read flags, which only absl's own start of a program parses
    rows = grain.MapDataset.source(signals(folder)).map(spectrum)
    batches = rows.to_iter_dataset(grain.ReadOptions(num_threads=0)).batch(BATCH)
    return batches.mp_prefetch(grain.MultiprocessingOptions(num_workers=WORKERS))


@WORKLOAD.runner(
    "torch",
    settings=f"DataLoader of a map-style Dataset, {WORKERS} persistent workers",
    source="https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading",
)
def torch(folder: Path) -> Pipeline:
    from torch.utils.data import DataLoader

    rows: Any = Spectra(signals(folder))
    return DataLoader(rows, BATCH, num_workers=WORKERS, persistent_workers=True)


@WORKLOAD.runner(
    "torch, bulk indices",
    settings="the same with sampler=BatchSampler(SequentialSampler) and batch_size=None",
    source="https://docs.pytorch.org/docs/stable/data.html#disable-automatic-batching",
)
def torch_bulk(folder: Path) -> Pipeline:
    from torch.utils.data import BatchSampler, DataLoader, SequentialSampler

    rows: Any = Spectra(signals(folder))
    chosen = BatchSampler(SequentialSampler(rows), BATCH, drop_last=False)
    return DataLoader(rows, batch_size=None, sampler=chosen, num_workers=WORKERS, persistent_workers=True)


@WORKLOAD.runner(
    "torchdata.nodes, threads",
    settings=f"ParallelMapper with {WORKERS} threads over batches of rows",
    source="https://meta-pytorch.org/data/main/torchdata.nodes.html#torchdata.nodes.ParallelMapper",
)
def torchdata_nodes_threads(folder: Path, method: str = "thread") -> Pipeline:
    from torchdata.nodes import Batcher, IterableWrapper, Loader, ParallelMapper

    rows = Batcher(IterableWrapper(signals(folder)), BATCH, drop_last=False)
    return Loader(ParallelMapper(rows, spectra, WORKERS, method=method))  # type: ignore[arg-type]


@WORKLOAD.runner(
    "torchdata.nodes, processes",
    settings=f"ParallelMapper with {WORKERS} processes over batches of rows",
    source="https://meta-pytorch.org/data/main/torchdata.nodes.html#torchdata.nodes.ParallelMapper",
)
def torchdata_nodes_processes(folder: Path) -> Pipeline:
    return torchdata_nodes_threads(folder, "process")


@WORKLOAD.runner(
    "mlx-data",
    settings=f"key_transform, batch, ordered_prefetch with {WORKERS} threads",
    source="https://ml-explore.github.io/mlx-data/build/html/quick_start.html#about-the-gil",
)
def mlx_data(folder: Path) -> Pipeline:
    import mlx.data as dx

    rows = dx.buffer_from_vector([{"signal": row} for row in signals(folder)])
    mapped = rows.key_transform("signal", spectrum).batch(BATCH)
    return Again(lambda: iter(mapped.ordered_prefetch(8, WORKERS)))


@WORKLOAD.runner(
    "spdl, threads",
    settings=f"pipe(concurrency={WORKERS}) over batches of rows",
    source="https://facebookresearch.github.io/spdl/main/getting_started/parallelism.html",
)
def spdl_threads(folder: Path) -> Pipeline:
    from spdl.pipeline import PipelineBuilder

    rows = signals(folder)

    def epoch() -> Iterator[np.ndarray]:
        builder = PipelineBuilder().add_source(rows[i : i + BATCH] for i in range(0, len(rows), BATCH))
        pipeline = builder.pipe(spectra, concurrency=WORKERS).add_sink(3).build(num_threads=WORKERS)
        with pipeline.auto_stop():
            yield from pipeline

    return Again(epoch)


@WORKLOAD.runner(
    "spdl, processes",
    settings=f"pipe(concurrency={WORKERS}) over batches of rows, a persistent ProcessPoolExecutor as executor",
    source="https://facebookresearch.github.io/spdl/main/getting_started/parallelism.html",
)
def spdl_processes(folder: Path) -> Pipeline:
    from concurrent.futures import ProcessPoolExecutor

    from spdl.pipeline import PipelineBuilder

    rows = signals(folder)
    pool = ProcessPoolExecutor(WORKERS, multiprocessing.get_context("forkserver"))

    def epoch() -> Iterator[np.ndarray]:
        builder = PipelineBuilder().add_source(rows[i : i + BATCH] for i in range(0, len(rows), BATCH))
        pipeline = builder.pipe(spectra, executor=pool, concurrency=WORKERS).add_sink(3).build(num_threads=WORKERS)
        with pipeline.auto_stop():
            yield from pipeline

    return Again(epoch)


@WORKLOAD.runner(
    "HF datasets",
    settings=f"to_iterable_dataset(num_shards={WORKERS}).map(batched) in a torch DataLoader with {WORKERS} workers",
    source="https://huggingface.co/docs/datasets/use_with_pytorch#use-multiple-workers",
)
def hf_datasets(folder: Path) -> Pipeline:
    import datasets
    from torch.utils.data import DataLoader

    def map_rows(batch: dict[str, Any]) -> dict[str, Any]:
        return {"signal": spectra(batch["signal"])}

    rows = datasets.Dataset.from_dict({"signal": signals(folder)}).with_format("numpy")
    mapped: Any = rows.to_iterable_dataset(num_shards=WORKERS).map(map_rows, batched=True, batch_size=BATCH)
    return DataLoader(mapped.with_format("torch"), BATCH, num_workers=WORKERS, persistent_workers=True)


@WORKLOAD.runner(
    "ray.data",
    settings=f"map_batches, {WORKERS} CPUs",
    source="https://docs.ray.io/en/latest/data/transforming-data.html#transforming-batches",
)
def ray_data(folder: Path) -> Pipeline:
    import ray

    ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    blocks = np.array_split(signals(folder), 4 * WORKERS)  # a block is what a task works on

    def map_rows(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {"signal": spectra(batch["data"])}

    mapped = ray.data.from_numpy(blocks).map_batches(map_rows, batch_size=BATCH)
    return Again(lambda: iter(mapped.iter_batches(batch_size=BATCH, batch_format="numpy")))


@WORKLOAD.runner("numpy")
def loop(folder: Path) -> Pipeline:
    rows = signals(folder)
    return Again(lambda: (spectra(rows[start : start + BATCH]) for start in range(0, len(rows), BATCH)))


cached_signals = cache(signals)  # to read them is not what the machine's limit is about


@WORKLOAD.limit(f"the function alone, in {WORKERS} processes, nothing sent")
def alone(folder: Path) -> int:
    rows = cached_signals(folder)
    fork = multiprocessing.get_context("fork")
    halves = [fork.Process(target=call_all, args=(half,)) for half in np.array_split(rows, WORKERS)]
    for process in halves:
        process.start()
    for process in halves:
        process.join()
        assert process.exitcode == 0
    return len(rows)


def call_all(rows: np.ndarray) -> None:
    for row in rows:
        spectrum(row)
