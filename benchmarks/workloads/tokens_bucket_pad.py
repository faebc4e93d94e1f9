"""Token ids of varying length -> bucket by length -> padded batches of 64: what it costs to sort them in and fill up.

Libraries without buckets have the indices put into buckets by hand, as their users do, and pad batches of those. Left
out: Grain, which packs sequences and does not pad them; WebDataset, Hugging Face datasets and ray.data, which have no
buckets and leave padding to a collator of torch.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from harness import digests
from harness.workload import Again, Pipeline, Workload

SEQUENCES = 200_000
BOUNDARIES = [16, 32, 64, 128, 256]
BATCH = 64
SIZES = [BATCH] * (len(BOUNDARIES) + 1)


def make_data(folder: Path, scale: float) -> None:
    """Sentences as they come: mostly short, some long. No token is 0, which fills up."""
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.lognormal(3.3, 0.8, int(SEQUENCES * scale)), 1, 512).astype(np.int64)
    np.save(folder / "lengths.npy", lengths)
    np.save(folder / "tokens.npy", rng.integers(1, 32_000, lengths.sum(), np.int32))


def sequences(folder: Path) -> list[np.ndarray]:
    return np.split(np.load(folder / "tokens.npy"), np.cumsum(np.load(folder / "lengths.npy"))[:-1])


def tokens_of(batch: Any) -> Any:
    return batch["tokens"] if isinstance(batch, dict) else batch


def digest(batch: Any) -> int:
    """Of the tokens without the padding, so that it does not matter which sequences share a batch."""
    rows = np.asarray(tokens_of(batch), np.int32)
    return digests.of_texts(row[:length].tobytes() for row, length in zip(rows, (rows != 0).sum(1), strict=True))


WORKLOAD = Workload(
    title=f"{SEQUENCES:,} token lists -> bucket_by_sequence_length -> padded batches of {BATCH}",
    make_data=make_data,
    count=lambda batch: len(tokens_of(batch)),
    digest=digest,
    unit="sequences",
)


def pad(chosen: Sequence[np.ndarray]) -> np.ndarray:
    padded = np.zeros((len(chosen), max(map(len, chosen))), chosen[0].dtype)
    for row, sequence in zip(padded, chosen, strict=True):
        row[: len(sequence)] = sequence
    return padded


class Buckets:
    """Batches of the indices of sequences of like length: a batch sampler."""

    def __init__(self, rows: Sequence[Any]) -> None:
        self.rows = rows

    def __iter__(self) -> Iterator[list[int]]:
        buckets: list[list[int]] = [[] for _ in SIZES]
        for index, row in enumerate(self.rows):
            bucket = bisect.bisect_right(BOUNDARIES, len(row))
            buckets[bucket].append(index)
            if len(buckets[bucket]) == SIZES[bucket]:
                yield buckets[bucket]
                buckets[bucket] = []
        yield from filter(None, buckets)


@WORKLOAD.runner("dataset", settings="arrays from a generator, padded in the buckets")
def dataset(folder: Path) -> Pipeline:
    from dataset import Dataset, TensorSpec

    rows = sequences(folder)
    made = Dataset.from_generator(lambda: rows, output_signature=TensorSpec((None,), np.int32))
    return made.bucket_by_sequence_length(len, BOUNDARIES, SIZES)


def rows_by_dataset(folder: Path) -> Any:
    from dataset import Dataset, RaggedTensor

    return Dataset.from_tensor_slices(RaggedTensor.from_rows(sequences(folder)))


@WORKLOAD.runner("dataset, slices", settings="slices of a RaggedTensor, padded in the buckets")
def dataset_slices(folder: Path) -> Pipeline:
    return rows_by_dataset(folder).bucket_by_sequence_length(len, BOUNDARIES, SIZES)


@WORKLOAD.runner("dataset, ragged", settings="slices of a RaggedTensor, no_padding, to_tensor() in a map")
def dataset_ragged(folder: Path) -> Pipeline:
    from dataset import RaggedTensor

    batches = rows_by_dataset(folder).bucket_by_sequence_length(len, BOUNDARIES, SIZES, no_padding=True)
    return batches.map(RaggedTensor.to_tensor)


def tf_buckets(folder: Path, **options: Any) -> Any:
    import tensorflow as tf

    ragged = tf.RaggedTensor.from_row_lengths(np.load(folder / "tokens.npy"), np.load(folder / "lengths.npy"))
    rows = tf.data.Dataset.from_tensor_slices(ragged)
    if not options:
        rows = rows.map(tf.identity)  # makes of each row a tensor, which can be padded
    return rows.bucket_by_sequence_length(lambda row: tf.shape(row)[0], BOUNDARIES, SIZES, **options)


@WORKLOAD.runner(
    "tf.data",
    settings="slices of a RaggedTensor, padded in the buckets; prefetch(AUTOTUNE)",
    source="https://www.tensorflow.org/api_docs/python/tf/data/Dataset#bucket_by_sequence_length",
)
def tf_data(folder: Path) -> Pipeline:
    import tensorflow as tf

    return Again(tf_buckets(folder).prefetch(tf.data.AUTOTUNE).as_numpy_iterator)


@WORKLOAD.runner(
    "tf.data, ragged",
    settings="slices of a RaggedTensor, no_padding, to_tensor() in a parallel map; map and prefetch AUTOTUNE",
    source="https://www.tensorflow.org/guide/ragged_tensor#tfdata",
)
def tf_data_ragged(folder: Path) -> Pipeline:
    import tensorflow as tf

    batches = tf_buckets(folder, no_padding=True)
    padded = batches.map(lambda rows: rows.to_tensor(), num_parallel_calls=tf.data.AUTOTUNE)
    return Again(padded.prefetch(tf.data.AUTOTUNE).as_numpy_iterator)


@WORKLOAD.runner(
    "torch",
    settings="DataLoader with a batch sampler by hand and pad_sequence, in the same process",
    source="https://docs.pytorch.org/docs/stable/data.html#working-with-collate-fn",
)
def torch(folder: Path, workers: int = 0) -> Pipeline:
    from torch import from_numpy
    from torch.nn.utils.rnn import pad_sequence
    from torch.utils.data import DataLoader

    def collate(chosen: list[Any]) -> Any:
        return pad_sequence(chosen, batch_first=True)

    rows: Any = [from_numpy(row) for row in sequences(folder)]
    chosen: Any = Buckets(rows)
    persistent = {"num_workers": workers, "persistent_workers": workers > 0}
    return DataLoader(rows, batch_sampler=chosen, collate_fn=collate, **persistent)


@WORKLOAD.runner(
    "torch, 2 workers",
    settings="the same in persistent worker processes",
    source="https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading",
)
def torch_workers(folder: Path) -> Pipeline:
    return torch(folder, workers=2)


@WORKLOAD.runner(
    "torchdata.nodes",
    settings="MapStyleWrapper over a sampler by hand, pad_sequence in the same thread",
    source="https://meta-pytorch.org/data/main/getting_started_with_torchdata_nodes.html",
)
def torchdata_nodes(folder: Path) -> Pipeline:
    from torch import from_numpy
    from torch.nn.utils.rnn import pad_sequence
    from torchdata.nodes import Loader, Mapper, SamplerWrapper

    rows = [from_numpy(row) for row in sequences(folder)]

    def fetch(chosen: list[int]) -> Any:
        return pad_sequence([rows[index] for index in chosen], batch_first=True)

    return Loader(Mapper(SamplerWrapper(Buckets(rows)), fetch))  # type: ignore[arg-type]


@WORKLOAD.runner(
    "mlx-data",
    settings="perm() of indices in buckets by hand, batch, ordered_prefetch(8, 2); dynamic_batch hangs occasionally",
    source="https://ml-explore.github.io/mlx-data/build/html/python/buffer.html",
)
def mlx_data(folder: Path) -> Pipeline:
    import mlx.data as dx

    arrays = sequences(folder)
    rows = dx.buffer_from_vector([{"tokens": row} for row in arrays])

    def epoch() -> Iterator[Any]:
        buckets = list(Buckets(arrays))
        order = rows.perm([index for chosen in buckets for index in chosen])
        return iter(order.batch(list(map(len, buckets))).ordered_prefetch(8, 2))

    return Again(epoch)


@WORKLOAD.runner(
    "spdl",
    settings="a source of indices in buckets by hand, padded with NumPy in 2 threads",
    source="https://facebookresearch.github.io/spdl/main/migration/pytorch.html",
)
def spdl(folder: Path) -> Pipeline:
    from spdl.dataloader import DataLoader

    rows = sequences(folder)

    def fetch(chosen: list[int]) -> np.ndarray:
        return pad([rows[index] for index in chosen])

    return DataLoader(Buckets(rows), preprocessor=fetch, num_threads=2)


@WORKLOAD.runner("numpy")
def loop(folder: Path) -> Pipeline:
    rows = sequences(folder)
    return Again(lambda: (pad([rows[index] for index in chosen]) for chosen in Buckets(rows)))


@cache
def loaded(folder: Path) -> tuple[np.ndarray, int]:
    return np.load(folder / "tokens.npy"), len(np.load(folder / "lengths.npy"))


@WORKLOAD.limit("memory copy of the tokens, without filling up, on one core")
def copy(folder: Path) -> int:
    tokens, length = loaded(folder)
    tokens.copy()
    return length
