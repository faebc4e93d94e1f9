"""Measures what a second thread gives to parsing, checksums, CSV and gzip, which release the interpreter's lock.

    python benchmarks/studies/scaling.py [--runs 7]

Each case is done with one call or reader at a time and with two, in turn. *Speed* is the ratio of the best runs, 2 at
most on two free cores. *CPU* is the processor time with two by that with one: what handing over costs, even if other
programs keep the cores busy. *Threads* is the speed of two plain threads that each do half of the work with one.
"""

from __future__ import annotations

import argparse
import gzip
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dataset import CsvDataset, Dataset, TFRecordDataset, io

FEATURES = {"image": io.FixedLenFeature((), bytes), "label": io.FixedLenFeature((), np.int64)}
LISTS = {"ids": io.FixedLenFeature((100,), np.int64)}
EXAMPLES, ROWS, BATCH, FILES = 200_000, 1_000_000, 1024, 4  # one run of any case takes at least 50 ms

Make = Callable[[list[Path], int | None], Dataset[Any]]


def make_data(folder: Path) -> None:
    rng = np.random.default_rng(0)
    for shard in range(FILES):
        with (
            io.TFRecordWriter(folder / f"{shard}.images") as images,
            io.TFRecordWriter(folder / f"{shard}.zipped", io.TFRecordOptions("GZIP", compression_level=1)) as zipped,
            io.TFRecordWriter(folder / f"{shard}.lists") as lists,
        ):
            for label in range(EXAMPLES // FILES):
                image = io.encode_example({"image": rng.bytes(784), "label": label})
                images.write(image)
                zipped.write(image)
                lists.write(io.encode_example({"ids": rng.integers(0, 32_000, 100)}))
        table = rng.normal(size=(ROWS // FILES, 6))
        text = "".join(",".join(map(repr, row)) + "\n" for row in table.tolist()).encode()
        (folder / f"{shard}.csv").write_bytes(text)
        (folder / f"{shard}.csv.gz").write_bytes(gzip.compress(text, 1))


def parsed(features: dict[str, Any]) -> Make:
    def make(paths: list[Path], threads: int | None) -> Dataset[Any]:
        records = TFRecordDataset(paths).batch(BATCH).cache()
        return records.map(lambda batch: io.parse_example(batch, features), num_parallel_calls=threads)

    return make


def records(compression: str | None) -> Make:
    return lambda paths, n: TFRecordDataset(paths, compression, num_parallel_reads=n).batch(BATCH)


def csv(compression: str | None) -> Make:
    columns = [np.float64] * 6
    return lambda paths, n: CsvDataset(paths, columns, compression_type=compression, num_parallel_reads=n).batch(BATCH)


CASES: dict[str, tuple[str, Make]] = {
    "parse_example, images": ("images", parsed(FEATURES)),
    "parse_example, int64 lists": ("lists", parsed(LISTS)),
    "TFRecord with CRCs": ("images", records(None)),
    "TFRecord, gzip": ("zipped", records("GZIP")),
    "CSV": ("csv", csv(None)),
    "CSV, gzip": ("csv.gz", csv("GZIP")),
}


def consume(dataset: Dataset[Any]) -> None:
    for _ in dataset:
        pass


def consume_all(pool: ThreadPoolExecutor, datasets: list[Dataset[Any]]) -> None:
    list(pool.map(consume, datasets))


def measured(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds and CPU seconds."""
    started, computed = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - started, time.process_time() - computed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7, help="counted runs of each side")
    runs = parser.parse_args().runs
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n{'':<30}{'speed':>8}{'CPU':>8}{'threads':>9}")
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(2) as pool:
        make_data(Path(name))
        for case, (suffix, make) in CASES.items():
            paths = sorted(Path(name).glob(f"*.{suffix}"))
            one, two = make(paths, None), make(paths, 2)
            halves = [make(paths[half::2], None) for half in range(2)]
            sides = [partial(consume, one), partial(consume, two), partial(consume_all, pool, halves)]
            times = np.array([[measured(side) for side in sides] for _ in range(runs + 1)])[1:].min(0)
            (one_s, one_cpu), (two_s, two_cpu), (threads_s, _) = times
            print(f"{case:<30}{one_s / two_s:>8.2f}{two_cpu / one_cpu:>8.2f}{one_s / threads_s:>9.2f}", flush=True)


if __name__ == "__main__":
    main()
