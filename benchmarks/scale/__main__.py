"""Scale: what an element costs, what starting costs and what memory it takes, while the work grows along four axes.

python benchmarks/scale [--runs 3] [--only TEXT] [--tf-data] [--json build/benchmarks/scale.json]

More elements (10^4 to 10^8), more files (1 to 10,000), longer chains (1 to 200 ops), more inputs (1 to 1,000). Each
point is measured in fresh processes, in rounds over all points, and medians are shown. Costs are divided by elements
and, where the axis is the depth or the width of zip, by ops or inputs, too. Beneath each line stand the largest over
the smallest cost beyond the first batch, 1.0 if it is flat, and the last over the first. No judgement is made: what is
flat enough is for the reader to say. ``build`` is building the pipeline, ``first`` the first batch in a fresh process,
``again`` that of a later pass.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from cases import CASES, Case, make_data
from plots import draw

sys.path.append(str(Path(__file__).parents[1]))
from harness.machine import conditions

POINT = Path(__file__).with_name("point.py")
HEADINGS = ["size", "whole ns", "marginal ns", "build ms", "first ms", "again ms", "memory MiB", "open files"]


def measure(case: Case, size: int, folder: Path, environment: dict[str, str]) -> dict[str, Any]:
    """What a point's process printed; or how it failed, in the words of the last line."""
    command = [sys.executable, str(POINT), case.name, str(size), str(folder)]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, env=environment)
    except subprocess.TimeoutExpired:
        return {"failed": "took longer than 120 s"}
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def summary(case: Case, size: int, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The medians of a point's runs."""
    failures = [run["failed"] for run in runs if "failed" in run]
    if failures or not runs:
        return {"size": size, "failed": failures[0] if failures else "was not run"}

    def median(take: Any) -> float:
        return statistics.median(take(run) for run in runs)

    steps = runs[0]["elements"] * case.per(size)
    point = {
        "size": size,
        "whole_ns": median(lambda run: statistics.median(run["whole"])) / steps * 1e9,
        "marginal_ns": median(lambda run: statistics.median(run["rest"])) / steps * 1e9,
        "build_ms": median(lambda run: run["build"]) * 1e3,
        "first_ms": median(lambda run: run["first"]) * 1e3,
        "memory_mib": median(lambda run: run["memory"]) / 2**20,
        "runs": runs,
    }
    if all(run["first_again"] is not None for run in runs):
        point["again_ms"] = median(lambda run: run["first_again"]) * 1e3
    if "open_files" in runs[0]:
        point["open_files"] = max(run["open_files"] for run in runs)
    return point


def flatness(points: list[dict[str, Any]]) -> dict[str, Any]:
    """Of the marginal costs of a line the largest over the smallest, and the last over the first; most memory, too."""
    costs = [point["marginal_ns"] for point in points if "failed" not in point]
    memory = [point["memory_mib"] for point in points if "failed" not in point]
    if not costs:
        return {}
    return {"flat": max(costs) / min(costs), "last_over_first": costs[-1] / costs[0], "memory_mib": max(memory)}


def table(line: dict[str, Any]) -> str:
    """A line in words and numbers."""
    rows = [HEADINGS]
    for point in line["points"]:
        if "failed" in point:
            rows.append([f"{point['size']:,}", point["failed"][:80]])
            continue
        cells = [f"{point['size']:,}"]
        cells += [_number(point.get(key)) for key in ["whole_ns", "marginal_ns", "build_ms", "first_ms", "again_ms"]]
        rows.append([*cells, f"{point['memory_mib']:.1f}", str(point.get("open_files", ""))])
    text = "\n".join("  ".join(f"{cell:>11}" for cell in row).rstrip() for row in rows)
    if not line["flatness"]:
        return f"{line['name']}\n{text}\n"
    flat, last, memory = (line["flatness"][key] for key in ["flat", "last_over_first", "memory_mib"])
    verdict = f"marginal cost: largest / smallest {flat:.2f}, last / first {last:.2f}; most memory {memory:.1f} MiB"
    return f"{line['name']}\n{text}\n  {verdict}\n"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="fresh processes for each point; medians are shown")
    parser.add_argument("--only", default="", help="lines whose name has this text in it")
    parser.add_argument("--tf-data", action="store_true", help="add lines of tf.data, whose import takes a while")
    parser.add_argument("--json", type=Path, default=Path("build/benchmarks/scale.json"), help="plots go beside it")
    arguments = parser.parse_args()
    libraries = {"dataset", "tf.data"} if arguments.tf_data else {"dataset"}
    cases = [case for case in CASES if case.library in libraries and arguments.only in case.name]
    if not cases:
        parser.error(f"no line has {arguments.only!r} in its name; there are:\n" + "\n".join(c.name for c in CASES))
    begin = time.perf_counter()
    result: dict[str, Any] = {**conditions(), "runs": arguments.runs, "lines": []}
    measured: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if any(case.axis == "files" for case in cases):
            make_data(folder)
        # As after an installation, where modules were compiled once; the first process of a run would pay for all.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
        for number in range(arguments.runs):
            for case in cases:
                print(f"\rrun {number + 1} of {arguments.runs}: {case.name:<100}", end="", file=sys.stderr, flush=True)
                for size in case.sizes:
                    measured[case.name, size].append(measure(case, size, folder, environment))
    print(file=sys.stderr)
    for case in cases:
        points = [summary(case, size, measured[case.name, size]) for size in case.sizes]
        line = {"axis": case.axis, "name": case.name, "title": case.title, "library": case.library, "points": points}
        line["flatness"] = flatness(points)
        result["lines"].append(line)
        print(table(line), flush=True)
    result["seconds"] = time.perf_counter() - begin
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(result, indent=1) + "\n")
    written = [arguments.json, *draw(result, arguments.json.with_suffix(""))]
    print(f"{result['seconds']:.0f} s; written:", *written)


if __name__ == "__main__":
    main()
