"""Publish results in the docs: tables and pictures, generated from the files that the benchmarks wrote.

python benchmarks/publish.py [build/benchmarks]

The results and pictures go to docs/assets/benchmarks/. The tables go to docs/benchmarks.md, or to the page in PAGES,
between comments such as ``<!-- results: begin -->`` and ``<!-- results: end -->``. The rest of the page, and the tables
of benchmarks without new results, stay unchanged.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from harness import markdown
from harness.results import Result

ROOT = Path(__file__).parents[1]

PARTS: dict[str, Callable[[Result], str]] = {
    "results": markdown.page,
    "startup": markdown.startup,
    "scale": markdown.scale,
    "autotune": markdown.autotune,
}
"""By the name of a results file: the function that renders it."""

PAGES = {"autotune": "autotuner.md"}
"""By the name of a results file: the page of the docs with its tables, if it is not benchmarks.md."""


def filled(text: str, part: str, tables: str) -> str | None:
    """Return a page with tables between the comments of that part, or None if it has no such comments."""
    begin, end = f"<!-- {part}: begin -->", f"<!-- {part}: end -->"
    before, found, rest = text.partition(begin)
    _, found_end, after = rest.partition(end)
    return f"{before}{begin}\n{tables}\n{end}{after}" if found and found_end else None


def publish(measured: Path, root: Path = ROOT) -> None:
    """Publish the results in a folder: any of those that PARTS names, with ``.json``."""
    assets = root / "docs" / "assets" / "benchmarks"
    assets.mkdir(parents=True, exist_ok=True)
    for part, render in PARTS.items():
        page = root / "docs" / PAGES.get(part, "benchmarks.md")
        if not (measured / f"{part}.json").exists():
            print(f"no {part}.json in {measured}; its published tables stay unchanged", file=sys.stderr)
            continue
        for file in measured.glob(f"{part}.*"):  # includes the pictures that the benchmark draws itself
            shutil.copyfile(file, assets / file.name)
        results = json.loads((assets / f"{part}.json").read_text())
        if part == "results":
            from harness import plots  # needs matplotlib

            for suffix in ("svg", "png"):
                plots.speeds(results, assets / f"speeds.{suffix}")
            plots.front(results, assets / "front.svg")
        text = filled(page.read_text(), part, render(results))
        if text is None:
            print(f"{page} has no comments for {part}; it stays unchanged", file=sys.stderr)
        else:
            page.write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured", type=Path, nargs="?", default=Path("build/benchmarks"))
    publish(parser.parse_args().measured)


if __name__ == "__main__":
    main()
