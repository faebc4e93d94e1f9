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
_SCHEDULE_SECONDS = 5e-3  # between two looks at the schedule of a thread, which take about 20 us


class TracedOp(Protocol):
    """What a trace needs to know about an op."""

    @property
    def name(self) -> str:
        """Its name with its arguments."""


class _Schedule(NamedTuple):
    """What the scheduler says about a thread: how long it has run, and how long it has waited for a core, in seconds.

    https://docs.kernel.org/scheduler/sched-stats.html describes the file. Only Linux has it; the result is then zeros.
    """

    cpu_seconds: float = 0.0
    wait_seconds: float = 0.0

    @classmethod
    def of_this_thread(cls) -> _Schedule:
        try:
            with open("/proc/thread-self/schedstat", "rb") as file:
                run, waited, _ = file.read().split()
            return cls(int(run) / 1e9, int(waited) / 1e9)
        except (OSError, ValueError):
            return cls()


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
        self._first: dict[int, _Schedule] = {}  # of each thread, at its first span
        self._last: dict[int, tuple[float, _Schedule]] = {}  # and later, with the time

    def add(self, op: TracedOp, elements: int, seconds: float, began: float | None = None) -> None:
        """Add work of this thread that took ``seconds``. If ``began`` is None, it has just ended."""
        if len(self._spans) < _EVENTS_MAX:
            thread = threading.current_thread()
            ident = thread.ident or 0
            self._threads[ident] = thread.name
            since = time.perf_counter() - seconds if began is None else began
            self._spans.append(_Span(op, ident, since, seconds, elements))
            until = since + seconds
            if ident not in self._first:
                self._first[ident] = _Schedule.of_this_thread()
            elif until - self._last.get(ident, (0.0,))[0] > _SCHEDULE_SECONDS:
                self._last[ident] = until, _Schedule.of_this_thread()

    def core_wait(self, op: TracedOp) -> float:
        """Return how long the threads that worked for an op waited for a core, per second of their CPU time."""
        threads = {span.thread for span in self._spans if span.op is op} & self._last.keys()
        pairs = [(self._first[thread], self._last[thread][1]) for thread in threads]
        cpu = sum(last.cpu_seconds - first.cpu_seconds for first, last in pairs)
        return sum(last.wait_seconds - first.wait_seconds for first, last in pairs) / cpu if cpu else 0.0

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
