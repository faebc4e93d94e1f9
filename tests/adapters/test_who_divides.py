"""Who divides the elements: this library alone, among the workers of torch and among processes, whatever the source."""

import itertools

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from torch.utils.data import ChainDataset, DataLoader, IterableDataset, TensorDataset, get_worker_info
from torch.utils.data._utils import worker

from dataset import Dataset

COUNT = 30


def own_part(numbers):
    """The part of numbers for this worker, as a dataset of torch that divides itself determines it."""
    info = get_worker_info()
    return numbers if info is None else numbers[info.id :: info.num_workers]


class Lazily(IterableDataset):
    def __iter__(self):
        yield from own_part(range(COUNT))


class AtOnce(IterableDataset):
    def __iter__(self):
        return iter(own_part(range(COUNT)))


class Rotated(IterableDataset):
    """A dataset whose order follows from the seed of the worker."""

    def __iter__(self):
        first = 0 if get_worker_info() is None else get_worker_info().seed
        yield from own_part([(first + number) % COUNT for number in range(COUNT)])


TABLE = {"x": list(range(COUNT))}
HF = datasets.Dataset.from_dict(TABLE)
SOURCES = {
    "from_torch: lazily": lambda: Dataset.from_torch(Lazily()),
    "from_torch: at once": lambda: Dataset.from_torch(AtOnce()),
    "from_torch: rotated": lambda: Dataset.from_torch(Rotated()),
    "from_torch: chained": lambda: Dataset.from_torch(ChainDataset([Lazily()])),
    "from_torch: a loader": lambda: Dataset.from_torch(DataLoader(Lazily(), batch_size=None)),
    "from_torch: map-style": lambda: Dataset.from_torch(list(range(COUNT))),
    "from_torch: columns": lambda: Dataset.from_torch(TensorDataset(torch.arange(COUNT))),
    "from_torch: of to_torch": lambda: Dataset.from_torch(Dataset.range(COUNT).to_torch()),
    "from_generator": lambda: Dataset.from_generator(lambda: own_part(range(COUNT))),
    "in another dataset": lambda: Dataset.range(1).flat_map(lambda _: Dataset.from_torch(Lazily())),
    "in the background": lambda: Dataset.from_torch(Lazily()).prefetch(2),
    "by threads": lambda: Dataset.range(1).interleave(lambda _: Dataset.from_torch(Lazily()), num_parallel_calls=2),
    "from_huggingface": lambda: Dataset.from_huggingface(HF),
    "from_huggingface: stream": lambda: Dataset.from_huggingface(HF.to_iterable_dataset(num_shards=3)),
    "from_pandas": lambda: Dataset.from_pandas(pd.DataFrame(TABLE)),
    "from_polars": lambda: Dataset.from_polars(pl.DataFrame(TABLE)),
    "from_arrow": lambda: Dataset.from_arrow(pa.table(TABLE)),
    "from_tensor_slices": lambda: Dataset.from_tensor_slices(np.arange(COUNT)),
}


def value(element):
    """The number in an element, which may be a dict or a tuple of one component."""
    while isinstance(element, dict | tuple | list):
        (element,) = element.values() if isinstance(element, dict) else element
    return int(element)


@pytest.mark.parametrize("workers", [0, 1, 2, 3])
@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("source", SOURCES)
def test_each_element_arrives_once_however_many_workers_and_processes(source, processes, workers, monkeypatch):
    found = []
    tensors = [
        SOURCES[source]().shard_by_process(rank, processes, remainder="keep", seed=1).to_torch()
        for rank in range(processes)
    ]
    for part, number in itertools.product(tensors, range(max(workers, 1))):
        info = worker.WorkerInfo(id=number, num_workers=workers, seed=50 + number, dataset=part) if workers else None
        monkeypatch.setattr(worker, "_worker_info", info)
        found += map(value, part)
    assert sorted(found) == list(range(COUNT))


@pytest.mark.parametrize(
    "make",
    [
        *(SOURCES[name] for name in ("from_torch: lazily", "from_torch: rotated", "from_generator", "by threads")),
        lambda: Dataset.from_torch(Dataset.range(COUNT).shuffle(COUNT).to_torch()),
    ],
)
def test_so_it_does_with_the_processes_of_a_loader(make):
    loader = DataLoader(make().to_torch(), batch_size=None, num_workers=2, multiprocessing_context="fork")
    for _ in range(2):
        assert sorted(map(value, loader)) == list(range(COUNT))


def test_functions_of_a_pipeline_still_find_their_worker(monkeypatch):
    info = worker.WorkerInfo(id=1, num_workers=2, seed=51, dataset=None)
    monkeypatch.setattr(worker, "_worker_info", info)
    seen = Dataset.from_torch(Lazily()).map(lambda x: get_worker_info().id).to_torch()
    for _ in range(2):
        assert {int(number) for number in seen} == {1}
    assert (info.id, info.num_workers, info.seed) == (1, 2, 51)
