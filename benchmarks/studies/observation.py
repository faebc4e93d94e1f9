"""Measures what it costs to observe pipelines that do almost nothing else: while nobody looks, and with the page open.

    python benchmarks/studies/observation.py [--runs 15] [--seconds 1.0] [--only TEXT]

Each round runs a pipeline in two ways, in another order each time: "off" (the profilers and the tuner never look, which
no option of the library does) and "unobserved" (as users run it). The clock of the library is then the CPU time of this
process, so that other programs on the machine change neither the cost nor what is measured. Printed are the medians of
the elements per second, and the median over the rounds of the cost relative to "off". The first round is not counted.
That figure needs many rounds to say anything on a machine that others use. "Accounted" does not: it is the CPU time in
which this process looked, as the clock of each thread says, and that of the measured pulls, as the library assumes it.
The page computes one snapshot per second, or fewer if they take more than a fiftieth of that time, for all who look. So
its cost is the CPU time of a request for one.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dataset import Dataset, TFRecordDataset, io
from dataset.runtime.metrics.meter import COST_SECONDS
from dataset.runtime.metrics.profile import PipelineProfile
from dataset.runtime.resources.periodic import PeriodicCallback

LOOK = PipelineProfile.look
WAYS = ("off", "unobserved")
REQUESTS = 20


def cases(folder: Path) -> dict[str, Callable[[], Dataset[Any]]]:
    """Return the fastest workloads of the benchmarks, without an end."""
    images = np.random.default_rng(0).integers(0, 256, (20_000, 28, 28), np.uint8)
    with io.TFRecordWriter(folder / "records.tfrecord") as writer:
        for image in images:
            writer.write(image.tobytes())
    cached = Dataset.from_tensor_slices(images).map(np.negative).cache()
    return {
        "range.map.filter.batch(1000)": lambda: (
            Dataset.range(1_000_000).map(lambda x: x * 2).filter(lambda x: x % 3 == 0).batch(1000).repeat()
        ),
        "slices.shuffle(10000).batch(128)": lambda: (
            Dataset.from_tensor_slices(images).shuffle(10_000).batch(128).repeat()
        ),
        "cache.batch(128)": lambda: cached.batch(128).repeat(),
        "one by one": lambda: Dataset.from_tensor_slices(images).repeat(),
        "TFRecord.batch(128).prefetch(2)": lambda: (
            TFRecordDataset(folder / "records.tfrecord").batch(128).prefetch(2).repeat()
        ),
    }


def look_at_nothing(self: PipelineProfile, left: int) -> int:
    """Count as ``PipelineProfile.look`` does, without measuring."""
    if self.began is None:
        self.began = time.perf_counter()
    self.count(left)
    self._step = 1 << 12
    return self._step


def rate(way: str, make: Callable[[], Dataset[Any]], seconds: float) -> float:
    """Return how many elements come for a second of CPU time."""
    if way == "off":
        PipelineProfile.look = look_at_nothing  # type: ignore[method-assign]
    try:
        with iter(make()) as iterator:
            next(iterator)
            count, began = 0, time.process_time()
            while (passed := time.process_time() - began) < seconds:
                for _ in range(500):
                    next(iterator)
                count += 500
        return count / passed
    finally:
        PipelineProfile.look = LOOK  # type: ignore[method-assign]


def accounted(make: Callable[[], Dataset[Any]], seconds: float) -> float:
    """Return the share of the CPU time in which the pipeline was looked at or measured."""
    spent, looking = [0.0], threading.local()

    def timed(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            if getattr(looking, "now", False):  # within the other method
                return method(*arguments)
            looking.now, began = True, time.thread_time()
            try:
                return method(*arguments)
            finally:
                spent[0] += time.thread_time() - began
                looking.now = False

        return call

    beat = PeriodicCallback.beat
    PipelineProfile.look, PeriodicCallback.beat = timed(LOOK), timed(beat)  # type: ignore[method-assign]
    try:
        with iter(make()) as iterator:
            next(iterator)
            began = time.process_time()
            while (passed := time.process_time() - began) < seconds:
                for _ in range(500):
                    next(iterator)
            pulls = sum(record.meter.pulls for record in iterator._profile.top.walk())  # noqa: SLF001
        return (spent[0] + pulls * COST_SECONDS) / passed
    finally:
        PipelineProfile.look, PeriodicCallback.beat = LOOK, beat  # type: ignore[method-assign]


def seconds_of_a_snapshot(make: Callable[[], Dataset[Any]]) -> float:
    """Return the CPU time that answering one request for the figures takes."""
    with iter(make()) as iterator:
        for _ in range(1000):
            next(iterator)
        url = f"{iterator.serve().url}snapshot"
        urllib.request.urlopen(url).read()  # noqa: S310  # its own page
        feed = iterator.serve()._server.feed  # noqa: SLF001
        began = time.process_time()
        for _ in range(REQUESTS):
            feed._latest_change = -1  # noqa: SLF001  # so that it is computed again
            urllib.request.urlopen(url).read()  # noqa: S310  # its own page
        return (time.process_time() - began) / REQUESTS


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    time.perf_counter = time.process_time
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {arguments.runs} runs of {arguments.seconds} s")
    with tempfile.TemporaryDirectory() as folder:
        for name, make in cases(Path(folder)).items():
            if arguments.only not in name:
                continue
            rounds: list[dict[str, float]] = []
            for number in range(arguments.runs + 1):
                order = WAYS if number % 2 else WAYS[::-1]
                rounds.append({way: rate(way, make, arguments.seconds) for way in order})
            medians = {way: statistics.median(one[way] for one in rounds[1:]) for way in WAYS}
            cost = statistics.median(1 - one["unobserved"] / one["off"] for one in rounds[1:])
            figures = ", ".join(f"{way} {medians[way]:,.0f}/s" for way in WAYS)
            share, page = accounted(make, 5 * arguments.seconds), seconds_of_a_snapshot(make)
            print(f"{name}: {figures}; unobserved costs {cost:.1%} ({share:.2%} accounted), the page {page:.1%} more")


if __name__ == "__main__":
    main()
