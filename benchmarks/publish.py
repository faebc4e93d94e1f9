"""Puts results into the docs: tables and pictures, all made from one file that run.py has written.

python benchmarks/publish.py build/benchmarks/results.json

docs/assets/benchmarks/ takes the results and the pictures, docs/benchmarks.md and README.md the tables, between the
comments ``<!-- benchmarks: begin -->`` and ``<!-- benchmarks: end -->``. Nothing else of the pages is touched.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from harness import markdown
from harness.results import Result

ROOT = Path(__file__).parents[1]
BEGIN = "<!-- benchmarks: begin -->"
END = "<!-- benchmarks: end -->"
PAGES = {"docs/benchmarks.md": markdown.page, "README.md": markdown.short}


def filled(text: str, tables: str) -> str | None:
    """A page with the tables between its comments. None if it has no such place."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    return f"{before}{BEGIN}\n{tables}\n{END}{after}" if begin and end else None


def publish(results: Result, root: Path = ROOT) -> None:
    from harness import plots

    assets = root / "docs" / "assets" / "benchmarks"
    assets.mkdir(parents=True, exist_ok=True)
    (assets / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    for suffix in ("svg", "png"):
        plots.speeds(results, assets / f"speeds.{suffix}")
    for name, made in PAGES.items():
        page = root / name
        text = filled(page.read_text(), made(results))
        if text is None:
            print(f"{name} has no {BEGIN}; left as it is", file=sys.stderr)
        else:
            page.write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    publish(json.loads(parser.parse_args().results.read_text()))


if __name__ == "__main__":
    main()
