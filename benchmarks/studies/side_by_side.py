"""Measures the same work done by several libraries, side by side, and prints ratios of medians.

Each library works in a process of its own, started once, so that imports and tracing are not measured and no library's
threads run beside another's work. The libraries take turns, run by run, so that a machine that gets slower or faster
does so for all. The first run of each is a warm-up and not counted. Data is read from the page cache.

A benchmark is a file that makes a ``Suite``, registers what each library does, and ends in ``suite.main()``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

Runner = Callable[[Path], int]
"""Is given the folder with the data, and returns how many elements it has handled."""


class Suite:
    """Workloads, and the data that they read.

    Args:
        description: of the command, for ``--help``.
        make_data: fills a folder. Called once.
        unit: what is counted.
    """

    def __init__(self, description: str | None, make_data: Callable[[Path], None], unit: str = "elements") -> None:
        self.description = description
        self.make_data = make_data
        self.unit = unit
        self.workloads: dict[str, dict[str, Runner]] = {}

    def workload(self, name: str, library: str) -> Callable[[Runner], Runner]:
        """Register a runner."""

        def register(runner: Runner) -> Runner:
            self.workloads.setdefault(name, {})[library] = runner
            return runner

        return register

    def main(self) -> None:
        """Measure what the command line asks for."""
        formatter = argparse.RawDescriptionHelpFormatter
        parser = argparse.ArgumentParser(description=self.description, formatter_class=formatter)
        parser.add_argument("--runs", type=int, default=9, help="counted runs of each library")
        parser.add_argument("--only", default="", help="only workloads with this text in their name")
        parser.add_argument("--libraries", default="", help="some of them, with / between")
        parser.add_argument("--worker", help=argparse.SUPPRESS)
        arguments = parser.parse_args()
        if arguments.worker:
            self._work(Path(arguments.worker))
            return
        with tempfile.TemporaryDirectory() as folder:
            self.make_data(Path(folder))
            workers: dict[str, Worker] = {}
            print(
                f"{platform.python_implementation()} {platform.python_version()}, {os.cpu_count()} cores; "
                f"medians of {arguments.runs} runs, in {self.unit}/s (min to max)\n"
            )
            for name, runners in self.workloads.items():
                chosen = [library for library in runners if library in (arguments.libraries or library).split("/")]
                if arguments.only in name and chosen:
                    for library in chosen:
                        if library not in workers:
                            workers[library] = Worker(library, folder)
                    report(name, measure(name, [workers[library] for library in chosen], arguments.runs))
            for worker in workers.values():
                worker.close()

    def _work(self, folder: Path) -> None:
        for line in sys.stdin:
            name, library = json.loads(line)
            started = time.perf_counter()
            elements = self.workloads[name][library](folder)
            print(elements / (time.perf_counter() - started), flush=True)


class Worker:
    """A process that runs one library's workloads when told to."""

    def __init__(self, library: str, folder: str) -> None:
        self.library = library
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
        self.process = subprocess.Popen(
            [sys.executable, sys.argv[0], "--worker", folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )

    def run(self, name: str) -> float:
        """Elements per second of one run."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([name, self.library]) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.library} died in {name!r}")
        return float(line)

    def close(self) -> None:
        self.process.communicate()


def measure(name: str, workers: list[Worker], runs: int) -> dict[str, list[float]]:
    speeds: dict[str, list[float]] = {worker.library: [] for worker in workers}
    for run in range(runs + 1):
        for worker in workers:
            speed = worker.run(name)
            if run:
                speeds[worker.library].append(speed)
    return speeds


def report(name: str, speeds: dict[str, list[float]]) -> None:
    print(name)
    ours = statistics.median(speeds["dataset"]) if "dataset" in speeds else None
    for library, values in speeds.items():
        median = statistics.median(values)
        spread = f"({min(values):,.0f} to {max(values):,.0f})"
        ratio = "" if library == "dataset" or ours is None else f"dataset is {ours / median:.2f} times as fast"
        print(f"  {library:<18}{median:>14,.0f}  {spread:<28}{ratio}")
    print(flush=True)
