"""Pictures of the results: how fast each library is relative to this one, and the chart of the front page."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.ticker import FuncFormatter, NullFormatter

from harness.results import FLOOR, OURS, Result, base, standing
from harness.tables import three

INK = "#7b7f86"  # for text and lines: a grey that can be read on white and on a dark page
# The palette of Okabe and Ito, which most people with a colour deficiency can tell apart, and markers for all others.
OURS_COLOUR = "#d55e00"
COLOURS = ("#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
ROW_INCHES = 0.36
SETTINGS = {"font.size": 9, "font.family": "DejaVu Sans", "svg.fonttype": "path", "svg.hashsalt": "benchmarks"}


def speeds(results: Result, path: Path) -> None:
    """Write the picture, in the format of the path's suffix: one row for each workload that has a result of ours."""
    stands = {name: standing(workload) for name, workload in results["workloads"].items() if "error" not in workload}
    names = [name for name, stand in stands.items() if stand.speed]
    names.sort(key=lambda name: stands[name].times(stands[name].peer) or 0)
    titles = [_title(results["workloads"][name]["title"]) for name in names]
    looks = _looks({base(library) for name in names for library in stands[name].speeds})
    with plt.rc_context(SETTINGS):
        figure, axes = plt.subplots(figsize=(10, 1.5 + ROW_INCHES * len(names)), layout="constrained")
        shown: dict[str, Any] = {}
        for row, name in enumerate(names):
            stand = stands[name]
            assert stand.speed
            best: dict[str, float] = {}
            for library, speed in stand.speeds.items():
                best[base(library)] = max(speed, best.get(base(library), 0.0))
            relative = {library: speed / stand.speed for library, speed in best.items()}
            axes.plot(
                [min(relative.values()), max(relative.values())], [row, row], color=INK, alpha=0.35, lw=1, zorder=1
            )
            for library, value in relative.items():
                shown[library] = axes.plot(value, row, ls="none", zorder=3, **looks[library])[0]
            if stand.limit:
                limit = stand.limits[stand.limit] / stand.speed
                shown["limit"] = axes.plot(limit, row, marker="|", ms=13, mew=2.2, color=INK, ls="none", zorder=2)[0]
        axes.axvline(1, color=OURS_COLOUR, lw=1, alpha=0.6, zorder=0)
        _dress(axes, titles)
        _ratios(axes, [stands[name].times(stands[name].peer) for name in names])
        order = [OURS, *sorted(shown.keys() - {OURS, FLOOR, "limit"}), FLOOR, "limit"]
        words = {FLOOR: "loop by hand, NumPy", "limit": "limit of the machine"}
        found = [name for name in order if name in shown]
        legend = figure.legend(
            [shown[name] for name in found],
            [words.get(name, name) for name in found],
            loc="outside upper center",
            ncols=min(6, len(found)),
            frameon=False,
            labelcolor=INK,
            handletextpad=0.3,
            columnspacing=1.4,
        )
        legend.set_in_layout(True)
        _save(figure, path)


def front(results: Result, path: Path) -> None:
    """Write the chart of the front page: for each workload, the speed relative to the fastest peer and to tf.data."""
    rows = []
    for workload in results["workloads"].values():
        stand = standing(workload) if "error" not in workload else None
        if stand and (ratio := stand.times(stand.peer)):
            theirs = [name for name in stand.speeds if base(name) == "tf.data"]
            over_tf = stand.times(max(theirs, key=stand.speeds.__getitem__, default=None))
            rows.append((ratio, over_tf, base(stand.peer or ""), _title(workload["title"], 70)))
    rows.sort()
    with plt.rc_context(SETTINGS):
        figure, axes = plt.subplots(figsize=(9, 1.1 + 0.3 * len(rows)), layout="constrained")
        right = axes.get_yaxis_transform()
        for row, (ratio, over_tf, peer, _) in enumerate(rows):
            colour = OURS_COLOUR if ratio >= 1 else INK
            axes.barh(row, ratio - 1, left=1, height=0.55, color=colour, alpha=0.85)
            if over_tf and peer != "tf.data":
                axes.plot(over_tf, row, marker="D", ms=4.5, ls="none", color=COLOURS[0], mec="none")
            axes.text(
                1.01, row, f"{three(ratio)}x {peer}", transform=axes.get_yaxis_transform(), color=INK, va="center"
            )
        axes.axvline(1, color=INK, lw=1)
        _dress(axes, [title for *_, title in rows])
        axes.set_xlabel("times as fast as the fastest peer (bar) and as tf.data (diamond)", color=INK)
        axes.text(1.01, len(rows) - 0.3, "fastest peer", transform=right, color=INK, weight="bold")
        _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    """Save without a date, so that the same results give the same file."""
    metadata = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(path, transparent=True, dpi=160, metadata=metadata)
    plt.close(figure)


def _title(title: str, width: int = 62) -> str:
    return textwrap.fill(re.sub(r"\s*->\s*", " → ", title), width)


def _looks(libraries: set[str]) -> dict[str, dict[str, Any]]:
    """The same colour and marker for a library in all rows."""
    looks: dict[str, dict[str, Any]] = {
        OURS: {"marker": "o", "ms": 12, "mew": 2, "mfc": "none", "color": OURS_COLOUR},  # hides no other
        FLOOR: {"marker": "x", "ms": 6, "mew": 1.8, "color": INK},
    }
    for index, library in enumerate(sorted(libraries - looks.keys())):
        colour = COLOURS[index % len(COLOURS)]
        looks[library] = {"marker": MARKERS[index % len(MARKERS)], "ms": 6.5, "color": colour, "mec": "none"}
    return looks


def _dress(axes: Any, titles: list[str]) -> None:
    axes.set_xscale("log")
    axes.set_yticks(range(len(titles)), titles)
    axes.set_ylim(-0.7, len(titles) - 0.3)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _ratio(value)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("elements per second, where dataset is 1 (farther right is faster)", color=INK)
    axes.tick_params(colors=INK, which="both", length=0)
    axes.grid(axis="x", color=INK, alpha=0.25, lw=0.6)
    for side in axes.spines.values():
        side.set_visible(False)


def _ratios(axes: Any, ratios: list[float | None]) -> None:
    """How many times as fast as the fastest peer, at the right."""
    right = axes.get_yaxis_transform()
    for row, ratio in enumerate(ratios):
        axes.text(1.1, row, f"{three(ratio)} x" if ratio else "", transform=right, color=INK, ha="right", va="center")
    where = (1.1, len(ratios) - 0.35)
    axes.text(*where, "next to the\nfastest peer", transform=right, color=INK, ha="right", va="bottom", size=8)


def _ratio(value: float) -> str:
    return f"1/{1 / value:,.0f}" if value < 1 else f"{value:,.0f}"
