"""The figure: a row for each axis; beside each other what an element costs, what starting costs, and memory.

python benchmarks/scale/plots.py build/benchmarks/scale.json draws it again.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

ROWS = {
    "elements": ("More elements", "elements", "ns per element"),
    "files": ("More files", "files", "ns per record"),
    "depth": ("Longer chains", "ops in the chain", "ns per element and op"),
    "width": ("More inputs", "inputs", "ns per element"),
}
COLUMNS = ["cost beyond the first batch", "start: building, and the first batch", "growth of peak memory"]
MEMORY_MIN = 0.1
"""MiB; less is drawn as so much, because it is a matter of a few pages."""
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#000000"]  # told apart by colour-blind readers, too
MARKERS = ["o", "s", "^", "D", "v", "x"]


def draw(result: dict[str, Any], path: Path) -> list[Path]:
    """Write the figure as SVG and PNG; nothing where matplotlib is not installed."""
    try:
        import matplotlib as mpl
    except ImportError:
        print("matplotlib is not installed: no plots", file=sys.stderr)
        return []
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "scale"})
    axes = [name for name in ROWS if any(line["axis"] == name for line in result["lines"])]
    figure = plt.figure(figsize=(13, 3.9 * len(axes)), layout="constrained")
    for part, name in zip(figure.subfigures(len(axes), 1, squeeze=False)[:, 0], axes, strict=True):
        _draw_row(part, name, [line for line in result["lines"] if line["axis"] == name])
    # Dots belong to names, and with_suffix() would take what follows one for a suffix.
    written = [path.with_name(f"{path.name}.{kind}") for kind in ["svg", "png"]]
    figure.savefig(written[0], metadata={"Date": None})
    figure.savefig(written[1], dpi=110)
    plt.close(figure)
    return written


def _draw_row(part: Any, name: str, lines: list[dict[str, Any]]) -> None:
    title, growing, cost = ROWS[name]
    row = part.subplots(1, 3)
    for index, line in enumerate(lines):
        points = [point for point in line["points"] if "failed" not in point]
        sizes = [point["size"] for point in points]
        quantities = [
            [point["marginal_ns"] for point in points],
            [point["build_ms"] + point["first_ms"] for point in points],
            [max(point["memory_mib"], MEMORY_MIN) for point in points],
        ]
        style = {
            "color": COLOURS[index % len(COLOURS)],
            "marker": MARKERS[index % len(MARKERS)],
            "linestyle": "-" if line["library"] == "dataset" else "--",
            "label": line["title"] if line["library"] == "dataset" else f"{line['library']}: {line['title']}",
        }
        for panel, values in zip(row, quantities, strict=True):
            panel.plot(sizes, values, markersize=4, linewidth=1.5, **style)
    for panel, heading, unit in zip(row, COLUMNS, [cost, "ms", "MiB"], strict=True):
        panel.set_title(heading, fontsize=9)
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_xlabel(growing)
        panel.set_ylabel(unit)
        panel.grid(visible=True, which="major", color="#dddddd", linewidth=0.6)
        panel.set_axisbelow(True)
        for axis in panel.xaxis, panel.yaxis:
            axis.set_major_formatter(_plain)
        _widen(panel)
    part.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
    part.legend(handles=row[0].lines, loc="outside lower center", ncols=3, frameon=False, fontsize=8)


def _plain(value: float, position: int) -> str:
    """10, 1,000, 10^8: numbers that are read at a glance."""
    return f"{value:,g}" if value <= 1000 else f"$10^{{{math.log10(value):.0f}}}$"


def _widen(panel: Any) -> None:
    """Show two powers of ten at least, so that what is flat looks flat."""
    low, high = panel.get_ylim()
    if high / low < 100:
        middle = (high * low) ** 0.5
        panel.set_ylim(middle / 10, middle * 10)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    print(*draw(json.loads(path.read_text()), path.with_suffix("")))
