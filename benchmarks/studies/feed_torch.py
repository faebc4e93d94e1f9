"""Measures a step loop over batches of tensors from arrays in memory, shuffled: to_torch() beside torch's DataLoader.

    python benchmarks/studies/feed_torch.py [--runs 9] [--only TEXT] [--libraries A/B]

The data are 60,000 images of 28x28 bytes with labels, in batches of 128, as in MNIST. The loops do nothing with them,
so that what is measured is the feeding. torch gets one thread in each process, since no loop has work for more. The
DataLoader's workers persist, and are started before the first run that counts; the best of its lines is the one to
compare with. ``permuted index`` is the plain loop that knows its data to be two tensors: what there is to gain at all.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from side_by_side import Suite
from torch.utils.data import DataLoader, TensorDataset

from dataset import Dataset

IMAGES = 60_000
BATCH = 128
BUFFERS = (60_000, 10_000)
WORKERS = (0, 1, 2)


def make_data(folder: Path) -> None:
    """Write the two arrays."""
    random = np.random.default_rng(0)
    np.save(folder / "images.npy", random.integers(0, 256, (IMAGES, 28, 28), np.uint8))
    np.save(folder / "labels.npy", random.integers(0, 10, IMAGES))


suite = Suite(__doc__, make_data, unit="images")


@functools.cache
def arrays(folder: Path) -> tuple[Any, Any]:
    torch.set_num_threads(1)
    return np.load(folder / "images.npy"), np.load(folder / "labels.npy")


@functools.cache
def tensors(folder: Path) -> tuple[Any, Any]:
    return tuple(map(torch.from_numpy, arrays(folder)))


@functools.cache
def feed(folder: Path, buffer: int) -> Iterable[Any]:
    return Dataset.from_tensor_slices(arrays(folder)).shuffle(buffer).batch(BATCH).to_torch()


@functools.cache
def loader(folder: Path, workers: int) -> Iterable[Any]:
    keeps = {"persistent_workers": True} if workers else {}
    return DataLoader(TensorDataset(*tensors(folder)), BATCH, shuffle=True, num_workers=workers, **keeps)


@functools.cache
def map_style(folder: Path) -> Iterable[Any]:
    return DataLoader(Dataset.from_tensor_slices(arrays(folder)).to_torch(map_style=True), BATCH, shuffle=True)


def steps(batches: Iterable[Any]) -> int:
    return sum(len(labels) for _, labels in batches)


def permuted(folder: Path) -> int:
    images, labels = tensors(folder)
    order = torch.randperm(IMAGES).split(BATCH)
    return steps((images[chosen], labels[chosen]) for chosen in order)


for size in BUFFERS:
    name = f"slices.shuffle({size}).batch({BATCH})"
    suite.workload(name, "dataset")(lambda folder, size=size: steps(feed(folder, size)))
    for workers in WORKERS:
        library = f"DataLoader({workers})"
        suite.workload(name, library)(lambda folder, workers=workers: steps(loader(folder, workers)))
    suite.workload(name, "permuted index")(permuted)

name = "a sampler of torch over map_style=True"
suite.workload(name, "dataset")(lambda folder: steps(map_style(folder)))
suite.workload(name, "DataLoader(0)")(lambda folder: steps(loader(folder, 0)))


if __name__ == "__main__":
    suite.main()
