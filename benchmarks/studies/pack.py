"""Measures packing beside Grain: the CPU time of planning and output, and the share of padding.

    python benchmarks/studies/pack.py [--runs 5] [--sequences 20000]

The sequences are arrays in memory, of log-normal lengths with a mean of 530 tokens, or of uniform lengths. A row has
2048 tokens, with segment ids and positions. All run in one process and take turns. CPU time of all threads is counted,
so that a busy machine changes little. "input" is the time of the same pipeline without packing.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

CAPACITY = 2048
MEAN, SIGMA = 530, 1.0
BINS = 64

Pipeline = Callable[[], Iterable[Any]]


def lengths_of(kind: str, count: int, rng: np.random.Generator) -> Any:
    if kind == "uniform":
        return rng.integers(1, CAPACITY + 1, count)
    drawn = rng.lognormal(np.log(MEAN) - SIGMA**2 / 2, SIGMA, count)
    return np.clip(drawn, 1, CAPACITY).astype(np.int64)


def pipelines(elements: list[dict[str, Any]]) -> dict[str, Pipeline]:
    import grain
    from grain.experimental import BestFitPackIterDataset, FirstFitPackIterDataset

    from dataset import Dataset

    def ours() -> Any:
        return Dataset.range(len(elements)).map(elements.__getitem__)

    def grains() -> Any:  # without threads, which cost more than they gain for elements in memory
        return grain.MapDataset.source(elements).to_iter_dataset(
            grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)
        )

    packed = {"length_struct": {"tokens": CAPACITY}, "num_packing_bins": BINS}
    return {
        "dataset: input": ours,
        "dataset: pack": lambda: ours().pack(CAPACITY),
        "dataset: pack, batch(8)": lambda: ours().pack(CAPACITY).batch(8),
        "grain: input": grains,
        "grain: best fit": lambda: BestFitPackIterDataset(grains(), **packed),
        "grain: best fit, batch(8)": lambda: BestFitPackIterDataset(grains(), **packed).batch(8),
        "grain: first fit": lambda: FirstFitPackIterDataset(grains(), **packed),
    }


def run(pipeline: Pipeline) -> tuple[float, int]:
    """Return the CPU time of a pass, and the number of places for tokens. As in a training loop, no row is kept."""
    started = time.process_time()
    places = 0
    for element in pipeline():
        places += element["tokens"].size
    return time.process_time() - started, places


def main() -> None:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--runs", type=int, default=5, help="counted runs of each")
    parser.add_argument("--sequences", type=int, default=20_000, help="number of sequences")
    arguments = parser.parse_args()
    count = arguments.sequences
    print(
        f"{platform.python_implementation()} {platform.python_version()}, {os.cpu_count()} cores; medians of "
        f"{arguments.runs} runs over {count:,} sequences, in microseconds of CPU time per sequence (min to max)\n"
    )
    rng = np.random.default_rng(1)
    for kind in ("log-normal", "uniform"):
        lengths = lengths_of(kind, count, rng)
        elements = [{"tokens": rng.integers(1, 50_000, length, np.int32)} for length in lengths.tolist()]
        chosen = pipelines(elements)
        costs: dict[str, list[float]] = {name: [] for name in chosen}
        padding = {}
        for name, pipeline in chosen.items():
            tokens = sum(int(np.count_nonzero(element["tokens"])) for element in pipeline())
            assert tokens == lengths.sum(), f"{name} lost or repeated tokens"
        for _ in range(arguments.runs):
            for name, pipeline in chosen.items():
                seconds, places = run(pipeline)
                costs[name].append(seconds / count * 1e6)
                padding[name] = 1 - lengths.sum() / places
        print(f"{kind} lengths, mean {lengths.mean():.0f}")
        ours = {name: statistics.median(values) for name, values in costs.items() if name.startswith("dataset")}
        for name, values in costs.items():
            median = statistics.median(values)
            spread = f"({min(values):.2f} to {max(values):.2f})"
            mine = ours["dataset: pack, batch(8)" if "batch" in name else "dataset: pack"]
            is_other = name.startswith("grain") and "input" not in name
            more = f"{median / mine:.1f} times that of dataset" if is_other else ""
            waste = "" if "input" in name else f"{padding[name]:.2%} padding"
            print(f"  {name:<26}{median:>8.2f}  {spread:<22}{waste:<16}{more}")
        rest = statistics.median(costs["grain: best fit"]) - statistics.median(costs["grain: input"])
        print(f"  grain: best fit less its input: {rest:.2f}, {rest / ours['dataset: pack']:.1f} times dataset: pack\n")


if __name__ == "__main__":
    main()
