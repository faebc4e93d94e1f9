"""The lines of a text file -> batch(1024).

Left out: grain, webdataset and spdl, which have no reader of lines; read one by one through spdl's asyncio queues they
would show only what spdl is not made for.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from harness import digests
from harness.workload import Again, Pipeline, Workload
from harness_data import cache_of_huggingface, chunks_of, objects, read_through, start_ray

LINES = 4_000_000
BATCH = 1024


def make_data(folder: Path, scale: float) -> None:
    """Lines of a number and 20 to 79 hexadecimal digits."""
    count = int(LINES * scale)
    rng = np.random.default_rng(0)
    with (folder / "lines.txt").open("w") as file:
        for start in range(0, count, 10_000):
            lengths = rng.integers(20, 80, min(10_000, count - start))
            ends = lengths.cumsum().tolist()
            digits = rng.bytes(ends[-1] // 2 + 1).hex()
            begins = [0, *ends]
            file.writelines(f"{start + i},{digits[begins[i] : end]}\n" for i, end in enumerate(ends))
    (folder / "count").write_text(str(count))


def lines_of(batch: Any) -> Any:
    """The lines of a batch in whatever form."""
    return next(iter(batch.values())) if isinstance(batch, dict) else batch


def digest(batch: Any) -> int:
    lines = lines_of(batch)
    if isinstance(lines, np.ndarray) and lines.ndim == 2:  # mlx-data has bytes as numbers, with zeros behind the end
        lines = [line.tobytes().rstrip(b"\0") for line in lines]
    return digests.of_texts(lines)


WORKLOAD = Workload(
    title="text lines -> batch(1024)",
    make_data=make_data,
    count=lambda batch: len(lines_of(batch)),
    digest=digest,
    unit="lines",
    notes="Lines are bytes or str, depending on the library.",
)


@WORKLOAD.runner("dataset", settings="batches are arrays of bytes")
def dataset(folder: Path) -> Pipeline:
    from dataset import TextLineDataset

    return TextLineDataset(folder / "lines.txt").batch(BATCH)


@WORKLOAD.runner("dataset, prefetch", settings="prefetch(AUTOTUNE); batches are arrays of bytes")
def dataset_prefetch(folder: Path) -> Pipeline:
    from dataset import AUTOTUNE, TextLineDataset

    return TextLineDataset(folder / "lines.txt").batch(BATCH).prefetch(AUTOTUNE)


@WORKLOAD.runner(
    "tf.data",
    settings="buffer_size of 8 MiB, batch(num_parallel_calls=AUTOTUNE), prefetch(AUTOTUNE); arrays of bytes",
    source="https://www.tensorflow.org/api_docs/python/tf/data/TextLineDataset",
)
def tf_data(folder: Path) -> Pipeline:
    import tensorflow as tf

    lines = tf.data.TextLineDataset(str(folder / "lines.txt"), buffer_size=8 << 20)
    batches = lines.batch(BATCH, num_parallel_calls=tf.data.AUTOTUNE)
    return Again(batches.prefetch(tf.data.AUTOTUNE).as_numpy_iterator)


def lines_by_hand(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        for line in file:
            yield line.rstrip(b"\r\n")


def batches_by_hand(path: Path) -> Iterator[list[bytes]]:
    with path.open("rb") as file:
        while lines := list(islice(file, BATCH)):
            yield [line.rstrip(b"\r\n") for line in lines]


@WORKLOAD.runner(
    "torch",
    settings="an IterableDataset of lines, no workers; batches are lists of bytes",
    source="https://docs.pytorch.org/docs/stable/data.html#iterable-style-datasets",
)
def torch(folder: Path) -> Pipeline:
    from torch.utils.data import DataLoader, IterableDataset

    class Lines(IterableDataset):
        def __iter__(self) -> Iterator[bytes]:
            return lines_by_hand(folder / "lines.txt")

    return DataLoader(Lines(), batch_size=BATCH)


@WORKLOAD.runner(
    "torch, batches",
    settings="an IterableDataset that makes whole batches itself, batch_size=None, no workers; lists of bytes",
    source="https://docs.pytorch.org/docs/stable/data.html#disable-automatic-batching",
)
def torch_batches(folder: Path) -> Pipeline:
    from torch.utils.data import DataLoader, IterableDataset

    class Batches(IterableDataset):
        def __iter__(self) -> Iterator[list[bytes]]:
            return batches_by_hand(folder / "lines.txt")

    return DataLoader(Batches(), batch_size=None, collate_fn=list)


@WORKLOAD.runner(
    "torchdata.nodes",
    settings="IterableWrapper of the lines, Batcher; a Prefetcher would add a thread to one that never waits",
    source="https://pytorch.org/data/0.11/getting_started_with_torchdata_nodes.html",
)
def torchdata_nodes(folder: Path) -> Pipeline:
    from torchdata.nodes import Batcher, IterableWrapper, Loader

    lines = Again(lambda: lines_by_hand(folder / "lines.txt"))
    return Loader(Batcher(IterableWrapper(lines), BATCH, drop_last=False))


@WORKLOAD.runner(
    "mlx-data",
    settings="stream_line_reader, prefetch(8, 2); batches are bytes as numbers, padded with zeros",
    source="https://ml-explore.github.io/mlx-data/build/html/python/_autosummary/mlx.data.Stream.prefetch.html",
)
def mlx_data(folder: Path) -> Pipeline:
    import mlx.data as dx

    def epoch() -> Any:
        return dx.stream_line_reader(str(folder / "lines.txt"), "line").batch(BATCH).prefetch(8, 2)

    return Again(epoch)


@WORKLOAD.runner(
    "HF datasets, Arrow made before",
    settings="converted to Arrow before the clock starts, as usual; lists of str: reads Arrow, not lines",
    source="https://huggingface.co/docs/datasets/nlp_load",
)
def huggingface(folder: Path) -> Pipeline:
    import datasets

    cache = cache_of_huggingface(folder)
    lines = datasets.load_dataset("text", data_files=str(folder / "lines.txt"), split="train", cache_dir=cache)
    return Again(lambda: lines.iter(BATCH))


@WORKLOAD.runner(
    "HF datasets, streaming",
    settings="streaming=True: reads the lines themselves in every pass; lists of str",
    source="https://huggingface.co/docs/datasets/stream",
)
def huggingface_streaming(folder: Path) -> Pipeline:
    import datasets

    lines = datasets.load_dataset("text", data_files=str(folder / "lines.txt"), split="train", streaming=True)
    return Again(lambda: lines.iter(BATCH))


@WORKLOAD.runner(
    "ray.data",
    settings="read_text, 2 cores; arrays of str",
    source="https://docs.ray.io/en/latest/data/working-with-text.html",
)
def ray_data(folder: Path) -> Pipeline:
    lines = start_ray().read_text(str(folder / "lines.txt"), drop_empty_lines=False)
    return Again(lambda: lines.iter_batches(batch_size=BATCH))


@WORKLOAD.runner("numpy", settings="the lines of a file object, as arrays of bytes")
def loop(folder: Path) -> Pipeline:
    return Again(lambda: map(objects, batches_by_hand(folder / "lines.txt")))


@WORKLOAD.limit("page-cache read")
def page_cache(folder: Path) -> int:
    read_through(folder / "lines.txt")
    return int((folder / "count").read_text())


@WORKLOAD.limit("page-cache read, and bytes.split: an object of each line")
def split(folder: Path) -> int:
    return sum(len(bytes(chunk).split(b"\n")) - 1 for chunk in chunks_of(folder / "lines.txt"))
