"""Markdown tables of the docs: a page with one table per workload, and those of startup and scale."""

from __future__ import annotations

from harness.results import Result, spread
from harness.tables import (
    SUMMARY_HEADS,
    as_markdown,
    escaped,
    heads,
    in_bytes,
    machine_line,
    rows,
    summary,
    three,
)


def conditions(results: Result) -> str:
    """Return the date, the machine and the versions."""
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    return f"{_when(results)}; medians of {results['runs']} runs. Versions: {versions}."


def page(results: Result) -> str:
    """Return the tables of docs/benchmarks.md."""
    parts = [
        conditions(results),
        "![Speed of each library relative to this one, by workload](assets/benchmarks/speeds.svg)",
        "[All runs, as JSON](assets/benchmarks/results.json).",
        "### All workloads",
        as_markdown(SUMMARY_HEADS, summary(results)),
    ]
    for name, workload in results["workloads"].items():
        parts += _section(name, workload)
    return "\n\n".join(parts)


def _section(name: str, workload: Result) -> list[str]:
    parts = [f"### {escaped(workload['title'])}"]
    if "error" in workload:
        return [*parts, f"Not measured: {workload['error']}"]
    about = f"{workload['elements']:,} {workload['unit']}, {in_bytes(workload['data_bytes'])} of data."
    parts.append(f"`benchmarks/workloads/{name}.py`: {about} {workload['notes']}".strip())
    parts.append(as_markdown(heads(workload), rows(workload)))
    settings = [
        f"- {library}: {result['settings']}"
        + (f" ([recommended here]({result['source']}))" if result["source"] else "")
        for library, result in workload["libraries"].items()
        if result["settings"] or result["source"]
    ]
    return [*parts, "\n".join(settings)] if settings else parts


def startup(results: Result) -> str:
    """Return the table of the measurements by startup.py."""
    body = []
    for timing in results["timings"]:
        found = spread(1e3 * seconds for seconds in timing["seconds"])
        assert found is not None
        middle, low, high = (three(found[name]) for name in ("median", "min", "max"))
        body.append([f"`{timing['what']}`", middle, f"{low} to {high}", str(len(timing["seconds"]))])
    table = as_markdown(("", "ms", "min to max", "processes"), body)
    return f"{_when(results)}.\n\n{table}"


AUTOTUNE_HEADS = ("", "cells", "first 0.3 s", "afterwards", "first epoch", "third epoch", "CPU per element")


def autotune(results: Result) -> str:
    """Return the tables of the study of AUTOTUNE: geometric means by class, and the worst cells."""
    about = f"{_when(results)}; medians of {results['runs']} runs."
    parts = [f"{about} [All runs, as JSON](assets/benchmarks/autotune.json)."]
    for title, classes in results["summary"].items():
        body = [
            [name, str(row["cells"]), *(f"{ratio:.2f}" for what, ratio in row.items() if what != "cells")]
            for name, row in classes.items()
        ]
        parts += [f"Cells that were {title}:", as_markdown(AUTOTUNE_HEADS, body)]
        for period in ("first", "afterwards"):
            ratios = {
                name: cell["ratios"][period]
                for name, cell in results["cells"].items()
                if cell["held_out"] == (title == "held out")
            }
            worst = min(ratios, key=ratios.__getitem__)
            parts.append(f"The worst, {period}: {ratios[worst]:.2f} ({worst}).")
    return "\n\n".join(parts)


SCALE_HEADS = ("", "ns, at least", "at most", "at the largest", "start, ms", "memory, MiB")


def scale(results: Result) -> str:
    """Return the picture and the table of the measurements by scale/."""
    body = [_scaled(line) for line in results["lines"]]
    return "\n\n".join(
        [
            f"{_when(results)}; medians of {results['runs']} runs.",
            "![Cost, startup and memory along each axis](assets/benchmarks/scale.svg)",
            "[All points, as JSON](assets/benchmarks/scale.json).",
            as_markdown(SCALE_HEADS, body),
        ]
    )


def _scaled(line: Result) -> list[str]:
    points = [point for point in line["points"] if "failed" not in point]
    failed = [f"{point['size']:,}: {point['failed']}" for point in line["points"] if "failed" in point]
    title = f"{line['name']}, {line['points'][0]['size']:,} to {line['points'][-1]['size']:,}"
    if not points:
        return [title, *failed]
    costs = [point["marginal_ns"] for point in points]
    starts = [point["build_ms"] + point["first_ms"] for point in points]
    memory = [point["memory_mib"] for point in points]
    ranges = [f"{three(min(found))} to {three(max(found))}" for found in (starts, memory)]
    return ["; ".join([title, *failed]), three(min(costs)), three(max(costs)), three(costs[-1]), *ranges]


def _when(results: Result) -> str:
    revision = f" at commit `{results['revision']}`" if results["revision"] else ""
    return f"Measured on {results['date'][:10]}{revision}, on {machine_line(results)}"
