"""Measures a training loop of JAX over ``to_jax()``, beside the same loop over the dataset's own NumPy batches.

    python benchmarks/studies/feed_jax.py [--runs 9] [--steps 300]

The loops take turns in one process, run by run; what is printed is the median time of a step, and its ratio to that of
the plain loop of the same pipeline, which hands NumPy arrays to the jitted step. The first run of each is a warm-up and
not counted. Without an accelerator, step and pipeline share the cores, and the copy to the device is one in memory, or
none: there is nothing to win, and a call of ``jax.device_put`` for each component to pay, some tens of microseconds.
"""

from __future__ import annotations

import argparse
import itertools
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dataset import Dataset

BATCH = 128
HIDDEN = 128
Weights = tuple[Any, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=9, help="counted runs of each loop")
    parser.add_argument("--steps", type=int, default=300, help="steps of a run")
    arguments = parser.parse_args()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(f"JAX {jax.__version__} on {jax.devices()[0].platform}, {platform.python_version()}, {cores} cores\n")
    print(f"{'a step in microseconds (times as fast as the plain loop)':<50}")
    for name, dataset in pipelines().items():
        print(name)
        measure(dataset, arguments.runs, arguments.steps)


def pipelines() -> dict[str, Dataset[Any]]:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 255, (60_000, 28, 28), np.uint8)
    labels = rng.integers(0, 10, 60_000)
    rows = Dataset.from_tensor_slices((images, labels)).shuffle(60_000, seed=1).repeat()
    work = rows.batch(BATCH).map(augment)
    return {
        f"28x28 images, shuffle, batch({BATCH})": rows.batch(BATCH),
        "the same without shuffle: views of the array": Dataset.from_tensor_slices((images, labels))
        .repeat()
        .batch(BATCH),
        "the first with a costly map": work,
        "the same with prefetch(2) in the pipeline": work.prefetch(2),
    }


def augment(images: Any, labels: Any) -> tuple[Any, Any]:
    """Some milliseconds of NumPy."""
    noise = np.sort(images.astype(np.float32).reshape(len(images), -1), axis=1)
    return (images + noise[:, :1, None] * 0.01).astype(np.float32), labels


@jax.jit
def step(weights: Weights, images: Any, labels: Any) -> Weights:
    def loss(weights: Weights) -> Any:
        flat = images.reshape(len(images), -1).astype(jnp.float32) / 255
        scores = jax.nn.relu(flat @ weights[0]) @ weights[1]
        return -jnp.take_along_axis(jax.nn.log_softmax(scores), labels[:, None], 1).mean()

    slopes = jax.grad(loss)(weights)
    return weights[0] - 0.1 * slopes[0], weights[1] - 0.1 * slopes[1]


def train(batches: Iterable[Any], steps: int) -> None:
    weights = jnp.full((784, HIDDEN), 0.01), jnp.full((HIDDEN, 10), 0.01)
    for batch in itertools.islice(batches, steps):
        weights = step(weights, *batch)
    jax.block_until_ready(weights)


def measure(dataset: Dataset[Any], runs: int, steps: int) -> None:
    loops: dict[str, Callable[[], Iterable[Any]]] = {
        "plain": lambda: dataset,
        "to_jax(prefetch=0)": lambda: dataset.to_jax(prefetch=0),
        "to_jax(prefetch=2)": lambda: dataset.to_jax(prefetch=2),
    }
    seconds: dict[str, list[float]] = {name: [] for name in loops}
    for _ in range(runs + 1):
        for name, batches in loops.items():
            started = time.perf_counter()
            train(batches(), steps)
            seconds[name].append((time.perf_counter() - started) / steps)
    plain = seconds["plain"][1:]
    for name, times in seconds.items():
        ratio = statistics.median(before / now for before, now in zip(plain, times[1:], strict=True))
        print(f"  {name:<30}{statistics.median(times[1:]) * 1e6:10.0f} us{ratio:10.2f}x")


if __name__ == "__main__":
    main()
