"""map(read 4 kB that take 1 ms to come) -> batch(32): distant storage, played by time.sleep in a Python function.

Nothing but how many reads are under way at once decides. Libraries with a tuner find that number; the others are given
16. Left out: webdataset and the package tfrecord, which read files and nothing else; Hugging Face datasets, whose map
caches what it made, and whose streams read one by one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from harness.workload import Again, Pipeline, Workload
from harness_data import batches_of, start_ray

READS = 16_000
BATCH = 32
BYTES = 4096
WAIT_S = 0.001
WORKERS = 16

_BLOCK = np.random.default_rng(0).integers(0, 256, BYTES, np.uint8)


def make_data(folder: Path, scale: float) -> None:
    """How many reads."""
    (folder / "reads").write_text(str(int(READS * scale)))


def reads(folder: Path) -> int:
    return int((folder / "reads").read_text())


def fetch(index: Any) -> np.ndarray:
    """One read: wait, then 4 kB that begin with the index."""
    time.sleep(WAIT_S)
    block = _BLOCK.copy()
    block[:8] = np.frombuffer(int(index).to_bytes(8, "little"), np.uint8)
    return block


def blocks_of(batch: Any) -> Any:
    return batch["block"] if isinstance(batch, dict) else batch


def digest(batch: Any) -> int:
    """Not CRCs, whose sum over neighbouring numbers hardly depends on what else is in a block."""
    blocks = np.ascontiguousarray(np.asarray(blocks_of(batch), np.uint8))
    assert blocks.shape[1:] == (BYTES,)
    indices = blocks[:, :8].copy().view("<i8")[:, 0]
    return int(((indices + 1) * blocks[:, 8:].sum(1, np.int64)).sum())


WORKLOAD = Workload(
    title="range -> map(1 ms of waiting, 4 kB) -> batch(32), autotuned",
    make_data=make_data,
    count=lambda batch: len(blocks_of(batch)),
    digest=digest,
    unit="reads",
    small=0.02,
    notes="The reference is a pool of 16 threads. A tuner may use more threads and be faster, but it must"
    " find their number within the measured time.",
)


@WORKLOAD.runner("dataset", settings="map and prefetch with AUTOTUNE")
def dataset(folder: Path) -> Pipeline:
    from dataset import AUTOTUNE, Dataset

    return Dataset.range(reads(folder)).map(fetch, num_parallel_calls=AUTOTUNE).batch(BATCH).prefetch(AUTOTUNE)


@WORKLOAD.runner("dataset, 16 calls", settings="map(num_parallel_calls=16), prefetch(AUTOTUNE)")
def dataset_16(folder: Path) -> Pipeline:
    from dataset import AUTOTUNE, Dataset

    return Dataset.range(reads(folder)).map(fetch, num_parallel_calls=WORKERS).batch(BATCH).prefetch(AUTOTUNE)


def fetch_all(indices: Any) -> np.ndarray:
    """A batch, read one after another: what some libraries are faster with, since they hand over less often."""
    return np.stack([fetch(index) for index in indices])


@WORKLOAD.runner("dataset, batches", settings="map of batches of indices and prefetch with AUTOTUNE")
def dataset_batches(folder: Path) -> Pipeline:
    from dataset import AUTOTUNE, Dataset

    indices = Dataset.range(reads(folder)).batch(BATCH)
    return indices.map(fetch_all, num_parallel_calls=AUTOTUNE).prefetch(AUTOTUNE)


def mapped_by_tf(folder: Path, calls: int) -> Pipeline:
    import tensorflow as tf

    def call(index: Any) -> Any:
        block = tf.numpy_function(fetch, [index], tf.uint8)
        block.set_shape((BYTES,))
        return block

    blocks = tf.data.Dataset.range(reads(folder)).map(call, num_parallel_calls=calls)
    return Again(blocks.batch(BATCH).prefetch(tf.data.AUTOTUNE).as_numpy_iterator)


@WORKLOAD.runner(
    "tf.data",
    settings="map of numpy_function and prefetch, both AUTOTUNE",
    source="https://www.tensorflow.org/guide/data_performance#parallelizing_data_transformation",
)
def tf_data(folder: Path) -> Pipeline:
    import tensorflow as tf

    return mapped_by_tf(folder, tf.data.AUTOTUNE)


@WORKLOAD.runner(
    "tf.data, 16 calls",
    settings="map of numpy_function with 16 calls, prefetch(AUTOTUNE)",
    source="https://www.tensorflow.org/guide/data_performance#parallelizing_data_transformation",
)
def tf_data_16(folder: Path) -> Pipeline:
    return mapped_by_tf(folder, WORKERS)


@WORKLOAD.runner(
    "tf.data, batches",
    settings="map of numpy_function over batches of indices and prefetch, both AUTOTUNE",
    source="https://www.tensorflow.org/guide/data_performance#vectorizing_mapping",
)
def tf_data_batches(folder: Path) -> Pipeline:
    import tensorflow as tf

    def call(indices: Any) -> Any:
        return tf.numpy_function(fetch_all, [indices], tf.uint8)

    batches = tf.data.Dataset.range(reads(folder)).batch(BATCH).map(call, num_parallel_calls=tf.data.AUTOTUNE)
    return Again(batches.prefetch(tf.data.AUTOTUNE).as_numpy_iterator)


@WORKLOAD.runner(
    "grain",
    settings="to_iter_dataset() with its 16 threads and buffer of 500; its autotuner isn't released",
    source="https://google-grain.readthedocs.io/",
)
def grain(folder: Path) -> Pipeline:
    import grain

    return grain.MapDataset.range(reads(folder)).map(fetch).to_iter_dataset().batch(BATCH)


class Blocks:
    """A map-style dataset of torch: one read at each index."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> np.ndarray:
        return fetch(index)


@WORKLOAD.runner(
    "torch",
    settings="16 persistent workers, which are processes; tensors",
    source="https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading",
)
def torch(folder: Path) -> Pipeline:
    from torch.utils.data import DataLoader

    return DataLoader(Blocks(reads(folder)), BATCH, num_workers=WORKERS, persistent_workers=True)


@WORKLOAD.runner(
    "torchdata.nodes",
    settings="ParallelMapper with 16 threads, Batcher, Mapper(np.stack), Prefetcher",
    source="https://pytorch.org/data/0.11/migrate_to_nodes_from_utils.html",
)
def torchdata_nodes(folder: Path) -> Pipeline:
    from torchdata.nodes import Batcher, IterableWrapper, Loader, Mapper, ParallelMapper, Prefetcher

    blocks = ParallelMapper(IterableWrapper(range(reads(folder))), fetch, num_workers=WORKERS, method="thread")
    return Loader(Prefetcher(Mapper(Batcher(blocks, BATCH, drop_last=False), np.stack), prefetch_factor=2))


@WORKLOAD.runner(
    "torchdata.nodes, batches",
    settings="Batcher of indices, then ParallelMapper with 16 threads that read a batch each, Prefetcher",
    source="https://pytorch.org/data/0.11/migrate_to_nodes_from_utils.html",
)
def torchdata_nodes_batches(folder: Path) -> Pipeline:
    from torchdata.nodes import Batcher, IterableWrapper, Loader, ParallelMapper, Prefetcher

    indices = Batcher(IterableWrapper(range(reads(folder))), BATCH, drop_last=False)
    batches = ParallelMapper(indices, fetch_all, num_workers=WORKERS, method="thread")
    return Loader(Prefetcher(batches, prefetch_factor=2))


@WORKLOAD.runner(
    "mlx-data",
    settings="sample_transform with the Python function, batch, then prefetch(16, 16)",
    source="https://ml-explore.github.io/mlx-data/build/html/python/_autosummary/mlx.data.Stream.prefetch.html",
)
def mlx_data(folder: Path) -> Pipeline:
    import mlx.data as dx

    indices = dx.buffer_from_vector([{"index": index} for index in range(reads(folder))])

    def read(sample: dict[str, Any]) -> dict[str, np.ndarray]:
        return {"block": fetch(sample["index"])}

    def epoch() -> Any:
        blocks = indices.to_stream().sample_transform(read)
        return blocks.batch(BATCH).prefetch(WORKERS, WORKERS)

    return Again(epoch)


@WORKLOAD.runner(
    "spdl",
    settings="pipe(concurrency=16), aggregate, np.stack; 16 threads and one more for stacking",
    source="https://facebookresearch.github.io/spdl/0.8.0/generated/spdl.pipeline.PipelineBuilder.html",
)
def spdl(folder: Path) -> Pipeline:
    from spdl.pipeline import PipelineBuilder

    def epoch() -> Iterator[np.ndarray]:
        builder = PipelineBuilder().add_source(range(reads(folder))).pipe(fetch, concurrency=WORKERS)
        pipeline = builder.aggregate(BATCH).pipe(np.stack).add_sink().build(num_threads=WORKERS + 1)
        with pipeline.auto_stop():
            yield from pipeline

    return Again(epoch)


@WORKLOAD.runner(
    "spdl, batches",
    settings="a source of lists of indices, pipe(concurrency=16) of a function that reads a batch",
    source="https://facebookresearch.github.io/spdl/0.8.0/generated/spdl.pipeline.PipelineBuilder.html",
)
def spdl_batches(folder: Path) -> Pipeline:
    from spdl.pipeline import PipelineBuilder

    def epoch() -> Iterator[np.ndarray]:
        builder = PipelineBuilder().add_source(batches_of(range(reads(folder)), BATCH))
        pipeline = builder.pipe(fetch_all, concurrency=WORKERS).add_sink().build(num_threads=WORKERS)
        with pipeline.auto_stop():
            yield from pipeline

    return Again(epoch)


def fetch_for_ray(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {"block": fetch_all(batch["id"])}


@WORKLOAD.runner(
    "ray.data",
    settings="map_batches(num_cpus=2/16), so that 16 tasks run at once, which are processes",
    source="https://docs.ray.io/en/latest/data/transforming-data.html",
)
def ray_data(folder: Path) -> Pipeline:
    indices = start_ray().range(reads(folder), override_num_blocks=4 * WORKERS)
    blocks = indices.map_batches(fetch_for_ray, batch_size=BATCH, num_cpus=2 / WORKERS)
    return Again(lambda: blocks.iter_batches(batch_size=BATCH))


@WORKLOAD.runner("numpy", settings="one read after another")
def loop(folder: Path) -> Pipeline:
    return Again(lambda: map(fetch_all, batches_of(range(reads(folder)), BATCH)))


@WORKLOAD.limit("16 bare threads, a share of the reads each")
def threads(folder: Path) -> int:
    def share(start: int) -> int:
        return sum(1 for _ in map(fetch, range(start, reads(folder), WORKERS)))

    with ThreadPoolExecutor(WORKERS) as pool:
        return sum(pool.map(share, range(WORKERS)))
