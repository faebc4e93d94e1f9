"""Measures worker processes by themselves: moving batches, small tasks, and Python code on all cores.

    python benchmarks/studies/processes.py [--workers 2] [--rounds 7]

Medians over rounds; what is compared takes turns in one run, so that a machine that gets slower does so for all.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from dataset.plan.structure import LEAF
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.processes import WorkerProcesses

SHAPE = (32, 224, 224, 3)
BATCH_BYTES = 4 * int(np.prod(SHAPE))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    for benchmark in (start_up, batches_out, batches_in, small_tasks, python_code):
        benchmark(arguments.workers, arguments.rounds)


def elementwise(function: Callable) -> Callable:
    def work(inputs, position, context, started):
        results = []
        for row in inputs.rows():
            started()
            results.append(function(row))
        return [Chunk(LEAF, len(results), rows=results)]

    return work


def numbers(count: int) -> Chunk:
    return Chunk(LEAF, count, [np.arange(count)])


def run_all(processes: WorkerProcesses, inputs: Chunk, tasks: int, threads: int) -> float:
    """Seconds for so many tasks, handed out by so many threads, the results dropped at once."""
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda _: processes.run(inputs, 0) and None, range(threads)))  # threads and workers are up
        start = time.perf_counter()
        list(pool.map(lambda _: processes.run(inputs, 0) and None, range(tasks)))
        return time.perf_counter() - start


def medians(rounds: int, **measured: Callable[[], float]) -> dict[str, float]:
    seconds = {name: [] for name in measured}
    for _ in range(rounds):
        for name, measure in measured.items():
            seconds[name].append(measure())
    return {name: statistics.median(values) for name, values in seconds.items()}


def start_up(workers: int, rounds: int) -> None:
    def measure() -> float:
        start = time.perf_counter()
        processes = WorkerProcesses(elementwise(abs), workers, "start")
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(lambda _: processes.run(numbers(1), 0), range(workers)))
        seconds = time.perf_counter() - start
        processes.close()
        return seconds

    print(f"start-up of {workers} workers, until each has done a task: {medians(rounds, s=measure)['s']:.2f} s")


def batches_out(workers: int, rounds: int) -> None:
    tasks = 50
    source = np.random.default_rng(0).random(SHAPE, np.float32)
    makers = {
        "np.full": lambda _: np.full(SHAPE, 1, np.float32),
        "copy of an array": lambda _: source.copy(),
    }
    for name, make in makers.items():
        processes = WorkerProcesses(elementwise(make), workers, name)
        seconds = medians(
            rounds,
            one=lambda processes=processes: run_all(processes, numbers(1), tasks, 1),
            all=lambda processes=processes: run_all(processes, numbers(1), tasks, workers),
        )
        processes.close()
        one, every = (tasks * BATCH_BYTES / seconds[key] / 1e9 for key in ("one", "all"))
        print(
            f"{name}, {BATCH_BYTES / 1e6:.0f} MB from worker to parent: {one:.1f} GB/s; {workers} workers {every:.1f}"
        )


def batches_in(workers: int, rounds: int) -> None:
    processes = WorkerProcesses(elementwise(lambda batch: batch[0, 0, 0, 0]), workers, "in")
    inputs = Chunk(LEAF, 1, [np.zeros((1, *SHAPE), np.float32)])
    seconds = medians(rounds, all=lambda: run_all(processes, inputs, 50, workers))["all"]
    processes.close()
    print(f"{BATCH_BYTES / 1e6:.0f} MB from parent to worker: {50 * BATCH_BYTES / seconds / 1e9:.1f} GB/s")


def small_tasks(workers: int, rounds: int) -> None:
    processes = WorkerProcesses(elementwise(abs), workers, "small")
    tasks = 1000
    seconds = medians(
        rounds,
        one=lambda: run_all(processes, numbers(8), tasks, 1),
        all=lambda: run_all(processes, numbers(8), tasks, workers),
    )
    processes.close()
    one, every = (seconds[key] / tasks * 1e6 for key in ("one", "all"))
    print(f"a task of 8 numbers: {one:.0f} us with one thread; with {workers} threads one every {every:.0f} us")


def python_code(workers: int, rounds: int) -> None:
    def function(x):
        total = 0
        for number in range(7000):
            total += number
        return total + x

    def sequential(calls: int) -> float:
        start = time.perf_counter()
        for number in range(calls):
            function(number)
        return time.perf_counter() - start

    processes = WorkerProcesses(elementwise(function), workers, "python")
    for length in (1, 5, 10):
        tasks = 2000 // length
        seconds = medians(
            rounds,
            one=lambda: sequential(2000),
            all=lambda length=length, tasks=tasks: run_all(processes, numbers(length), tasks, workers),
        )
        print(
            f"Python code of {seconds['one'] / 2000 * 1e6:.0f} us, tasks of {length}: "
            f"{seconds['one'] / seconds['all']:.2f} times sequential"
        )
    processes.close()


if __name__ == "__main__":
    main()
