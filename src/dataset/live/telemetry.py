"""Telemetry: the figures of a pipeline as OpenTelemetry metrics, through its API alone.

The application chooses an SDK and where it sends them. Without one, the API drops everything.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from dataset.extras import load_extra
from dataset.live.prometheus import OPERATOR, PIPELINE, Family, value_of

_UNITS = {"seconds": "s", "bytes": "By", "ratio": "1"}


class Telemetry:
    """Sends statistics as instruments named ``dataset.*``; those of operators have attributes that say which."""

    def __init__(self) -> None:
        metrics = load_extra("opentelemetry.metrics", "telemetry", "export_telemetry() needs")
        meter = metrics.get_meter("dataset")
        self._instruments = {family[0]: _instrument(meter, family) for family in (*PIPELINE, *OPERATOR)}
        self._sent: dict[tuple[str, int], float] = {}  # the last value of each counter
        self._common = {"rank": rank} if (rank := os.environ.get("RANK")) else {}

    def send(self, stats: Mapping[str, Any]) -> None:
        """Send the statistics of a pipeline as plain data."""
        for family in PIPELINE:
            self._send(family, stats, self._common, -1)
        for index, operator in enumerate(stats["operators"]):
            attributes = {**self._common, "operator": operator["name"], "index": index}
            for family in OPERATOR:
                self._send(family, operator, attributes, index)

    def _send(self, family: Family, figures: Mapping[str, Any], attributes: Mapping[str, Any], index: int) -> None:
        name, kind, key, _ = family
        value = value_of(figures, key)
        if value is None:
            return
        if kind == "gauge":
            self._instruments[name].set(value, attributes)
        elif (more := value - self._sent.get((name, index), 0)) > 0:  # an estimate may become smaller
            self._sent[name, index] = value
            self._instruments[name].add(more, attributes)


def _instrument(meter: Any, family: Family) -> Any:
    name, kind, _, words = family
    name = name.removesuffix("_total")
    create = meter.create_gauge if kind == "gauge" else meter.create_counter
    unit = _UNITS.get(name.rpartition("_")[2], "")
    return create(f"dataset.{name.replace('operator_', 'operator.')}", unit=unit, description=words)
