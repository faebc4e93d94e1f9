"""Trace: when which thread did which op's work, for the trace viewers of Chrome and Perfetto.

The format is described in "Trace Event Format" (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU).
"""

from __future__ import annotations

import os
import threading
import time
from typing import Any, NamedTuple, Protocol

from dataset.runtime.metrics.background import Counters

_EVENTS_MAX = 200_000  # about 20 MB of JSON


class TracedOp(Protocol):
    """What a trace needs to know about an op."""

    @property
    def name(self) -> str:
        """Its name with its arguments."""


class _Span(NamedTuple):
    op: TracedOp
    thread: int
    began: float
    seconds: float
    elements: int


class Trace:
    """Trace of one iteration. Any thread may add spans; those after the first 200,000 are dropped."""

    def __init__(self) -> None:
        self._spans: list[_Span] = []
        self._threads: dict[int, str] = {}

    def add(self, op: TracedOp, elements: int, seconds: float, began: float | None = None) -> None:
        """Add work of this thread that took ``seconds``. If ``began`` is None, it has just ended."""
        if len(self._spans) < _EVENTS_MAX:
            thread = threading.current_thread()
            ident = thread.ident or 0
            self._threads[ident] = thread.name
            since = time.perf_counter() - seconds if began is None else began
            self._spans.append(_Span(op, ident, since, seconds, elements))

    def to_chrome(self) -> dict[str, Any]:
        """Return the trace as plain data, for JSON. Times are in microseconds since the first span."""
        spans, process = sorted(self._spans, key=lambda span: span.began), os.getpid()
        start = spans[0].began if spans else 0.0
        threads = [
            {"name": "thread_name", "ph": "M", "pid": process, "tid": ident, "args": {"name": name}}
            for ident, name in self._threads.items()
        ]
        events = [
            {
                "name": span.op.name,
                "ph": "X",
                "pid": process,
                "tid": span.thread,
                "ts": (span.began - start) * 1e6,
                "dur": span.seconds * 1e6,
                "args": {"elements": span.elements},
            }
            for span in spans
        ]
        return {"traceEvents": threads + events, "displayTimeUnit": "ms"}


class TracedCounters(Counters):
    """Counters of a stage that also add its tasks to a trace."""

    __slots__ = ("_op", "_trace")

    def __init__(self, trace: Trace, op: TracedOp) -> None:
        super().__init__()
        self._trace, self._op = trace, op

    def add_task(self, count: int, nbytes: int, seconds: float, cpu_seconds: float, input_seconds: float) -> None:
        """Count a task that this thread has just finished."""
        super().add_task(count, nbytes, seconds, cpu_seconds, input_seconds)
        self._trace.add(self._op, count, seconds)
