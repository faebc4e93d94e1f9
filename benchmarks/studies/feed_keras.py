"""An epoch of ``model.fit`` on ``to_keras()`` beside one on the same arrays in memory, shuffled in batches of 128.

    for backend in torch jax tensorflow; do KERAS_BACKEND=$backend python benchmarks/studies/feed_keras.py; done

60,000 made-up images of MNIST's shape, as floats and as bytes that the model scales, for a small dense model and a
small convolutional one. Both sides shuffle all rows anew in each epoch. Each process builds its models once: what is
measured is training alone, after an epoch in which Keras compiled what it compiles.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from side_by_side import Suite

os.environ.setdefault("KERAS_BACKEND", "torch")
ROWS = 60_000
BATCH = 128


def make_data(folder: Path) -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (ROWS, 28, 28), np.uint8)
    np.save(folder / "bytes.npy", images)
    np.save(folder / "floats.npy", images.astype(np.float32) / 255)
    np.save(folder / "labels.npy", rng.integers(0, 10, ROWS))


suite = Suite(__doc__, make_data, unit=f"images with {os.environ['KERAS_BACKEND']}")


@cache
def arrays(folder: Path, kind: str) -> tuple[Any, Any]:
    return np.load(folder / f"{kind}.npy"), np.load(folder / "labels.npy")


@cache
def model(kind: str, shape: str) -> Any:
    import keras
    from keras import layers

    scaled = [layers.Rescaling(1 / 255)] if kind == "bytes" else []
    hidden = {
        "dense": [layers.Flatten(), layers.Dense(128, activation="relu")],
        "convolutional": [
            layers.Reshape((28, 28, 1)),
            layers.Conv2D(8, 3, strides=2, activation="relu"),
            layers.Conv2D(16, 3, strides=2, activation="relu"),
            layers.Flatten(),
        ],
    }[shape]
    result = keras.Sequential([keras.Input((28, 28)), *scaled, *hidden, layers.Dense(10)])
    result.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return result


def ours(folder: Path, kind: str, shape: str) -> int:
    from dataset import Dataset

    train = Dataset.from_tensor_slices(arrays(folder, kind)).shuffle(ROWS).batch(BATCH)
    model(kind, shape).fit(train.to_keras(), verbose=0)
    return ROWS


def ours_ahead(folder: Path, kind: str, shape: str) -> int:
    from dataset import Dataset

    train = Dataset.from_tensor_slices(arrays(folder, kind)).shuffle(ROWS).batch(BATCH).prefetch(2)
    model(kind, shape).fit(train.to_keras(), verbose=0)
    return ROWS


def in_memory(folder: Path, kind: str, shape: str) -> int:
    x, y = arrays(folder, kind)
    model(kind, shape).fit(x, y, batch_size=BATCH, shuffle=True, verbose=0)
    return ROWS


def register(kind: str, shape: str) -> None:
    sides: dict[str, Callable[[Path, str, str], int]] = {
        "dataset": ours,
        "with prefetch(2)": ours_ahead,
        "arrays in memory": in_memory,
    }
    for library, side in sides.items():
        suite.workload(f"{shape} model, {kind}", library)(lambda folder, side=side: side(folder, kind, shape))


for kind in ("floats", "bytes"):
    for shape in ("dense", "convolutional"):
        register(kind, shape)

if __name__ == "__main__":
    suite.main()
