"""Measures AUTOTUNE against the best fixed setting, in cells whose function, position, length and consumer differ.

    python benchmarks/studies/autotune.py [--quick] [--runs 3] [--only TEXT] [--held-out] [--json FILE] [--log]

A cell is a pipeline of autotune_cells.py or autotune_held_out.py. Its fixed settings are measured first, for a moment
each, to find how many elements make an epoch and which settings are the fastest. Those within a tenth of the fastest
run whole epochs, and the best of them is measured again in alternation with AUTOTUNE: only these last numbers are
quoted, since the best of many noisy numbers is too good. All numbers are medians over the runs.

Each measurement runs in a process of its own, forked from one that has never iterated a dataset. A pipeline that is
rebuilt is built again for each epoch. The time of all epochs counts, from the first `iter`, with the builds:

- first: the elements delivered in the first 0.3 s, between batches in proportion to the time.
- afterwards: those delivered later, per second.
- epoch 3 (1): the rate in the third (first) epoch.
- CPU: the time of all processes per element, without that of the consumer.

In cells of the class "processes", executor=AUTOTUNE is compared with two worker processes, too.

A mark * says that other programs took more than a quarter of a core in one of the runs: the cell is worth less.

The whole takes about half an hour on two cores. --quick takes a minute and a half: two short runs of two cells of each
class, or of those that --only names, with fewer settings. --held-out adds the cells that must not be used to develop
the controller; they have a table of their own. The published results are those of --held-out
--json docs/assets/benchmarks/autotune.json.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import multiprocessing
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil

sys.path.append(str(Path(__file__).parents[1]))

from autotune_cells import LONG, Cell, Setting, releases_lock, tuned_cells
from autotune_held_out import held_out_cells
from harness.machine import conditions

FIRST = 0.3
"""Seconds from the first `iter` that are reported apart."""
STEP = 5e-3
"""Seconds that a consumer which is not free takes for a batch."""
LOOK = 0.3
"""Seconds in which the first pass measures a setting, after its first batch."""
CLOSE = 0.9
"""Of the fastest rate of the first pass: settings from there on are measured again, at most as many as FINALISTS."""
FINALISTS = 3
PATIENCE = 4
"""How many times as long as the best fixed setting a side may take."""
HANGS = 120
"""Seconds after which a measurement is given up; those that work stop by themselves long before."""
QUIET = 0.25
"""Cores that other programs may take while a side is measured."""
ENDLESS = 1 << 30

CALLS = (None, 2, 4, 16, 64)
"""Up to the most calls that AUTOTUNE makes by default."""

QUICK_CALLS = (None, 2, 16)

RATIOS = ("first", "afterwards", "epoch 1", "epoch 3")
WIDTH = 84


# One measurement


@dataclass
class Result:
    """What was measured of one side.

    Attributes:
        first: elements per second in the first 0.3 s.
        afterwards: elements per second after it, or in all if nothing came after it.
        epochs: elements per second in each epoch.
        whole: elements per second in all epochs.
        cpu: seconds of processor time per element.
        others: cores that other programs kept busy meanwhile.
        log: what the tuner says of its decisions in the first epoch, if requested.
    """

    first: float
    afterwards: float
    epochs: list[float]
    whole: float
    cpu: float
    others: float
    log: list[str] = field(default_factory=list)


def measured(cell: Cell, setting: Setting, count: int, epochs: int, limit: float, with_log: bool = False) -> Result:
    """Iterate so many epochs of about ``count`` elements each, or until the limit in seconds."""
    step = consumer(cell)
    marks = [(0.0, 0)]
    ends: list[int] = []
    log: list[str] = []
    total, own = 0, 0.0
    busy, cpu, started = busy_seconds(), cpu_seconds(), time.perf_counter()
    dataset = None
    for _ in range(epochs):
        if dataset is None or cell.rebuilt:
            dataset = cell.build(count, setting)
        with iter(dataset) as iterator:
            for batch in iterator:
                total += length(batch)
                marks.append((time.perf_counter() - started, total))
                if marks[-1][0] > limit:
                    break
                own += step(batch)
            if with_log and not ends:
                log = [str(decision) for decision in iterator.tuning_log()]
        ends.append(len(marks) - 1)
        if marks[-1][0] > limit:
            break
    wall, cpu, busy = time.perf_counter() - started, cpu_seconds() - cpu, busy_seconds() - busy
    first = delivered(marks, FIRST)
    last, total = marks[-1]
    return Result(
        first / min(FIRST, last),
        (total - first) / (last - FIRST) if last > FIRST else total / last,
        [rate(marks[start], marks[end]) for start, end in zip([0, *ends[:-1]], ends, strict=True)],
        total / last,
        (cpu - own) / total,
        max(0, busy - cpu) / wall,
        log,
    )


def delivered(marks: list[tuple[float, int]], until: float) -> float:
    """The elements until then; those of the next batch are counted in proportion to its time."""
    before = marks[0]
    for mark in marks[1:]:
        if mark[0] > until:
            return before[1] + (mark[1] - before[1]) * (until - before[0]) / (mark[0] - before[0])
        before = mark
    return before[1]


def rate(start: tuple[float, int], end: tuple[float, int]) -> float:
    return (end[1] - start[1]) / (end[0] - start[0])


def steady_rate(cell: Cell, setting: Setting, seconds: float) -> float:
    """Elements per second after the first batch, which may have to wait for processes to start or for a shuffle."""
    step = consumer(cell)
    total = 0
    with iter(cell.build(ENDLESS, setting)) as iterator:
        batch = next(iterator)
        first = now = time.perf_counter()
        while not total or now - first < seconds:
            step(batch)
            batch = next(iterator)
            total += length(batch)
            now = time.perf_counter()
    return total / (now - first)


def consumer(cell: Cell) -> Callable[[Any], float]:
    """Return a function that uses a batch and returns the processor time that this took."""
    if cell.consumer == "free":
        return lambda _: 0.0
    work = releases_lock(STEP)

    def step(batch: Any) -> float:
        started = time.thread_time()
        if cell.consumer == "computing":
            work(batch)
        else:
            time.sleep(STEP)
        return time.thread_time() - started

    return step


def length(batch: Any) -> int:
    while isinstance(batch, dict | tuple):
        batch = next(iter(batch.values())) if isinstance(batch, dict) else batch[0]
    return len(batch)


def cpu_seconds() -> float:
    """The processor time of this process and of those below it."""
    times = time.process_time() + sum(os.times()[2:4])
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it has ended
            times += sum(process.cpu_times()[:4])
    return times


def busy_seconds() -> float:
    """How long the cores of this machine, taken together, were not idle."""
    times = psutil.cpu_times()
    return sum(times[:8]) - times.idle - getattr(times, "iowait", 0)


def apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what the function returns in a process that is forked for it."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=send_result, args=(theirs, function, arguments))
    process.start()
    theirs.close()
    if not ours.poll(HANGS):
        process.kill()
        process.join()
        raise RuntimeError(f"no result after {HANGS} s: the process was ended")
    try:
        found = ours.recv()
    except EOFError:
        process.join()
        raise RuntimeError(f"the process ended with status {process.exitcode} and without a result") from None
    process.join()
    if isinstance(found, Exception):
        raise found
    return found


def send_result(connection: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        connection.send(function(*arguments))
    except Exception as error:  # noqa: BLE001  # raised again in the parent
        connection.send(RuntimeError(f"{type(error).__name__}: {error}"))


# One cell


@dataclass
class Found:
    """What was found of a cell.

    Attributes:
        best: the best fixed setting.
        count: the elements of an epoch.
        looks: elements per second by setting, in the first pass.
        tuned: the runs of AUTOTUNE.
        fixed: those of the best fixed setting and, if these are processes, of the best one of threads, too: while
            processes start, it is the one to compare with.
    """

    cell: Cell
    best: Setting
    count: int
    looks: dict[Setting, float]
    tuned: list[Result]
    fixed: dict[Setting, list[Result]]

    def ratio(self, what: str) -> float:
        """The median over the runs of AUTOTUNE over the best fixed setting, run by run."""
        ratios = [
            value(tuned, what) / max(value(fixed, what) for fixed in others)
            for tuned, *others in zip(self.tuned, *self.compared_with(what), strict=True)
        ]
        return math.exp(statistics.median(map(math.log, ratios)))  # of two runs, the geometric mean

    def compared_with(self, what: str) -> Iterable[list[Result]]:
        return [self.fixed[self.best]] if what == "cpu" else self.fixed.values()

    @property
    def is_quiet(self) -> bool:
        return max(result.others for side in (self.tuned, *self.fixed.values()) for result in side) <= QUIET

    def to_dict(self) -> dict[str, Any]:
        cell = {name: getattr(self.cell, name) for name in ("kind", "position", "epoch", "rebuilt", "consumer")}
        return {
            **cell,
            "held_out": self.cell.held_out,
            "best": str(self.best),
            "count": self.count,
            "quiet": self.is_quiet,
            "ratios": {what: self.ratio(what) for what in (*RATIOS, "cpu")},
            "first_pass": {str(setting): rate for setting, rate in self.looks.items()},
            "tuned": [asdict(result) for result in self.tuned],
            "fixed": {str(setting): [asdict(result) for result in side] for setting, side in self.fixed.items()},
        }


def value(result: Result, what: str) -> float:
    if what.startswith("epoch"):
        return result.epochs[min(int(what[-1]), len(result.epochs)) - 1]
    return max(float(getattr(result, what)), 1e-9)


def examine(cell: Cell, runs: int, quick: bool, with_log: bool) -> Found:
    cell.source(1)  # makes its data here, once
    epochs = 3 if cell.epoch == LONG or quick else 5
    calls = QUICK_CALLS if quick else CALLS
    looks = {setting: apart(steady_rate, cell, setting, LOOK / (1 + quick)) for setting in cell.settings(calls)}

    def side(setting: Setting, rate: float, epochs: int = epochs) -> Result:
        limit = PATIENCE * cell.epoch * epochs
        result = apart(measured, cell, setting, elements(cell, rate), epochs, limit, with_log and setting == cell.tuned)
        assert isinstance(result, Result)
        return result

    again = finalists(looks, quick)
    if len(again) > 1:
        fastest = max(looks.values())
        whole = {setting: side(setting, fastest, 1 if cell.epoch == LONG else epochs).whole for setting in again}
    else:
        whole = looks
    best = max(again, key=whole.__getitem__)
    with_threads = max((setting for setting in again if setting.executor == "thread"), key=whole.__getitem__)
    tuned: list[Result] = []
    fixed: dict[Setting, list[Result]] = {best: [], with_threads: []}
    sides = {cell.tuned: tuned, **fixed}
    for run in range(runs):
        for setting in list(sides)[:: -1 if run % 2 else 1]:
            sides[setting].append(side(setting, whole[best]))
    return Found(cell, best, elements(cell, whole[best]), looks, tuned, fixed)


def finalists(looks: dict[Setting, float], quick: bool) -> list[Setting]:
    """The settings that are about as fast as the fastest, and the best one of threads if this is not among them.

    Processes are fast in the first pass, which does not count their start.
    """
    order = sorted(looks, key=looks.__getitem__, reverse=True)
    close = [setting for setting in order if looks[setting] >= CLOSE * looks[order[0]]][: 1 if quick else FINALISTS]
    with_threads = next(setting for setting in order if setting.executor == "thread")
    return close if with_threads in close else [*close, with_threads]


def elements(cell: Cell, rate: float) -> int:
    """The elements of an epoch at this rate."""
    return max(4 * cell.batch, int(rate * cell.epoch))


# Reports


def report(found: Found) -> None:
    ratios = "".join(f"{found.ratio(what):>11.2f}" for what in (*RATIOS, "cpu"))
    sides = found.tuned, found.fixed[found.best]
    cpu = [statistics.median(result.cpu for result in side) * 1e6 for side in sides]
    rates = [statistics.median(result.whole for result in side) for side in sides]
    print(f"{found.cell.name + ' *' * (not found.is_quiet):<{WIDTH}}{ratios}")
    print(
        f"    {rates[0]:,.0f} elements/s and {cpu[0]:,.1f} us of CPU each; "
        f"with {found.best}: {rates[1]:,.0f} and {cpu[1]:,.1f} us",
        flush=True,
    )


def summary(every: list[Found]) -> dict[str, dict[str, float]]:
    """Geometric means by class, and of all cells."""
    groups = {kind: [found for found in every if found.cell.kind == kind] for kind in kinds(every)}
    groups["all cells"] = every
    return {
        name: {"cells": len(group), **{what: mean(found.ratio(what) for found in group) for what in (*RATIOS, "cpu")}}
        for name, group in groups.items()
    }


def kinds(every: Iterable[Found]) -> list[str]:
    return list(dict.fromkeys(found.cell.kind for found in every))


def mean(ratios: Iterable[float]) -> float:
    return math.exp(statistics.fmean(math.log(max(ratio, 1e-3)) for ratio in ratios))


def report_summary(title: str, every: list[Found]) -> None:
    print(f"\n{title:<{WIDTH}}{header()}")
    for name, row in summary(every).items():
        ratios = "".join(f"{row[what]:>11.2f}" for what in (*RATIOS, "cpu"))
        print(f"{name + ' (' + str(int(row['cells'])) + ')':<{WIDTH}}{ratios}")
    for what in ("first", "afterwards"):
        print(f"worst, {what}:")
        for found in sorted(every, key=lambda found: found.ratio(what))[:5]:
            print(f"    {found.ratio(what):.2f} {found.cell.name}")


def header() -> str:
    return "".join(f"{what:>11}" for what in (*RATIOS, "CPU"))


def chosen(only: str, quick: bool, held_out: bool) -> list[Cell]:
    """The cells with this text in their name; if quick and without a text, two of each class, rebuilt and iterated."""
    matching = [cell for cell in [*tuned_cells(), *(held_out_cells() if held_out else [])] if only in cell.name]
    if not quick or only:
        return matching
    first: dict[tuple[str, bool, bool], Cell] = {}
    for cell in matching:
        if cell.epoch != LONG:
            first.setdefault((cell.kind, cell.rebuilt, cell.held_out), cell)
    return list(first.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="runs of AUTOTUNE and of the best fixed setting")
    parser.add_argument("--only", default="", help="only cells with this text in their name")
    parser.add_argument(
        "--quick", action="store_true", help="two short runs of two cells of each class, with fewer settings"
    )
    parser.add_argument("--held-out", action="store_true", help="measure the cells that are held out, too")
    parser.add_argument("--json", type=Path, help="write everything that was measured to this file")
    parser.add_argument("--log", action="store_true", help="print the tuner's decisions in the first epoch")
    arguments = parser.parse_args()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(f"{platform.python_implementation()} {platform.python_version()}, {cores} cores\n")
    print(f"{'AUTOTUNE over the best fixed setting':<{WIDTH}}{header()}")
    every: list[Found] = []
    runs = 2 if arguments.quick else arguments.runs
    for cell in chosen(arguments.only, arguments.quick, arguments.held_out):
        try:
            found = examine(cell, runs, arguments.quick, arguments.log)
        except RuntimeError as error:  # the other cells are worth having
            print(f"{cell.name}\n    {error}", flush=True)
            continue
        every.append(found)
        report(found)
        if arguments.log:
            print("\n".join(f"    {line}" for decision in found.tuned[0].log for line in decision.splitlines()))
    parts = {"tuned on": [], "held out": []}
    for found in every:
        parts["held out" if found.cell.held_out else "tuned on"].append(found)
    for title, part in parts.items():
        if part:
            report_summary(f"Geometric means of the cells that were {title}", part)
    if arguments.json:
        about = {
            **conditions(),
            "runs": runs,
            "quick": arguments.quick,
            "summary": {title: summary(part) for title, part in parts.items() if part},
        }
        arguments.json.write_text(as_json(about, every))


def as_json(about: dict[str, Any], every: list[Found]) -> str:
    """With a line for each cell, and numbers of four digits."""

    def short(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: short(one) for name, one in value.items()}
        if isinstance(value, list):
            return [short(one) for one in value]
        return float(f"{value:.4g}") if isinstance(value, float) else value

    rows = ",\n".join(f"  {json.dumps(found.cell.name)}: {json.dumps(short(found.to_dict()))}" for found in every)
    return f'{json.dumps(short(about), indent=1)[:-2]},\n "cells": {{\n{rows}\n }}\n}}\n'


if __name__ == "__main__":
    main()
