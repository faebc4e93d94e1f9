"""Durations of tests: a pytest plugin that records them, and a program that prints them.

    make durations                                              run the gate's tests and print both tables
    DURATIONS=build/durations python -m pytest tests/io         record any run
    python tests/support/durations.py build/durations           print the table by folder, and the most expensive tests

A test's seconds include its fixtures. CPU time includes that of the processes that the test has started and waited for.
The rest of a run is imports and collection, once in each worker of pytest-xdist, which the last line of the first table
shows.
"""

# ruff: noqa: T201  # a program that prints tables

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

EXPENSIVE = 100
DEPTH = 3
"""Folders of this depth have a line of their own; ``tests`` is the first."""


def _cpu() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Recorder:
    """Plugin that appends a line for each test to a file of this process."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / f"{os.getpid()}.jsonl").open("a", encoding="utf-8")
        self._write("(imports and collection)", 0, 0)

    def _write(self, test: str, wall: float, cpu: float) -> None:
        self._file.write(json.dumps([test, round(wall, 4), round(cpu, 4)]) + "\n")
        self._file.flush()

    def pytest_collection_finish(self) -> None:
        self._write("(imports and collection)", 0, _cpu())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        started, cpu = time.perf_counter(), _cpu()
        result = yield
        self._write(item.nodeid, time.perf_counter() - started, _cpu() - cpu)
        return result

    def pytest_unconfigure(self) -> None:
        self._file.close()


def read(folder: Path) -> list[tuple[str, float, float]]:
    """Return the tests of all processes of a run, with their seconds of wall and CPU time."""
    return [tuple(json.loads(line)) for path in sorted(folder.glob("*.jsonl")) for line in path.open(encoding="utf-8")]


def _folder(test: str) -> str:
    path = test.partition("::")[0].split("/")
    return test if test.startswith("(") else "/".join(path[: min(DEPTH, len(path) - 1)])


def main() -> int:
    """Print the tables of a run."""
    tests = read(Path(sys.argv[1]))
    if not tests:
        print(f"{sys.argv[1]} holds no durations")
        return 1
    folders: dict[str, list[float]] = defaultdict(lambda: [0, 0, 0])
    for name, wall, cpu in tests:
        for key in (_folder(name), "(all)"):
            folders[key][0] += not name.startswith("(")
            folders[key][1] += wall
            folders[key][2] += cpu
    print(f"{'folder':40} {'tests':>6} {'wall s':>8} {'CPU s':>8}")
    for key, (count, wall, cpu) in sorted(folders.items(), key=lambda item: -item[1][2]):
        print(f"{key:40} {count:6} {wall:8.1f} {cpu:8.1f}")
    print(f"\n{'wall s':>8} {'CPU s':>8}  the {EXPENSIVE} most expensive tests")
    for name, wall, cpu in sorted(tests, key=lambda item: -max(item[1:]))[:EXPENSIVE]:
        print(f"{wall:8.2f} {cpu:8.2f}  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
