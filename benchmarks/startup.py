"""Start-up: the time that ``import dataset`` takes, beside its peers', and that of the first batch of a small pipeline.

python benchmarks/startup.py [--runs 9] [--peer-runs 3] [--json build/benchmarks/startup.json]

Each measurement is a fresh process. All modules are compiled to bytecode before, as an installed package's are: the
first run of each kind fills a folder for it and is not counted. The file system's cache is warm, too.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from harness import machine

PEERS = {
    "tf.data": "tensorflow",
    "torch": "torch.utils.data",
    "torchdata": "torchdata.nodes",
    "grain": "grain",
    "HF datasets": "datasets",
    "ray.data": "ray.data",
    "webdataset": "webdataset",
    "spdl": "spdl.pipeline",
    "mlx-data": "mlx.data",
}
"""The module that a user of the peer imports before the first pipeline."""

IMPORT = "from time import perf_counter as now; begin = now(); import {module}; print('seconds', now() - begin)"

FIRST_BATCH = """
from time import perf_counter as now
from dataset import AUTOTUNE, Dataset
import numpy as np
images, labels = np.zeros((1000, 28, 28), np.uint8), np.arange(1000)
def scaled(image, label):
    return image / 255, label
begin = now()
batch = next(iter({pipeline}))
print("seconds", now() - begin)
"""

PIPELINES = {
    "range -> map -> batch(32)": "Dataset.range(1000).map(lambda x: x * 2 + 1).batch(32)",
    "slices -> shuffle -> map -> batch(32)": (
        "Dataset.from_tensor_slices((images, labels)).shuffle(1000).map(scaled).batch(32)"
    ),
    "slices -> shuffle -> map(AUTOTUNE) -> batch(32) -> prefetch(AUTOTUNE)": (
        "Dataset.from_tensor_slices((images, labels)).shuffle(1000)"
        ".map(scaled, num_parallel_calls=AUTOTUNE).batch(32).prefetch(AUTOTUNE)"
    ),
}

TARGETS = {"import dataset": 0.25, "first batch": 0.005}
"""Seconds that the library sets itself; shown, never enforced, because a busy machine takes longer."""


@dataclass(frozen=True)
class Timing:
    """Seconds of some runs of one kind."""

    what: str
    seconds: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def __str__(self) -> str:
        spread = f"{min(self.seconds) * 1e3:.1f} to {max(self.seconds) * 1e3:.1f}"
        return f"{self.what:<72} {self.median * 1e3:>9.1f} ms   ({spread}, {len(self.seconds)} runs)"


def timed(what: str, code: str, runs: int, environment: Mapping[str, str]) -> Timing:
    """What a program says that it took, in a fresh process each time; the first run is not counted."""
    seconds = []
    for _ in range(runs + 1):
        out = _python(["-c", code], environment).stdout
        seconds.append(float(re.findall(r"^seconds (\S+)$", out, re.MULTILINE)[-1]))
    return Timing(what, seconds[1:])


def imported(environment: Mapping[str, str]) -> list[tuple[str, float, float]]:
    """The modules that ``import dataset`` runs: name, own ms, and ms with what they import in turn. Slowest first."""
    report = _python(["-X", "importtime", "-c", "import dataset"], environment).stderr
    found = re.findall(r"^import time:\s+(\d+) \|\s+(\d+) \|\s+(\S+)$", report, re.MULTILINE)
    return sorted(((name, int(own) / 1e3, int(whole) / 1e3) for own, whole, name in found), key=lambda row: -row[1])


def packages_of(modules: list[tuple[str, float, float]]) -> list[tuple[str, float]]:
    """The same time by top-level package: whose modules spend how many ms themselves."""
    spent: dict[str, float] = {}
    for name, own, _ in modules:
        package = name.split(".")[0]
        spent[package] = spent.get(package, 0.0) + own
    return sorted(spent.items(), key=lambda item: -item[1])


def _python(arguments: list[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300, env=environment)
    if done.returncode:
        raise RuntimeError(f"{command} failed:\n{done.stderr[-3000:]}")
    return done


def with_bytecode(folder: str) -> dict[str, str]:
    """The environment, with a folder for bytecode: a setting that keeps Python from writing any would be measured."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return environment | {"PYTHONPYCACHEPREFIX": folder}


def _installed(module: str) -> bool:
    return importlib.util.find_spec(module.split(".", maxsplit=1)[0]) is not None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=9, help="of this library and of numpy")
    parser.add_argument("--peer-runs", type=int, default=3, help="of each peer, which take seconds; 0 for none")
    parser.add_argument("--modules", type=int, default=15, help="how many of the slowest modules to print")
    parser.add_argument("--json", type=Path, default=Path("build/benchmarks/startup.json"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        environment = with_bytecode(folder)
        timings = []

        def measure(what: str, code: str, runs: int) -> None:
            timings.append(timed(what, code, runs, environment))
            print(timings[-1], flush=True)

        print("Import, in a fresh process")
        for module in ["numpy", "dataset"]:
            measure(f"import {module}", IMPORT.format(module=module), arguments.runs)
        if arguments.peer_runs:
            for peer, module in PEERS.items():
                if _installed(module):
                    measure(f"import {module} ({peer})", IMPORT.format(module=module), arguments.peer_runs)
        print(f"\nFirst batch in a fresh process, after the import; target {TARGETS['first batch'] * 1e3:.0f} ms")
        for title, pipeline in PIPELINES.items():
            measure(title, FIRST_BATCH.format(pipeline=pipeline), arguments.runs)
        modules = imported(environment)
    print(
        f"\nWhat `import dataset` spends its time in (-X importtime); target {TARGETS['import dataset'] * 1e3:.0f} ms"
    )
    print(f"{'package':<48} {'own ms':>9}")
    for name, own in packages_of(modules)[:10]:
        print(f"{name:<48} {own:>9.1f}")
    print(f"\n{'module':<48} {'own ms':>9} {'with its imports':>18}")
    for name, own, whole in modules[: arguments.modules]:
        print(f"{name:<48} {own:>9.1f} {whole:>18.1f}")
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    result = {
        **machine.conditions(),
        "timings": [asdict(timing) | {"median": timing.median} for timing in timings],
        "packages": packages_of(modules),
        "modules": modules,
    }
    arguments.json.write_text(json.dumps(result, indent=1) + "\n")
    print(f"\nwritten: {arguments.json}")


if __name__ == "__main__":
    main()
