"""Measures the workloads with this library and its peers, each run in a fresh process, the libraries in turn.

python benchmarks/run.py --check [--only TEXT] [--libraries dataset,tf.data]
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import subprocess
import sys
import tempfile
from pathlib import Path

import workloads


def check(name: str, library: str, folder: Path) -> tuple[int, float]:
    """Run a runner's epochs twice over in this process: how many elements it gave, and their digest."""
    workload = importlib.import_module(f"workloads.{name}").WORKLOAD
    pipeline = workload.runners[library].make(folder)
    results = []
    for _ in range(2):
        elements, digest = 0, 0.0
        for batch in pipeline:
            elements += workload.count(batch)
            digest += workload.digest(batch)
        results.append((elements, digest))
    return results[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--libraries", default="")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        name, library, folder = arguments.one
        print("result", *check(name, library, Path(folder)))
        return
    for module in pkgutil.iter_modules(workloads.__path__):
        if arguments.only not in module.name:
            continue
        workload = importlib.import_module(f"workloads.{module.name}").WORKLOAD
        with tempfile.TemporaryDirectory() as folder:
            workload.make_data(Path(folder), workload.small)
            for library in workload.runners:
                if library in (arguments.libraries or library).split(","):
                    command = [sys.executable, __file__, "--one", module.name, library, folder]
                    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
                    last = [line for line in done.stdout.splitlines() if line.startswith("result")]
                    print(module.name, library, last or done.stderr[-2000:], flush=True)


if __name__ == "__main__":
    main()
