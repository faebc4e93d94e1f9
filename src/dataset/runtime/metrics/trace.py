"""Trace: when which thread did which op's work, for the trace viewers of Chrome and Perfetto.

The format is described in "Trace Event Format" (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU).
"""

from __future__ import annotations

import os
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from dataset.runtime.metrics.lock_sampler import LockSample
from dataset.world import threading, time

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
    waits: bool  # for another thread that works for the op


class Trace:
    """Trace of one iteration. Any thread may add spans; those after the first 200,000 are dropped."""

    def __init__(self) -> None:
        self._spans: list[_Span] = []
        self._threads: dict[int, str] = {}
        self._workers: dict[str, int] = {}

    def add(
        self,
        op: TracedOp,
        elements: int,
        seconds: float,
        began: float | None = None,
        *,
        waits: bool = False,
        worker: str = "",
    ) -> None:
        """Add a span to the track of this thread, or of a worker process that this thread has waited for.

        Args:
            op: what was done.
            elements: for how many elements.
            seconds: how long it took.
            began: when it began; None if it has just ended.
            waits: whether this thread waited meanwhile.
            worker: the name of the process.
        """
        if len(self._spans) < _EVENTS_MAX:
            thread = threading.current_thread()
            ident = self._workers.setdefault(worker, len(self._workers) + 1) if worker else thread.ident or 0
            self._threads[ident] = worker or thread.name
            since = time.perf_counter() - seconds if began is None else began
            self._spans.append(_Span(op, ident, since, seconds, elements, waits))

    def add_task(self, op: TracedOp, elements: int, seconds: float, worker: str) -> None:
        """Add a task that this thread, or a process for which it waited, has just finished."""
        self.add(op, elements, seconds, waits=bool(worker), worker=worker)

    def lock_shares(self, samples: Sequence[LockSample]) -> dict[TracedOp, float]:
        """Return the share of the time of each op, over all threads, in which it held the interpreter lock.

        If several threads work when the lock is held, each is assumed to be the holder with the same probability.
        """
        held, seen = defaultdict[TracedOp, float](float), defaultdict[TracedOp, float](float)
        spans = sorted(self._spans, key=lambda span: (span.began, -span.seconds))
        threads = [_innermost([span for span in spans if span.thread == one], samples) for one in self._threads]
        for sample, *found in zip(samples, *threads, strict=True):
            ops = [span.op for span in found if span is not None and not span.waits]
            for op in ops:
                seen[op] += sample.seconds
                held[op] += sample.seconds / len(ops) if sample.is_held else 0.0
        return {op: held[op] / seen[op] for op in seen}

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


def _innermost(spans: Iterable[_Span], samples: Iterable[LockSample]) -> Iterator[_Span | None]:
    """Yield the span of one thread in which each sample lies, without the spans around it."""
    later, open_spans = deque(spans), list[_Span]()
    for sample in samples:
        while later and later[0].began <= sample.at:
            open_spans.append(later.popleft())
        while open_spans and open_spans[-1].began + open_spans[-1].seconds < sample.at:
            open_spans.pop()
        yield open_spans[-1] if open_spans else None
