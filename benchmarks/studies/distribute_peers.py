"""Compares distribute() with other ways to run a pipeline in worker processes: the same work in each.

    python benchmarks/studies/distribute_peers.py [--rounds 5] [--case large] [--peer dataset --peer torch]

python   rows that take 200 us in Python, in batches of 20
large    rows of 600 kB that exist, in batches of 32, which have 19 MB
small    rows of 20 kB that exist, one by one; the others send 64 at a time, and their consumers take them apart

Each run is a process of its own, and has two workers. The libraries take turns, so that a machine that gets slower does
so for all. The consumer copies each batch into an array that it has, as a transfer to a device does. The table has
medians: of the time until the first batch, of the batches per second after it, and of the CPU time per batch, that of
the consumer and that of all processes, which other programs on the machine affect less.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).parents[1]))  # in worker processes, too

WORKERS = 2
TOGETHER = 64
ROW = np.ones((224, 224, 3), np.float32)
SMALL = np.ones(20_000, np.uint8)


def spin(number: Any) -> np.ndarray:
    total = int(number)
    for step in range(3000):  # about 200 us
        total += step * step % 7
    return np.array(total)


def large_row(number: Any) -> np.ndarray:
    return ROW


def small_row(number: Any) -> np.ndarray:
    return SMALL


class Case(NamedTuple):
    row: Callable[[Any], np.ndarray]
    rows: int
    batch: int | None

    @property
    def together(self) -> int:
        """How many rows are sent at a time."""
        return self.batch or TOGETHER

    @property
    def batches(self) -> list[range]:
        whole = range(self.rows)
        return [whole[start : start + self.together] for start in whole[:: self.together]]

    def made(self, numbers: Iterable[int]) -> np.ndarray:
        """Return a batch."""
        return np.stack([self.row(number) for number in numbers])

    def delivered(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Return what the consumer wants, from batches."""
        return iter(batches) if self.batch else itertools.chain.from_iterable(batches)


CASES = {
    "python": Case(spin, 10_000, 20),
    "large": Case(large_row, 200 * 32, 32),
    "small": Case(small_row, 40_000, None),
}


def dataset(case: Case) -> Iterator[Any]:
    from dataset import Dataset

    rows = Dataset.range(case.rows).map(case.row)
    return iter((rows.batch(case.batch) if case.batch else rows).distribute(WORKERS))


class Rows:
    """Map-style dataset, for torch."""

    def __init__(self, case: Case) -> None:
        self.case = case

    def __len__(self) -> int:
        return self.case.rows

    def __getitem__(self, index: int) -> Any:
        import torch

        return torch.from_numpy(self.case.row(index))  # collated directly into shared memory


def torch_(case: Case) -> Iterator[Any]:
    """https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading."""
    import torch
    from torch.utils.data import DataLoader

    torch.set_num_threads(1)
    rows: Any = Rows(case)
    loader = DataLoader(rows, case.together, num_workers=WORKERS, prefetch_factor=4)
    return case.delivered(batch.numpy() for batch in loader)


def spdl(case: Case) -> Iterator[Any]:
    """https://facebookresearch.github.io/spdl/main/getting_started/parallelism.html, with its shared memory."""
    from spdl.pipeline import PipelineBuilder, SharedMemorySegmentPool, run_pipeline_in_subprocess

    size = len(case.batches[0]) * case.row(0).nbytes + 4096
    shares = []
    for worker in range(WORKERS):
        config = PipelineBuilder().add_source(case.batches[worker::WORKERS]).pipe(case.made).add_sink(4).get_config()
        arena = SharedMemorySegmentPool(size, 8)
        shares.append(iter(run_pipeline_in_subprocess(config, num_threads=1, arena=arena)))
    return case.delivered(itertools.chain.from_iterable(zip(*shares, strict=False)))


def grain_(case: Case) -> Iterator[Any]:
    """https://google-grain.readthedocs.io/en/latest/tutorials/dataset_advanced_tutorial.html."""
    import grain
    from absl import flags

    flags.FLAGS.mark_as_parsed()  # its workers read flags
    rows = grain.MapDataset.range(case.rows).map(case.row).to_iter_dataset(grain.ReadOptions(num_threads=0))
    options = grain.MultiprocessingOptions(num_workers=WORKERS, per_worker_buffer_size=4)
    return case.delivered(rows.batch(case.together).mp_prefetch(options))


def ray_data(case: Case) -> Iterator[Any]:
    """https://docs.ray.io/en/latest/data/performance-tips.html."""
    import ray

    ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    made = ray.data.range(case.rows).map_batches(
        lambda batch: {"row": case.made(batch["id"])}, batch_size=case.together
    )
    batches = made.iter_batches(batch_size=case.together, batch_format="numpy", prefetch_batches=4)
    return case.delivered(batch["row"] for batch in batches)


def serve(dispatcher: str) -> None:
    import tensorflow as tf

    config = tf.data.experimental.service.WorkerConfig(dispatcher_address=dispatcher)
    tf.data.experimental.service.WorkerServer(config).join()


def tf_data_service(case: Case) -> Iterator[Any]:
    """https://www.tensorflow.org/api_docs/python/tf/data/experimental/service; functions in Python do not travel."""
    import tensorflow as tf

    if case.row is spin:
        raise NotImplementedError("the workers of tf.data service run no functions in Python")
    service = tf.data.experimental.service
    server = service.DispatchServer()
    address = server.target.split("://")[1]
    for _ in range(WORKERS):
        multiprocessing.get_context("spawn").Process(target=serve, args=(address,), daemon=True).start()
    row = tf.constant(case.row(0))
    batches = tf.data.Dataset.range(case.rows).map(lambda _: row).batch(case.together)
    distributed = batches.apply(
        service.distribute(service.ShardingPolicy.DYNAMIC, address, job_name="rows", compression=None)
    )
    numpy = distributed.prefetch(4).as_numpy_iterator()

    def batches() -> Iterator[Any]:
        yield from numpy
        server.join()  # it must live until here

    return case.delivered(batches())


def processes(case: Case) -> Iterator[Any]:
    """multiprocessing.Pool, with eight batches in progress."""
    pool = multiprocessing.get_context("fork").Pool(WORKERS)

    def batches() -> Iterator[Any]:
        numbers = iter(case.batches)
        waiting = [pool.apply_async(case.made, (chosen,)) for chosen in itertools.islice(numbers, 4 * WORKERS)]
        while waiting:
            yield waiting.pop(0).get()
            waiting += [pool.apply_async(case.made, (chosen,)) for chosen in itertools.islice(numbers, 1)]

    return case.delivered(batches())


PEERS: dict[str, Callable[[Case], Iterator[Any]]] = {
    "dataset": dataset,
    "torch": torch_,
    "spdl": spdl,
    "grain": grain_,
    "ray.data": ray_data,
    "tf.data service": tf_data_service,
    "multiprocessing": processes,
}


def cpu_seconds() -> float:
    """Return the CPU time of this process and all that it has started."""
    total = 0.0
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        with contextlib.suppress(psutil.Error):  # it has just ended
            total += sum(process.cpu_times()[:2])
    return total


def measure(case: Case, peer: Callable[[Case], Iterator[Any]]) -> dict[str, float]:
    rows = np.empty((case.batch or 1, *case.row(0).shape), case.row(0).dtype)
    started = time.perf_counter()
    elements = peer(case)
    next(elements)
    first, cpu, all_cpu = time.perf_counter(), time.process_time(), cpu_seconds()
    count = (len(case.batches) if case.batch else case.rows) // 2  # the processes still work after these
    for _ in range(count):
        np.copyto(rows if case.batch else rows[0], next(elements))
    seconds, cpu, all_cpu = time.perf_counter() - first, time.process_time() - cpu, cpu_seconds() - all_cpu
    return {"first": first - started, "rate": count / seconds, "cpu": cpu / count, "all_cpu": all_cpu / count}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--case", choices=CASES, action="append")
    parser.add_argument("--peer", choices=PEERS, action="append")
    parser.add_argument("--here", action="store_true", help="measure one case and peer in this process")
    arguments = parser.parse_args()
    cases, peers = arguments.case or list(CASES), arguments.peer or list(PEERS)
    if arguments.here:
        print(json.dumps(measure(CASES[cases[0]], PEERS[peers[0]])), flush=True)
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                process.kill()
        os._exit(0)  # some libraries wait for their processes
    for case in cases:
        compare(case, peers, arguments.rounds)


def compare(case: str, peers: list[str], rounds: int) -> None:
    found: dict[str, list[dict[str, float]]] = {peer: [] for peer in peers}
    for _ in range(rounds):
        for peer in peers:
            command = [sys.executable, __file__, "--here", "--case", case, "--peer", peer]
            done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
            try:
                found[peer].append(json.loads(done.stdout.splitlines()[-1]))
            except (IndexError, ValueError):
                lines = done.stderr.strip().splitlines()
                print(f"{case}, {peer}: {lines[-1] if lines else done.returncode}")
    print(f"{case:18} first batch   batches/s   CPU per batch: consumer     all processes")
    for peer, runs in found.items():
        if runs:
            first, rate, cpu, whole = (statistics.median(run[name] for run in runs) for name in runs[0])
            figures = f"{first:9.2f} s {rate:11,.0f} {cpu * 1e6:20,.0f} us {whole * 1e6:14,.0f} us"
            print(f"  {peer:16} {figures}", flush=True)


if __name__ == "__main__":
    main()
