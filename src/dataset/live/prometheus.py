"""Prometheus exposition: a snapshot in the text format 0.0.4.

https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Family = tuple[str, str, str, str]
"""A metric: its name, its kind, its key among the figures, and what it is."""

_SNAPSHOT: list[Family] = [
    ("pipeline", "gauge", "pipeline", "The number of the iteration that the figures are of."),
    ("tuning_decisions_total", "counter", "decision_count", "Decisions of the autotuner."),
]

PIPELINE: list[Family] = [
    ("running", "gauge", "running", "1 while the iteration runs, 0 after its end."),
    ("elements_total", "counter", "elements", "Elements that the consumer has received."),
    ("seconds_total", "counter", "seconds", "Time since the first element was requested."),
    ("wait_seconds_total", "counter", "wait_seconds", "Time that the consumer waited."),
    ("buffered_bytes", "gauge", "buffered_bytes", "Size of all buffers."),
    ("ram_budget_bytes", "gauge", "ram_budget", "Limit of the size of all buffers."),
    ("cpu_budget_cores", "gauge", "cpu_budget", "Cores that AUTOTUNE may keep busy."),
]

OPERATOR: list[Family] = [
    ("operator_elements_total", "counter", "elements", "Elements that the operator has produced."),
    ("operator_bytes_total", "counter", "nbytes", "Approximate size of these elements."),
    ("operator_seconds_total", "counter", "seconds", "Time of the operator's own work over all threads."),
    ("operator_cpu_seconds_total", "counter", "cpu_seconds", "CPU time of that work."),
    ("operator_input_wait_seconds_total", "counter", "input_wait_seconds", "Time that it waited for its inputs."),
    ("operator_consumer_wait_seconds_total", "counter", "consumer_wait_seconds", "Time that its consumer waited."),
    ("operator_skipped_elements_total", "counter", "skipped_elements", "Elements that it dropped."),
    ("operator_memory_refusals_total", "counter", "memory_refusals", "How often it paused for lack of memory."),
    ("operator_busy_ratio", "gauge", "busy", "Share of the time in which it did its own work."),
    ("operator_parallelism", "gauge", "parallelism", "Limit of concurrent calls."),
    ("operator_buffer_size", "gauge", "buffer_size", "Limit of buffered elements."),
    ("operator_buffered_elements", "gauge", "buffered_elements", "Buffered elements."),
    ("operator_buffered_bytes", "gauge", "buffered_bytes", "Size of the buffered elements."),
]


def value_of(figures: Mapping[str, Any], key: str) -> Any:
    """Return one of the figures of a pipeline."""
    return int(not figures["ended"]) if key == "running" else figures[key]


def exposition(snapshot: Mapping[str, Any]) -> str:
    """Return a snapshot as text. Before a pipeline has begun, it is empty."""
    if "stats" not in snapshot:
        return ""
    stats, rank = snapshot["stats"], snapshot["process"]["rank"]
    common = {} if rank is None else {"rank": str(rank)}
    lines: list[str] = []
    for figures, families in ((snapshot, _SNAPSHOT), (stats, PIPELINE)):
        for name, kind, key, words in families:
            _add(lines, name, kind, words, [(common, value_of(figures, key))])
    operators = [
        ({**common, "index": str(index), "operator": operator["name"]}, operator)
        for index, operator in enumerate(stats["operators"])
    ]
    for name, kind, key, words in OPERATOR:
        _add(lines, name, kind, words, [(labels, operator[key]) for labels, operator in operators])
    if waits := stats["step_waits"]:
        quantiles = [({**common, "quantile": f"0.{percent}"}, waits[f"p{percent}"]) for percent in (50, 95, 99)]
        _add(lines, "step_wait_seconds", "summary", "How long a step waits for its element.", quantiles)
        for suffix, value in (("sum", stats["wait_seconds"]), ("count", stats["elements"])):
            lines.append(_sample(f"step_wait_seconds_{suffix}", common, value))
    return "\n".join(lines) + "\n"


def _add(
    lines: list[str], name: str, kind: str, words: str, samples: Iterable[tuple[Mapping[str, str], float | None]]
) -> None:
    if found := [_sample(name, labels, value) for labels, value in samples if value is not None]:
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
