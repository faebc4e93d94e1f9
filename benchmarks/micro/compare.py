"""What became slower or faster between two runs of the operators' benchmarks.

python -m pytest benchmarks/micro --benchmark-json OLD.json     # at the one commit
python -m pytest benchmarks/micro --benchmark-json NEW.json     # at the other
python benchmarks/micro/compare.py OLD.json NEW.json

On a shared machine, run both several times in turn and give all files, ``OLD1.json,OLD2.json NEW1.json,NEW2.json``: the
fastest round of each operator counts, which others on the machine disturb least.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path


def fastest(files: str) -> dict[str, float]:
    """Nanoseconds per element of each operator, in its fastest round of all files, which commas separate."""
    found: dict[str, float] = {}
    for file in files.split(","):
        for benchmark in json.loads(Path(file).read_text())["benchmarks"]:
            name = benchmark["params"]["name"]
            cost = benchmark["stats"]["min"] / benchmark["extra_info"]["elements"] * 1e9
            found[name] = min(cost, found.get(name, math.inf))
    return found


def comparison(old: dict[str, float], new: dict[str, float]) -> list[str]:
    """A table, what became slowest first."""
    both = sorted(old.keys() & new.keys(), key=lambda name: -new[name] / old[name])
    lines = [f"{'operator':<62} {'old ns':>12} {'new ns':>12} {'new / old':>10}"]
    lines += [f"{name:<62} {old[name]:>12,.0f} {new[name]:>12,.0f} {new[name] / old[name]:>10.2f}" for name in both]
    if both:
        mean = math.exp(sum(math.log(new[name] / old[name]) for name in both) / len(both))
        lines.append(f"{'geometric mean of the ratios':<62} {'':>12} {'':>12} {mean:>10.2f}")
    lines += [f"only in the old run: {name}" for name in sorted(old.keys() - new.keys())]
    lines += [f"only in the new run: {name}" for name in sorted(new.keys() - old.keys())]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", help="files of one commit, separated by commas")
    parser.add_argument("new", help="files of the other")
    arguments = parser.parse_args()
    print("\n".join(comparison(fastest(arguments.old), fastest(arguments.new))))


if __name__ == "__main__":
    main()
