"""What happens in a fresh process: one job for one runner. Started by fresh.py as ``python -m harness.child FD JOB``.

Libraries may print what they like: the result goes to the parent through a socket of its own.
"""

from __future__ import annotations

import gc
import importlib
import itertools
import json
import os
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from harness.workload import Pipeline, Workload

FIRST_PASS_S = 1.0
"""Long enough for traces, autotuners and worker processes to have settled, short beside what is measured."""

TIMED_S = 0.5
"""Passes that take less are repeated until it is over, so that chance says less."""

LIMIT_S = 1.0
GLANCE_S = 0.001
GLANCE_BATCHES = 64
"""The clock is looked at about this often, so that looking costs nothing where batches come by the million."""


def a_pass(
    pipeline: Pipeline,
    count: Callable[[Any], int],
    cap_s: float | None,
    settle: Callable[[dict[str, Any]], None] = lambda _: None,
) -> dict[str, Any]:
    """Iterate an epoch, to its end or until ``cap_s`` seconds have gone by since the first batch.

    So where starting takes long, as daemons and processes do, it counts, but is not all that counts.
    ``settle`` is given the result while all that the iterator started is still there.
    """
    started = time.perf_counter()
    iterator = iter(pipeline)
    elements, first_s, seconds, complete = 0, None, 0.0, False
    at_once = 1
    while not complete and (cap_s is None or seconds - (first_s or 0.0) < cap_s):
        before, taken = seconds, 0
        for taken, batch in enumerate(itertools.islice(iterator, at_once), 1):  # noqa: B007
            elements += count(batch)
        seconds = time.perf_counter() - started
        complete = taken < at_once
        if first_s is None and taken:
            first_s = seconds
        elif seconds - before < GLANCE_S:
            at_once = min(2 * at_once, GLANCE_BATCHES)
        elif at_once > 1:
            at_once //= 2
    result = {"elements": elements, "seconds": seconds, "first_batch_s": first_s, "complete": complete}
    settle(result)
    close(iterator)
    return result


def passes(
    pipeline: Pipeline, count: Callable[[Any], int], cap_s: float, settle: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """One pass, or several short ones, as if they were one. ``settle`` is called in the last."""
    over = time.perf_counter() + min(TIMED_S, cap_s)
    found: list[dict[str, Any]] = []
    last = False

    def look(result: dict[str, Any]) -> None:
        nonlocal last
        last = time.perf_counter() >= over or not result["complete"] or not result["elements"]
        if last:
            settle()

    while not last:
        found.append(a_pass(pipeline, count, cap_s, look))
    return {
        "passes": len(found),
        "elements": sum(one["elements"] for one in found),
        "seconds": sum(one["seconds"] for one in found),
        "first_batch_s": found[0]["first_batch_s"],
        "complete": found[-1]["complete"],
    }


def close(iterator: Iterator[Any]) -> None:
    """Let what an iterator has started come to its end, where it knows how to."""
    if hasattr(iterator, "close"):
        iterator.close()


def digests(pipeline: Pipeline, workload: Workload, epochs: int = 2) -> list[tuple[int, float]]:
    """The number of elements of whole epochs, and their digests."""
    results = []
    for _ in range(epochs):
        elements, digest = 0, 0.0
        for batch in pipeline:
            elements += workload.count(batch)
            digest += workload.digest(batch)
        results.append((elements, digest))
    return results


class Parent:
    """The other end of the socket."""

    def __init__(self, fd: int) -> None:
        os.set_inheritable(fd, False)
        self.file = socket.socket(fileno=fd).makefile("rw", encoding="utf-8")

    def tell(self, **message: Any) -> None:
        self.file.write(json.dumps(message) + "\n")
        self.file.flush()

    def mark(self, name: str) -> None:
        """Have the parent look at this process and all below it, and go on when it has."""
        self.tell(mark=name, cpu_s=time.process_time())
        self.file.readline()


def measure(workload: Workload, job: dict[str, Any], parent: Parent) -> dict[str, Any]:
    folder, cap_s = Path(job["folder"]), job["cap_s"]
    started = time.perf_counter()
    pipeline = workload.runners[job["library"]].make(folder)
    construction_s = time.perf_counter() - started
    parent.mark("made")
    first = a_pass(pipeline, workload.count, None if workload.whole_first_epoch else min(FIRST_PASS_S, cap_s))
    gc.collect()
    parent.mark("started")
    timed = passes(pipeline, workload.count, cap_s, lambda: parent.mark("ended"))
    return {"construction_s": construction_s, "first": first, "timed": timed}


def limit(workload: Workload, job: dict[str, Any]) -> dict[str, Any]:
    run = next(limit.run for limit in workload.limits if limit.step == job["step"])
    folder = Path(job["folder"])
    run(folder)
    elements, seconds = 0, 0.0
    started = time.perf_counter()
    while seconds < min(LIMIT_S, job["cap_s"]):
        elements += run(folder)
        seconds = time.perf_counter() - started
    return {"elements": elements, "seconds": seconds}


def do(job: dict[str, Any], workload: Workload, parent: Parent) -> dict[str, Any]:
    folder = Path(job["folder"])
    match job["what"]:
        case "data":
            workload.make_data(folder, job["scale"])
            return {}
        case "check":
            return {"epochs": digests(workload.runners[job["library"]].make(folder), workload)}
        case "count":
            return {"elements": a_pass(workload.runners[job["library"]].make(folder), workload.count, None)["elements"]}
        case "measure":
            return measure(workload, job, parent)
        case _:
            return limit(workload, job)


def reason(error: BaseException) -> str:
    """An error in one line. ``absent`` is said of what is not installed, or cannot be loaded here."""
    text = f"{type(error).__name__}: {error}".strip().splitlines()[0]
    missing = isinstance(error, ImportError) and "cannot import name" not in str(error)
    return f"absent: {error}".splitlines()[0] if missing else f"failed: {text}"


def main() -> None:
    parent = Parent(int(sys.argv[1]))
    job = json.loads(sys.argv[2])
    workload: Workload = importlib.import_module(job["module"]).WORKLOAD
    try:
        parent.tell(result=do(job, workload, parent))
    except BaseException as error:  # noqa: BLE001 -- whatever a library raises is the result
        traceback.print_exc()
        parent.tell(error=reason(error))


if __name__ == "__main__":
    main()
