"""Arrays in memory -> shuffle of all elements -> batch(128), 30 epochs: what a library adds to gathering rows.

Left out: WebDataset, which reads shards and not arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from harness.workload import Again, Pipeline, Workload

from workloads import slices_shuffle_buffer as buffered
from workloads.slices_shuffle_buffer import BATCH, EPOCHS, ROWS, Rows, again_and_again, arrays, hf_rows, ray_rows

WORKLOAD = Workload(
    title=f"arrays of {ROWS:,} x 28 x 28 -> shuffle(all) -> batch({BATCH}), {EPOCHS} epochs",
    make_data=buffered.make_data,
    count=buffered.count,
    digest=buffered.digest,
)


@WORKLOAD.runner("dataset")
def dataset(folder: Path) -> Pipeline:
    from dataset import Dataset

    slices = Dataset.from_tensor_slices(arrays(folder))
    return slices.shuffle(len(slices)).batch(BATCH).repeat(EPOCHS)


@WORKLOAD.runner(
    "tf.data",
    settings="a buffer for all elements; prefetch(AUTOTUNE)",
    source="https://www.tensorflow.org/api_docs/python/tf/data/Dataset#shuffle",
)
def tf_data(folder: Path) -> Pipeline:
    return buffered.tf_data(folder, len(arrays(folder)[0]))


@WORKLOAD.runner(
    "tf.data, indices",
    settings="shuffles and batches indices, then tf.gather in a parallel map and prefetch, both AUTOTUNE",
    source="https://www.tensorflow.org/guide/data_performance#vectorizing_mapping",
)
def tf_data_indices(folder: Path) -> Pipeline:
    return buffered.tf_data_indices(folder, len(arrays(folder)[0]))


@WORKLOAD.runner(
    "grain",
    settings="no threads for data in memory",
    source="https://google-grain.readthedocs.io/en/latest/tutorials/dataset_basic_tutorial.html",
)
def grain_(folder: Path) -> Pipeline:
    import grain

    shuffled = grain.MapDataset.source(Rows(folder)).shuffle(seed=0).batch(BATCH).repeat(EPOCHS)
    return shuffled.to_iter_dataset(grain.ReadOptions(num_threads=0))


@WORKLOAD.runner(
    "grain, indices",
    settings="shuffles and batches indices, then gathers rows in a map; no threads for data in memory",
    source="https://google-grain.readthedocs.io/en/latest/tutorials/dataset_basic_tutorial.html",
)
def grain_indices(folder: Path) -> Pipeline:
    import grain

    rows = Rows(folder)
    chosen = grain.MapDataset.range(len(rows)).shuffle(seed=0).batch(BATCH).repeat(EPOCHS)
    return chosen.map(rows.__getitem__).to_iter_dataset(grain.ReadOptions(num_threads=0))


def torch_rows(folder: Path) -> Any:
    import torch

    return torch.utils.data.TensorDataset(*map(torch.from_numpy, arrays(folder)))


def torch_batches_of_indices(rows: Any) -> Any:
    from torch.utils.data import BatchSampler, RandomSampler

    return BatchSampler(RandomSampler(rows), BATCH, drop_last=False)


@WORKLOAD.runner(
    "torch",
    settings="DataLoader(TensorDataset, shuffle=True), in the same process, which is fastest for rows in memory",
    source="https://docs.pytorch.org/docs/stable/data.html#single-process-data-loading",
)
def torch(folder: Path) -> Pipeline:
    from torch.utils.data import DataLoader

    return again_and_again(DataLoader(torch_rows(folder), BATCH, shuffle=True))


@WORKLOAD.runner(
    "torch, 2 workers",
    settings="DataLoader(TensorDataset, shuffle=True), persistent worker processes",
    source="https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading",
)
def torch_workers(folder: Path) -> Pipeline:
    from torch.utils.data import DataLoader

    loader = DataLoader(torch_rows(folder), BATCH, shuffle=True, num_workers=2, persistent_workers=True)
    return again_and_again(loader)


@WORKLOAD.runner(
    "torch, bulk indices",
    settings="DataLoader(TensorDataset, sampler=BatchSampler(RandomSampler), batch_size=None), in the same process",
    source="https://docs.pytorch.org/docs/stable/data.html#disable-automatic-batching",
)
def torch_bulk(folder: Path) -> Pipeline:
    from torch.utils.data import DataLoader

    rows = torch_rows(folder)
    return again_and_again(DataLoader(rows, batch_size=None, sampler=torch_batches_of_indices(rows)))


@WORKLOAD.runner(
    "torchdata.nodes",
    settings="MapStyleWrapper over batches of indices, in the same thread",
    source="https://meta-pytorch.org/data/main/getting_started_with_torchdata_nodes.html",
)
def torchdata_nodes(folder: Path) -> Pipeline:
    from torchdata.nodes import Loader, MapStyleWrapper

    rows = torch_rows(folder)
    return again_and_again(Loader(MapStyleWrapper(rows, torch_batches_of_indices(rows))))


@WORKLOAD.runner(
    "mlx-data",
    settings="ordered_prefetch(8, 2): two threads",
    source="https://ml-explore.github.io/mlx-data/build/html/quick_start.html",
)
def mlx_data(folder: Path) -> Pipeline:
    import mlx.data as dx

    images, labels = arrays(folder)
    buffer = dx.buffer_from_vector([{"image": i, "label": n} for i, n in zip(images, labels, strict=True)])

    def epoch() -> Iterator[Any]:
        return iter(buffer.shuffle().batch(BATCH).ordered_prefetch(8, 2))

    return again_and_again(Again(epoch))


@WORKLOAD.runner(
    "spdl",
    settings="DataLoader over batches of shuffled indices, rows gathered in 2 threads",
    source="https://facebookresearch.github.io/spdl/main/migration/pytorch.html",
)
def spdl(folder: Path) -> Pipeline:
    from spdl.dataloader import DataLoader

    rows = Rows(folder)

    def chosen() -> Iterator[np.ndarray]:
        order = np.random.default_rng().permutation(len(rows))
        yield from (order[start : start + BATCH] for start in range(0, len(order), BATCH))

    all_chosen = again_and_again(Again(chosen))
    return DataLoader(all_chosen, preprocessor=rows.__getitem__, num_threads=2)


@WORKLOAD.runner(
    "HF datasets",
    settings="shuffle() makes new indices each epoch; in the format numpy, configured to keep uint8",
    source="https://huggingface.co/docs/datasets/process#shuffle",
)
def hf_datasets(folder: Path) -> Pipeline:
    rows = hf_rows(folder).with_format("numpy", dtype=np.uint8)
    return again_and_again(Again(lambda: rows.shuffle().iter(batch_size=BATCH)))


@WORKLOAD.runner(
    "ray.data",
    settings="random_shuffle() each epoch, 2 CPUs",
    source="https://docs.ray.io/en/latest/data/shuffling-data.html#shuffle-all-rows",
)
def ray_data(folder: Path) -> Pipeline:
    rows = ray_rows(folder).materialize()

    def epoch() -> Iterable[Any]:
        return rows.random_shuffle().iter_batches(batch_size=BATCH, batch_format="numpy")

    return again_and_again(Again(epoch))


WORKLOAD.runner("numpy")(buffered.loop)
WORKLOAD.limits.extend(buffered.WORKLOAD.limits)
