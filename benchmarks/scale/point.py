"""One point, in a process of its own.

python benchmarks/scale/point.py CASE SIZE FOLDER prints what was measured, as JSON.

First pass: what building the pipeline, the first batch and all others take, cold, as a user's first epoch is. A short
pass is then repeated for a while, so that the marginal cost is not that of a millisecond. Nothing is subtracted from
any number. Memory is what the peak of the resident set grew by since before the pipeline was built; the data of arrays
were made before that, and so were all imports.
"""

from __future__ import annotations

import contextlib
import gc
import json
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

from cases import CASES, Case

REPEAT_FOR = 0.15
"""Seconds; passes are repeated until they took this long together, ..."""
PASSES_MAX = 30  # ... or were this many


def measure(case: Case, size: int, folder: Path) -> dict[str, Any]:
    build = case.make(size, folder)
    gc.collect()
    _reset_peak()
    before = _peak()
    begin = perf_counter()
    dataset = build()
    built = perf_counter() - begin
    passes = []
    while not passes or (sum(map(sum, passes)) < REPEAT_FOR and len(passes) < PASSES_MAX):
        passes.append(_pass(dataset))
    elements = case.count(size)
    result = {
        "build": built,
        "first": passes[0][0],
        "first_again": min(first for first, _ in passes[1:]) if len(passes) > 1 else None,
        "rest": [rest for _, rest in passes],
        "whole": [first + rest for first, rest in passes],
        "elements": elements,
        "memory": _peak() - before,
    }
    # Counting open files takes time, so a pass of its own does it.
    if case.axis == "files":
        result["open_files"] = _open_files(iter(dataset))
    return result


def _pass(dataset: Any) -> tuple[float, float]:
    """The seconds until the first batch, and those until all others have come."""
    begin = perf_counter()
    iterator = iter(dataset)
    next(iterator)
    first = perf_counter()
    for _ in iterator:
        pass
    return first - begin, perf_counter() - first


def _open_files(iterator: Iterator[Any]) -> int:
    """The most files that were open at a time, as seen at each batch, beside those that were open before."""
    before = _descriptors()
    return max(_descriptors() - before for _ in iterator)


def _descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def _reset_peak() -> None:
    """Make the peak begin anew; where the system does not allow it, it is that of the whole process."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak() -> int:
    """The most bytes that were resident."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    name, size, folder = sys.argv[1:]
    (chosen,) = (case for case in CASES if case.name == name)
    print(json.dumps(measure(chosen, int(size), Path(folder))))
