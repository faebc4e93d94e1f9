"""Measures distribute(): the time of a pipeline in worker processes, and what the driver pays for each batch.

    python benchmarks/studies/distribute.py [--rounds 5] [--engine processes]

Medians over rounds; what is compared takes turns in one run, so that a machine that gets slower does so for all.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dataset import AUTOTUNE, Dataset, io

BATCH = (32, 224, 224, 3)  # of float32: 19 MB


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--engine", default="processes")
    arguments = parser.parse_args()
    for study in (python_function, beside_a_consumer, images_beside_a_consumer, large_batches, small_elements):
        study(arguments.rounds, arguments.engine)


def work(microseconds: float) -> None:
    """Compute in Python for a fixed CPU time of this thread."""
    until = time.thread_time() + microseconds * 1e-6
    while time.thread_time() < until:
        pass


def slow(x: Any) -> Any:
    work(200)
    return x


def seconds(elements: Iterable[Any], each: Callable[[], Any] = lambda: None) -> tuple[float, float]:
    """Return the time and the CPU time of this process for an iteration, without the first element."""
    iterator = iter(elements)
    next(iterator)
    started, cpu = time.perf_counter(), time.process_time()
    for _ in iterator:
        each()
    return time.perf_counter() - started, time.process_time() - cpu


def medians(rounds: int, **measured: Callable[[], tuple[float, float]]) -> dict[str, tuple[float, float]]:
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in measured}
    for _ in range(rounds):
        for name, measure in measured.items():
            found[name].append(measure())
    return {name: tuple(map(statistics.median, zip(*runs, strict=True))) for name, runs in found.items()}


def python_function(rounds: int, engine: str) -> None:
    count = 4000
    plain = Dataset.range(count).map(slow).batch(20)
    both = plain.distribute(2, engine=engine)
    one = plain.distribute(1, engine=engine)
    found = medians(rounds, here=lambda: seconds(plain), one=lambda: seconds(one), two=lambda: seconds(both))
    here, two = found["here"][0], found["two"][0]
    print(f"200 us function: here {here:.2f} s, 1 worker {found['one'][0]:.2f} s, 2 workers {two:.2f} s")
    print(f"  2 workers: {here / two:.2f} times one process, {here / two / 2:.2f} of twice")


def beside_a_consumer(rounds: int, engine: str) -> None:
    plain = Dataset.range(3000).map(slow).batch(10)
    compare_consumers("200 us function", plain.prefetch(4), plain.distribute(1, engine=engine), 300, 2000, rounds)


def images_beside_a_consumer(rounds: int, engine: str) -> None:
    """JPEG images of 256 x 256, decoded and resized in batches of 16, about 10 ms."""
    noise = np.random.default_rng(0).integers(0, 255, (8, 32, 32, 3), dtype=np.uint8)
    contents = [io.encode_jpeg(image.repeat(8, 0).repeat(8, 1)) for image in noise]

    def load(number: Any) -> Any:
        return io.resize(io.decode_jpeg(contents[number % 8]), (224, 224))

    numbers = Dataset.range(1600)
    threads = numbers.map(load, num_parallel_calls=AUTOTUNE).batch(16).prefetch(4)
    compare_consumers("JPEG", threads, numbers.map(load).batch(16).distribute(1, engine=engine), 100, 10_000, rounds)


def compare_consumers(
    what: str, threads: Dataset[Any], process: Dataset[Any], batches: int, microseconds: float, rounds: int
) -> None:
    """Print the batches per second of a consumer that computes in Python, and what the pipeline costs its process."""

    def consume() -> None:
        work(microseconds)

    def alone() -> tuple[float, float]:
        started, cpu = time.perf_counter(), time.process_time()
        for _ in range(batches - 1):
            consume()
        return time.perf_counter() - started, time.process_time() - cpu

    found = medians(
        rounds,
        alone=alone,
        threads=lambda: seconds(threads, consume),
        process=lambda: seconds(process, consume),
    )
    rates = {name: (batches - 1) / value[0] for name, value in found.items()}
    costs = {name: (value[1] - found["alone"][1]) / (batches - 1) * 1e6 for name, value in found.items()}
    print(
        f"{what}, consumer of {microseconds / 1e3:g} ms per batch in Python: alone {rates['alone']:.0f} batches/s, "
        f"pipeline in threads {rates['threads']:.0f}, in a process {rates['process']:.0f}; driver "
        f"{costs['threads']:.0f} us per batch with threads, {costs['process']:.0f} with a process"
    )


def large_batches(rounds: int, engine: str) -> None:
    batch, count = np.ones(BATCH, np.float32), 60
    target = np.empty_like(batch)
    dataset = Dataset.range(count).map(lambda _: batch).distribute(1, engine=engine)

    def copies() -> tuple[float, float]:
        started = time.perf_counter()
        for _ in range(count - 1):
            np.copyto(target, batch)
        return time.perf_counter() - started, 0.0

    found = medians(rounds, distributed=lambda: seconds(dataset), copy=copies)
    each = {name: (count - 1) * batch.nbytes / 1e9 / value[0] for name, value in found.items()}
    cpu = found["distributed"][1] / (count - 1) * 1e6
    print(
        f"19 MB batches: {each['distributed']:.2f} GB/s, a copy {each['copy']:.2f} GB/s; driver {cpu:.0f} us per batch"
    )


def small_elements(rounds: int, engine: str) -> None:
    element, count = np.ones(20_000, np.uint8), 20_000
    dataset = Dataset.range(count).map(lambda _: element)
    for workers in (1, 2):
        spread = dataset.distribute(workers, engine=engine)
        found = medians(rounds, distributed=lambda spread=spread: seconds(spread))["distributed"]
        print(
            f"20 kB elements, {workers} workers: {(count - 1) / found[0]:,.0f}/s, "
            f"driver {found[1] / (count - 1) * 1e6:.1f} us per element"
        )


if __name__ == "__main__":
    main()
