"""Measures what resuming costs: the size of a state, taking and restoring it, and the pause of who takes it.

    python benchmarks/studies/resume.py [--runs 20] [--only TEXT]

Times are medians over the runs. "restore" is from a new iterator to the first element behind the place. The pause is
from one ``next`` to the next one, with a ``state_dict()`` between the two and without.
"""

from __future__ import annotations

import argparse
import os
import pickle
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dataset import Dataset, TextLineDataset, TFRecordDataset, io

N = 100_000
PLACE = 20  # elements or batches before the state is taken
FAR = 10_000_000


def images(count: int = 20_000) -> Dataset[Any]:
    return Dataset.from_tensor_slices((np.zeros((count, 28, 28), np.uint8), np.arange(count)))


def streamed() -> Dataset[Any]:
    return Dataset.range(N).filter(lambda x: int(x) >= 0)


def decode(x: Any) -> Any:
    """Lets go of the interpreter, as decoders do; 2 ms."""
    time.sleep(0.002)
    return x


def rows() -> Dataset[Any]:
    return Dataset.range(N).map(lambda x: np.full(int(x) % 50 + 1, x))


def in_threads() -> Dataset[Any]:
    return Dataset.range(N).map(decode, num_parallel_calls=8)


def pipelines(folder: Path) -> dict[str, Callable[[], Dataset[Any]]]:
    records, lines = str(folder / "a.tfrecord"), str(folder / "a.txt")
    with io.TFRecordWriter(records) as writer:
        for i in range(N):
            writer.write(b"%064d" % i)
    Path(lines).write_bytes(b"".join(b"%064d\n" % i for i in range(N)))
    return {
        "range": lambda: Dataset.range(N),
        "arrays, batch": lambda: images().batch(32),
        "arrays, shuffle(10000), batch": lambda: images().shuffle(10_000, seed=1).batch(32),
        "arrays, shuffle(None), repeat, batch": lambda: images().shuffle(None, seed=1).repeat().batch(32),
        "arrays, shuffle(1000), map, batch, prefetch": lambda: (
            images().shuffle(1000, seed=1).map(lambda x, y: (np.copy(x), y)).batch(32).prefetch(2)
        ),
        "arrays, map, shuffle(1000), batch": lambda: (
            images().map(lambda x, y: (np.copy(x), y)).shuffle(1000, seed=1).batch(32)
        ),
        "indexed records, shuffle(10000)": lambda: TFRecordDataset(records, index=True).shuffle(10_000, seed=1),
        "records": lambda: TFRecordDataset(records),
        "records, shuffle(10000)": lambda: TFRecordDataset(records).shuffle(10_000, seed=1),
        "lines, shuffle(10000), batch": lambda: TextLineDataset(lines).shuffle(10_000, seed=1).batch(32),
        "interleave of 16 files": lambda: Dataset.from_tensor_slices([records] * 16).interleave(
            TFRecordDataset, cycle_length=16
        ),
        "interleave of 16 files by 4 threads": lambda: Dataset.from_tensor_slices([records] * 16).interleave(
            TFRecordDataset, cycle_length=16, num_parallel_calls=4
        ),
        "map by 4 threads, batch, prefetch": lambda: (
            streamed().map(lambda x: x + 1, num_parallel_calls=4).batch(32).prefetch(2)
        ),
        "generator": lambda: Dataset.from_generator(lambda: iter(range(N))),
        "cache, being filled": lambda: streamed().cache().repeat(2),
        "window(100)": lambda: streamed().window(100, 10).flat_map(lambda window: window.batch(100)),
        "group_by_window(100)": lambda: streamed().group_by_window(lambda x: x % 9, lambda _, d: d.batch(100), 100),
        "bucket_by_sequence_length": lambda: rows().bucket_by_sequence_length(len, [10, 20, 30, 40], [32] * 5),
        "unique": lambda: streamed().map(lambda x: x % 50_000).unique(),
        "unbatch, rebatch": lambda: streamed().batch(1000).unbatch().batch(300).rebatch(32),
        "sample_from_datasets": lambda: Dataset.sample_from_datasets([streamed(), streamed()], [0.3, 0.7], seed=1),
    }


def seconds(function: Callable[[], Any]) -> float:
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def report(name: str, make: Callable[[], Dataset[Any]], runs: int) -> None:
    dataset = make()
    taken, restored, sizes = [], [], []
    for _ in range(runs):
        with iter(dataset) as iterator:
            for _ in range(PLACE):
                next(iterator)
            taken.append(seconds(iterator.state_dict))
            state = iterator.state_dict()
        sizes.append(len(pickle.dumps(state)))
        restored.append(restoring(dataset, state))
    taken_us, restored_us = statistics.median(taken) * 1e6, statistics.median(restored) * 1e6
    print(f"{name:<46}{statistics.median(sizes):>12,.0f}{taken_us:>12,.0f}{restored_us:>12,.0f}", flush=True)


def restoring(dataset: Dataset[Any], state: Any) -> float:
    with iter(dataset) as resumed:
        started = time.perf_counter()
        resumed.load_state_dict(state)
        next(resumed)
        return time.perf_counter() - started


def report_far(runs: int) -> None:
    array = np.arange(FAR + 1000)
    for name, make in {
        "array": lambda: Dataset.from_tensor_slices(array),
        "array, batch(1000), map, prefetch": lambda: (
            Dataset.from_tensor_slices(array).batch(1000).map(lambda x: x + 1).prefetch(2)
        ),
    }.items():
        dataset = make()
        with iter(dataset) as iterator:
            for _ in range(FAR // (1 if name == "array" else 1000)):
                next(iterator)
            state = iterator.state_dict()
        times = [restoring(dataset, state) for _ in range(runs)]
        print(f"{name:<46}{len(pickle.dumps(state)):>12,}{'':>12}{statistics.median(times) * 1e6:>12,.0f}", flush=True)


def report_pause(runs: int) -> None:
    """Milliseconds from one ``next`` to the next: the function takes 2, and 8 threads work."""
    for name, dataset in {
        "8 threads of 2 ms": in_threads(),
        "the same, batch(32), prefetch(2)": in_threads().batch(32).prefetch(2),
        "the same behind a shuffle of a stream": streamed().shuffle(1000).map(decode, num_parallel_calls=8),
    }.items():
        pauses: dict[str, list[float]] = {"without": [], "with": []}
        with iter(dataset) as iterator:
            for step in range(20 * runs):
                next(iterator)
                started = time.perf_counter()
                if step % 10 == 9:
                    iterator.state_dict()
                next(iterator)
                pauses["with" if step % 10 == 9 else "without"].append((time.perf_counter() - started) * 1e3)
        columns = [f(pauses[which]) for which in ("without", "with") for f in (statistics.median, max)]
        print(f"{name:<46}" + "".join(f"{value:>12.2f}" for value in columns), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--only", default="", help="only pipelines with this text in their name")
    arguments = parser.parse_args()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(f"{platform.python_implementation()} {platform.python_version()}, {cores} cores\n")
    print(f"{'behind ' + str(PLACE) + ' elements':<46}{'bytes':>12}{'take, us':>12}{'restore, us':>12}")
    with tempfile.TemporaryDirectory() as folder:
        for name, make in pipelines(Path(folder)).items():
            if arguments.only in name:
                report(name, make, arguments.runs)
    if arguments.only:
        return
    print(f"\n{'behind ' + format(FAR, ',') + ' elements':<46}{'bytes':>12}{'':>12}{'restore, us':>12}")
    report_far(arguments.runs)
    print(f"\n{'pause, ms':<46}{'median':>12}{'max':>12}{'with':>12}{'max':>12}")
    report_pause(arguments.runs)


if __name__ == "__main__":
    main()
