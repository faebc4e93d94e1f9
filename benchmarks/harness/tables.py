"""Tables of results, as text for a terminal and as Markdown for the docs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from harness.results import OURS, Result, base, standing


def three(value: float | None) -> str:
    """Rounded to three digits, written out: ``1,230,000``, ``45.6``, ``0.00789``."""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    rounded = float(f"{value:.3g}")
    if abs(rounded) >= 100:
        return f"{rounded:,.0f}"
    digits = 2 - int(f"{rounded:e}".split("e")[1])
    return f"{rounded:.{digits}f}"


def in_bytes(size: int) -> str:
    power = min(3, (len(str(size)) - 1) // 3)
    return f"{three(size / 1000**power) if power else size} {('bytes', 'kB', 'MB', 'GB')[power]}"


def percent(share: float | None) -> str:
    return "-" if share is None else f"{three(100 * share)}%"


HEADS = (
    "",
    "{unit}/s",
    "min to max",
    "dataset is",
    "first batch, ms",
    "next epoch's, ms",
    "CPU s/million",
    "peak MB",
    "of it made",
    "of the limit",
)


def rows(workload: Result) -> list[list[str]]:
    """One for each library, the fastest first, then those without a result, then the limits."""
    stand = standing(workload)
    limit = stand.limits[stand.limit] if stand.limit else None
    found = []
    for library in sorted(workload["libraries"], key=lambda name: -stand.speeds.get(name, 0)):
        result = workload["libraries"][library]
        if result["outcome"] != "ok":
            found.append([library, result["outcome"]])
            continue
        speed = result["elements_per_s"]
        ratio = "" if base(library) == OURS else times(stand.times(library))
        found.append(
            [
                library,
                three(speed["median"]),
                f"{three(speed['min'])} to {three(speed['max'])}",
                ratio,
                *(three(result[name]["median"]) if result[name] else "-" for name in MEASURES),
                percent(speed["median"] / limit if limit else None),
            ]
        )
    for step, result in workload["limits"].items():
        name = f"limit: {step}"
        if result["outcome"] != "ok":
            found.append([name, result["outcome"]])
        else:
            speed = result["elements_per_s"]
            found.append([name, three(speed["median"]), f"{three(speed['min'])} to {three(speed['max'])}"])
    return found


MEASURES = ("first_batch_ms", "second_first_batch_ms", "cpu_s_per_million", "peak_mb", "made_mb")


def heads(workload: Result) -> list[str]:
    return [head.format(unit=workload["unit"]) for head in HEADS]


SUMMARY_HEADS = ("", "dataset", "fastest peer", "its speed", "dataset is", "than the loop", "of the limit", "")


def summary(results: Result) -> list[list[str]]:
    """One row for each workload."""
    found = []
    for workload in results["workloads"].values():
        stand = standing(workload)
        found.append(
            [
                workload["title"],
                f"{three(stand.speed)} {workload['unit']}/s" if stand.speed else "-",
                stand.peer or "-",
                three(stand.speeds[stand.peer]) if stand.peer else "-",
                times(stand.times(stand.peer)),
                times(stand.times(stand.floor)),
                percent(stand.share),
                ", ".join(stand.remarks),
            ]
        )
    return found


def times(value: float | None) -> str:
    return "-" if value is None else f"{three(value)} x"


NAME_WIDTH = 48


def as_text(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns for a terminal: words to the left, numbers to the right. A short row's last cell may run on."""
    lines = []
    for row in [heads, *rows]:
        *above, last = textwrap.wrap(row[0], NAME_WIDTH) or [""]
        lines += [*([part] for part in above), [last, *row[1:]]]
    full = [line for line in lines if len(line) == len(heads)]
    widths = [max(len(line[column]) for line in full) for column in range(len(heads))]
    widths[0] = max(len(line[0]) for line in lines)
    right = [_is_number(column, full[1:]) for column in range(len(heads))]
    return "\n".join(
        "  ".join(
            cell.rjust(width)
            if to_right and (len(line) == len(heads) or _starts_with_digit(cell))
            else cell.ljust(width)
            for cell, width, to_right in zip(line, widths, right, strict=False)
        ).rstrip()
        for line in lines
    )


def _is_number(column: int, lines: Sequence[Sequence[str]]) -> bool:
    return column > 0 and all(_starts_with_digit(line[column]) for line in lines)


def _starts_with_digit(cell: str) -> bool:
    return cell[:1].isdigit() or cell in {"", "-"}


def as_markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    body = [list(row) for row in rows]
    full = [row for row in body if len(row) == len(heads)]
    lines = [
        list(heads),
        ["---:" if _is_number(column, full) and full else "---" for column in range(len(heads))],
        *([escaped(cell) for cell in row] + [""] * (len(heads) - len(row)) for row in body),
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("<", "&lt;").replace("->", "→")


MACHINE = ("cpu", "cores", "memory_gib", "system", "python")


def machine_line(results: Result) -> str:
    cpu, cores, gib, system, python = (results["machine"][name] for name in MACHINE)
    return f"{cpu}, {cores} cores, {gib} GiB, {system}, {python}"


def report(results: Result, names: Iterable[str]) -> str:
    """A table for each workload, and one of all, for a terminal."""
    parts = [f"{machine_line(results)}; runs: {results['runs']}, each in a fresh process"]
    for name in names:
        workload = results["workloads"][name]
        parts.append(workload["title"] + (f"\n{workload['error']}" if "error" in workload else ""))
        if "error" not in workload:
            parts[-1] += "\n" + as_text(heads(workload), rows(workload))
    parts.append(as_text(SUMMARY_HEADS, summary(results)))
    return "\n\n".join(parts)


def ours_is_sound(workload: Result) -> bool:
    """Whether there are results, and none of ours is wrong or missing."""
    outcomes = [result["outcome"] for name, result in workload["libraries"].items() if base(name) == OURS]
    return "error" not in workload and all(outcome == "ok" for outcome in outcomes)
