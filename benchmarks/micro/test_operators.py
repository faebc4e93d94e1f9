"""What an element costs with each operator, for finding what became slower between two commits.

python -m pytest benchmarks/micro [--rounds 7] [-k TEXT] [--benchmark-json FILE]
python benchmarks/micro/compare.py OLD.json NEW.json

Needs pytest-benchmark. Nothing fails because it is slow. On a shared machine only large ratios mean something, and
those between runs that were made in turn.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from operators import ENTRIES, Entry, prepare

IN_FILES = 10_000


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data")
    prepare(path, IN_FILES)
    return path


CASES = [
    (f"{entry.name}{' -> batch' if in_batches else ''}", entry, in_batches)
    for entry in ENTRIES
    for in_batches in ([False, True] if entry.batches else [False])
]


@pytest.mark.parametrize(("name", "entry", "in_batches"), CASES, ids=[name for name, _, _ in CASES])
def test_cost(name: str, entry: Entry, in_batches: bool, folder: Path, benchmark: Any, request: Any) -> None:
    if not entry.can_run:
        pytest.skip(f"needs {', '.join(entry.needs)}")
    elements = entry.elements or IN_FILES
    run = entry.ready(elements, folder, in_batches=in_batches)
    benchmark.extra_info["elements"] = elements
    benchmark.pedantic(run, rounds=request.config.getoption("--rounds"), iterations=1, warmup_rounds=1)
    benchmark.extra_info["ns_per_element"] = benchmark.stats.stats.median / elements * 1e9
