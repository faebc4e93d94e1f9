"""Prometheus exposition: a snapshot in the text format 0.0.4.

https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

Family = tuple[str, str, str, Callable[[Mapping[str, Any]], Any]]
"""A metric: its name, its kind, what it is, and how it is read from figures."""

_SNAPSHOT: list[Family] = [
    ("pipeline", "gauge", "The number of the iteration that the figures are of.", lambda s: s["pipeline"]),
    ("tuning_decisions_total", "counter", "Decisions of the autotuner.", lambda s: s["decision_count"]),
]

PIPELINE: list[Family] = [
    ("running", "gauge", "1 while the iteration runs, 0 after its end.", lambda s: int(not s["ended"])),
    ("elements_total", "counter", "Elements that the consumer has received.", lambda s: s["elements"]),
    ("seconds_total", "counter", "Time since the first element was requested.", lambda s: s["seconds"]),
    ("wait_seconds_total", "counter", "Time that the consumer waited.", lambda s: s["wait_seconds"]),
    ("buffered_bytes", "gauge", "Size of all buffers.", lambda s: s["buffered_bytes"]),
    ("ram_budget_bytes", "gauge", "Limit of the size of all buffers.", lambda s: s["ram_budget"]),
    ("cpu_budget_cores", "gauge", "Cores that AUTOTUNE may keep busy.", lambda s: s["cpu_budget"]),
]

OPERATOR: list[Family] = [
    (f"operator_{name}", kind, words, lambda o, key=key: o[key])  # type: ignore[misc]
    for name, kind, key, words in [
        ("elements_total", "counter", "elements", "Elements that the operator has produced."),
        ("bytes_total", "counter", "nbytes", "Approximate size of these elements."),
        ("seconds_total", "counter", "seconds", "Time of the operator's own work over all threads."),
        ("cpu_seconds_total", "counter", "cpu_seconds", "CPU time of that work."),
        ("input_wait_seconds_total", "counter", "input_wait_seconds", "Time that it waited for its inputs."),
        ("consumer_wait_seconds_total", "counter", "consumer_wait_seconds", "Time that its consumer waited for it."),
        ("skipped_elements_total", "counter", "skipped_elements", "Elements that it dropped."),
        ("memory_refusals_total", "counter", "memory_refusals", "How often it paused for lack of memory."),
        ("busy_ratio", "gauge", "busy", "Share of the time in which it did its own work."),
        ("parallelism", "gauge", "parallelism", "Limit of concurrent calls."),
        ("buffer_size", "gauge", "buffer_size", "Limit of buffered elements."),
        ("buffered_elements", "gauge", "buffered_elements", "Buffered elements."),
        ("buffered_bytes", "gauge", "buffered_bytes", "Size of the buffered elements."),
    ]
]


def exposition(snapshot: Mapping[str, Any]) -> str:
    """Return a snapshot as text. Before a pipeline has begun, it is empty."""
    if "stats" not in snapshot:
        return ""
    stats, rank = snapshot["stats"], snapshot["process"]["rank"]
    common = {} if rank is None else {"rank": str(rank)}
    lines: list[str] = []
    for figures, families in ((snapshot, _SNAPSHOT), (stats, PIPELINE)):
        for name, kind, words, value in families:
            _add(lines, name, kind, words, [(common, value(figures))])
    operators = [
        ({**common, "index": str(index), "operator": operator["name"]}, operator)
        for index, operator in enumerate(stats["operators"])
    ]
    for name, kind, words, value in OPERATOR:
        _add(lines, name, kind, words, [(labels, value(operator)) for labels, operator in operators])
    if waits := stats["step_waits"]:
        quantiles = [({**common, "quantile": f"0.{percent}"}, waits[f"p{percent}"]) for percent in (50, 95, 99)]
        _add(lines, "step_wait_seconds", "summary", "How long a step waits for its element.", quantiles)
        for suffix, value in (("sum", stats["wait_seconds"]), ("count", stats["elements"])):
            lines.append(_sample(f"step_wait_seconds_{suffix}", common, value))
    return "\n".join(lines) + "\n"


def _add(
    lines: list[str], name: str, kind: str, words: str, samples: Iterable[tuple[Mapping[str, str], float | None]]
) -> None:
    found = [_sample(name, labels, value) for labels, value in samples if value is not None]
    if found:
        lines += [f"# HELP dataset_{name} {words}", f"# TYPE dataset_{name} {kind}", *found]


def _sample(name: str, labels: Mapping[str, str], value: float) -> str:
    pairs = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"dataset_{name}{{{pairs}}} {value!r}" if pairs else f"dataset_{name} {value!r}"


def _escaped(text: str) -> str:
    r"""Escape a label value.

    >>> print(_escaped('a "b"' + chr(10)))
    a \"b\"\n
    """
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
