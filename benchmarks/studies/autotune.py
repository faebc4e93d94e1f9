"""Measures AUTOTUNE against the best fixed setting of a grid, and prints what was got beside what was wanted.

    python benchmarks/studies/autotune.py [--runs 3] [--only TEXT] [--json FILE]

The best of many noisy numbers is too good. So the grid is measured once to find the best setting, and this one is
measured again beside AUTOTUNE; only the second number is quoted. The two take turns, run by run, together with
AUTOTUNE where ``options.autotune.enabled`` is False; what is printed is the median over the runs of the ratio, with the
least and the greatest. Where a grid ends before the best that could be had, a setting beyond it stands below, with
nothing wanted.

Each run has a process of its own, forked from one that has only imported the library. The tuner then knows nothing
from the run before, no thread or buffer is left from it, and the processor time of a process is that of one pipeline.
What makes a function take so many milliseconds is found once, so that the work is the same in all of them. What is
counted begins behind a warm-up, which is the same for all: 200 batches or 3 s, whichever is over first.

Other processes that take a core for one side and not for the other spoil a ratio. Where they took much of one in a
round, further rounds are run, at most as many again, and those with the quietest machine count. It takes 8 minutes on
a machine with nothing else to do.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import multiprocessing
import os
import platform
import resource
import statistics
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from parallel import (
    WIDTH,
    decode,
    measure,
    photo,
    records,
    report,
    seconds,
    spin,
    steps_for,
    ten_ms,
    use_one_thread_for_each_call,
    work,
)

from dataset import AUTOTUNE, Dataset, Options

Knobs = dict[str, int | None]

CALLS = (None, 1, 2, 3, 4, 8)
BUFFERS = (0, 2, 8)
FINALISTS = 3
ENDLESS = 1 << 40
LAST = 5
"""Lines of the tuning log that are shown."""
QUIET = 0.15
"""Cores that other processes may take in a run."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="runs of AUTOTUNE, and of what it is compared with")
    parser.add_argument("--only", default="", help="only cases with this text in their name")
    parser.add_argument("--json", type=Path, help="write everything that was measured to this file")
    arguments = parser.parse_args()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(f"{platform.python_implementation()} {platform.python_version()}, {cores} cores\n")
    print(f"{'':<{WIDTH}}{'got':>12}{'wanted':>12}")
    machine = Machine.measured()
    found: dict[str, Any] = {}
    for name in (*WORKLOADS, MEMORY):
        if arguments.only in name:
            measure(name, functools.partial(examine, name, machine, found.setdefault(name, {})), arguments.runs)
    if arguments.json:
        arguments.json.write_text(json.dumps({"cores": cores, "machine": vars(machine), "cases": found}, indent=1))


def examine(name: str, machine: Machine, found: dict[str, Any], runs: int) -> None:
    if name == MEMORY:
        report_memory(found)
        return
    results = report_speed(name, machine, found, runs)
    if WORKLOADS[name].consumer:
        report_background(results)
    for line in results["tuned"][-1].settled:
        print(f"    {line}")


# What the machine is given to do


@dataclass(frozen=True)
class Machine:
    """How much work fits into a second here."""

    steps: int
    sines: int

    @classmethod
    def measured(cls) -> Machine:
        best = min(seconds(lambda: sines(BLOCK, 0)) for _ in range(50))
        return cls(steps=steps_for(1), sines=int(BLOCK / best))

    def holds_the_lock(self, duration: float) -> Callable[[Any], Any]:
        """A function in pure Python that takes so many seconds."""
        return functools.partial(spin, int(self.steps * duration))

    def computes(self, duration: float) -> Callable[[Any], Any]:
        """A function in NumPy that takes so many seconds, and lets other threads run meanwhile."""
        return functools.partial(sines, int(self.sines * duration))


BLOCK = 1 << 16
_NUMBERS = np.linspace(0, 100, BLOCK)


def sines(count: int, x: Any) -> Any:
    for start in range(0, count, BLOCK):
        np.sin(_NUMBERS[: count - start])
    return x


def waits(duration: float) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        time.sleep(duration)
        return x

    return function


@dataclass(frozen=True)
class Workload:
    """A pipeline that never ends, and the settings to choose from.

    Attributes:
        make: takes the machine, and each knob by its name.
        grid: the values of each knob; None is one at a time, in the thread that iterates.
        consumer: seconds that the consumer computes per batch.
        beyond: a setting outside of the grid, with more threads than most would think of, to compare with.
    """

    make: Callable[..., Dataset[Any]]
    grid: dict[str, tuple[int | None, ...]]
    consumer: float = 0
    beyond: Knobs | None = None

    def settings(self) -> list[Knobs]:
        return [dict(zip(self.grid, values, strict=True)) for values in itertools.product(*self.grid.values())]

    def all(self, value: int | None) -> Knobs:
        """Each knob set to this."""
        return dict.fromkeys(self.grid, value)


def slow_files(_: Machine, reads: int, calls: int) -> Dataset[Any]:
    def read(number: Any) -> Dataset[Any]:
        return Dataset.from_generator(lambda: records(number), output_signature=Dataset.range(1).element_spec)

    files = Dataset.range(ENDLESS).interleave(read, cycle_length=16, num_parallel_calls=reads)
    return files.map(work, num_parallel_calls=calls).batch(32)


def slow_map(_: Machine, calls: int) -> Dataset[Any]:
    return Dataset.range(ENDLESS).map(ten_ms, num_parallel_calls=calls).batch(32)


def photos(_: Machine, calls: int, prefetch: int) -> Dataset[Any]:
    use_one_thread_for_each_call()
    contents = Dataset.from_tensor_slices([photo(seed) for seed in range(8)]).repeat()
    return contents.map(decode, num_parallel_calls=calls).batch(32).prefetch(prefetch)


def one_map(function: Callable[[Any], Any], batch: int, calls: int, prefetch: int) -> Dataset[Any]:
    return Dataset.range(ENDLESS).map(function, num_parallel_calls=calls).batch(batch).prefetch(prefetch)


def three_maps(functions: list[Callable[[Any], Any]], batch: int, first: int, second: int, third: int) -> Dataset[Any]:
    dataset: Dataset[Any] = Dataset.range(ENDLESS)
    for function, calls in zip(functions, (first, second, third), strict=True):
        dataset = dataset.map(function, num_parallel_calls=calls)
    return dataset.batch(batch)


COSTS = (50e-6, 500e-6, 5e-3)

WORKLOADS = {
    "slow files, interleave(cycle_length=16), map(1 ms of sleep), batch(32)": Workload(
        slow_files, {"reads": (1, 4, 16), "calls": (1, 4, 16, 32, 64)}, beyond={"reads": 16, "calls": 128}
    ),
    "map(10 ms of sleep), batch(32)": Workload(slow_map, {"calls": (1, 2, 4, 8, 16, 32, 64)}, beyond={"calls": 512}),
    "JPEG decode and resize of 400x300 photos, batch(32), prefetch": Workload(
        photos, {"calls": CALLS, "prefetch": BUFFERS}
    ),
    "map(1 ms of NumPy), batch(32), prefetch": Workload(
        lambda machine, **knobs: one_map(machine.computes(1e-3), 32, **knobs), {"calls": CALLS, "prefetch": BUFFERS}
    ),
    "map(50 us of pure Python), batch(128), prefetch": Workload(
        lambda machine, **knobs: one_map(machine.holds_the_lock(50e-6), 128, **knobs),
        {"calls": (None, 1, 2, 4, 8), "prefetch": (0, 2)},
    ),
    "map(50 us), map(500 us), map(5 ms) of NumPy, batch(8)": Workload(
        lambda machine, **knobs: three_maps([machine.computes(cost) for cost in COSTS], 8, **knobs),
        {"first": (None, 2), "second": (None, 1, 2), "third": (None, 2, 3, 4)},
    ),
    "map(50 us), map(500 us), map(5 ms) of sleep, batch(32)": Workload(
        lambda _, **knobs: three_maps([waits(cost) for cost in COSTS], 32, **knobs),
        {"first": (1, 2, 4), "second": (4, 8, 16, 32), "third": (16, 64)},
        beyond={"first": 4, "second": 32, "third": 128},
    ),
    "a consumer that computes 20 ms per batch of 5 ms": Workload(
        lambda machine, **knobs: one_map(machine.computes(5e-3 / 32), 32, **knobs),
        {"calls": (None, 1, 2, 4), "prefetch": (0, 1, 2, 8)},
        consumer=20e-3,
    ),
}


# One run


@dataclass(frozen=True)
class Timing:
    """How long to warm up, in batches and seconds, and how many seconds to measure."""

    batches: int
    warm_up: float
    window: float


FULL, FIRST_LOOK, SECOND_LOOK = Timing(200, 3.0, 2.0), Timing(50, 0.2, 0.4), Timing(100, 0.3, 0.8)


@dataclass(frozen=True)
class Run:
    """What to measure; ``enabled`` is that of the options, and ``consumer`` that of the workload."""

    name: str
    machine: Machine
    knobs: Knobs
    consumer: float = 0
    enabled: bool | None = None


@dataclass(frozen=True)
class Result:
    """What was measured.

    Attributes:
        rate: batches per second.
        cpu: seconds of processor time per batch, those of the consumer left out.
        others: cores that other processes kept busy meanwhile.
        settled: what the tuner says of itself.
    """

    rate: float
    cpu: float
    others: float
    settled: list[str]


def carry_out(runs: list[Run], timing: Timing) -> list[Result]:
    return [one_result(run, timing) for run in runs]


def one_result(run: Run, timing: Timing) -> Result:
    options = Options()
    options.autotune.enabled = run.enabled
    dataset = WORKLOADS[run.name].make(run.machine, **run.knobs).with_options(options)
    use = run.machine.computes(run.consumer)
    with iter(dataset) as iterator:
        take(iterator, use, timing.warm_up, timing.batches)
        started, busy, cpu = time.perf_counter(), busy_seconds(), time.process_time()
        count, own = take(iterator, use, timing.window)
        duration, busy, cpu = time.perf_counter() - started, busy_seconds() - busy, time.process_time() - cpu
        return Result(count / duration, (cpu - own) / count, max(0, busy - cpu) / duration, settled(iterator))


def take(
    batches: Iterator[Any], use: Callable[[Any], Any], duration: float, at_most: int = ENDLESS
) -> tuple[int, float]:
    """How many were taken, and the processor time of their use."""
    count, own, ends = 0, 0.0, time.perf_counter() + duration
    while not count or (count < at_most and time.perf_counter() < ends):
        batch = next(batches)
        before = time.thread_time()
        use(batch)
        own += time.thread_time() - before
        count += 1
    return count, own


def busy_seconds() -> float:
    """How long the cores of this machine, taken together, were not idle; 0 where nobody counts it."""
    try:
        user, nice, system, _, _, *interrupts = Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    except OSError:
        return 0
    return sum(map(int, (user, nice, system, *interrupts))) / os.sysconf("SC_CLK_TCK")


def settled(iterator: Any) -> list[str]:
    """What the tuner says it has done; nothing where it cannot say."""
    lines = [repr(iterator.stats())] if hasattr(iterator, "stats") else []
    log = list(iterator.tuning_log()) if hasattr(iterator, "tuning_log") else []
    return "\n".join([*lines, *map(str, log[-LAST:])]).splitlines()


def in_new_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """What the function returns there, or raises."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["dataset", "cv2"])
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(function, *arguments).result()


# The best setting of the grid


def best_run(name: str, machine: Machine, found: dict[str, Any]) -> Run:
    """That with the setting which was fastest when the fastest few of the grid were measured again."""
    workload = WORKLOADS[name]
    runs = [Run(name, machine, knobs, workload.consumer) for knobs in workload.settings()]
    rates = rates_of(runs, FIRST_LOOK)
    found["grid"] = [{**run.knobs, "rate": rate} for run, rate in zip(runs, rates, strict=True)]
    order = sorted(range(len(runs)), key=rates.__getitem__, reverse=True)
    finalists = [runs[index] for index in order[:FINALISTS]]
    once, again = (rates_of(finalists, SECOND_LOOK) for _ in range(2))
    sums = [sum(pair) for pair in zip(once, again, strict=True)]
    return finalists[sums.index(max(sums))]


def rates_of(runs: list[Run], timing: Timing) -> list[float]:
    """One after the other in one process: settings that are fixed learn nothing from the run before."""
    return [result.rate for result in in_new_process(carry_out, runs, timing)]


# AUTOTUNE beside it

Sides = dict[str, Run]
Results = dict[str, list[Result]]


def report_speed(name: str, machine: Machine, found: dict[str, Any], runs: int) -> Results:
    workload = WORKLOADS[name]
    sides = {"best": best_run(name, machine, found)}
    for side, knobs, enabled in [
        ("tuned", workload.all(AUTOTUNE), None),
        ("off", workload.all(AUTOTUNE), False),
        ("beyond", workload.beyond, None),
    ]:
        if knobs is not None:
            sides[side] = Run(name, machine, knobs, workload.consumer, enabled)
    if workload.consumer:
        sides["alone"] = Run(name, machine, {"calls": None, "prefetch": 0})
    results = compare(sides, runs)
    found.update({side: {"knobs": sides[side].knobs, "runs": [*map(vars, results[side])]} for side in sides})
    report_rates(sides, results, len(found["grid"]))
    return results


def compare(sides: Sides, runs: int) -> Results:
    """The rounds with the quietest machine: so many, out of at most twice as many."""
    rounds: list[list[Result]] = []
    while len(rounds) < 2 * runs and sum(disturbance(results) < QUIET for results in rounds) < runs:
        rounds.append([in_new_process(carry_out, [run], FULL)[0] for run in sides.values()])
    quietest = sorted(rounds, key=disturbance)[:runs]
    return {side: list(results) for side, results in zip(sides, zip(*quietest, strict=True), strict=True)}


def disturbance(results: list[Result]) -> float:
    return max(result.others for result in results)


def report_rates(sides: Sides, results: Results, settings: int) -> None:
    report_ratio("AUTOTUNE / the best setting", results["tuned"], results["best"], at_least=0.9)
    report_ratio("AUTOTUNE, with enabled=False / the best setting", results["off"], results["best"])
    report_rate(f"the best of {settings} settings: {shown(sides['best'].knobs)}", results["best"])
    if "beyond" in sides:
        report_rate(f"beyond the grid: {shown(sides['beyond'].knobs)}", results["beyond"])
    if (others := max(map(disturbance, results.values()))) >= QUIET:
        report("NOT QUIET: other processes took, in one of the runs", others, unit="cores")


def report_rate(what: str, results: list[Result]) -> None:
    report(what, statistics.median(result.rate for result in results), unit="1/s")


def report_ratio(
    what: str, results: list[Result], others: list[Result], attribute: str = "rate", **bounds: float
) -> None:
    pairs = zip(results, others, strict=True)
    ratios = [getattr(one, attribute) / getattr(other, attribute) for one, other in pairs]
    report(f"{what} ({min(ratios):.2f} to {max(ratios):.2f})", statistics.median(ratios), **bounds)


def shown(knobs: Knobs) -> str:
    return ", ".join(f"{knob}={value}" for knob, value in knobs.items())


# Work that nobody waits for


def report_background(results: Results) -> None:
    """The processor time beside the consumer's, over that of the pipeline alone, with no threads."""
    alone = results["alone"]
    what = "background CPU / the least needed"
    report_ratio(f"{what}, AUTOTUNE", results["tuned"], alone, "cpu", at_most=1.2)
    report_ratio(f"{what}, with enabled=False", results["off"], alone, "cpu")
    report_ratio(f"{what}, the best setting", results["best"], alone, "cpu")
    report("the least needed, per batch", statistics.median(result.cpu for result in alone) * 1e3, unit="ms")


# Memory

MEMORY = "ram_budget of 200 MB, elements of 10 MB, a consumer that sleeps"
BUDGET, ELEMENT = 200_000_000, 10_000_000


class Live:
    """The bytes of the elements that somebody holds, and the most that they were."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a finalizer may run in the midst of the count
        self.now = self.peak = 0

    def make(self, x: Any) -> Any:
        element = np.full(ELEMENT, x % 255, np.uint8)
        self._add(ELEMENT)
        weakref.finalize(element, self._add, -ELEMENT)
        return element

    def _add(self, nbytes: int) -> None:
        with self._lock:
            self.now += nbytes
            self.peak = max(self.peak, self.now)

    def start_over(self) -> None:
        with self._lock:
            self.peak = self.now


def sleepy_consumer(buffer_size: int, budget: int | None) -> dict[str, float]:
    """The most bytes held while the consumer sleeps with nothing in its hands, and what the process grew by."""
    live, before, peak = Live(), resident_bytes(), 0
    dataset = Dataset.range(ENDLESS).map(live.make, num_parallel_calls=AUTOTUNE).prefetch(buffer_size)
    with iter(dataset.with_options(with_ram_budget(budget))) as iterator:
        for _ in range(15):
            next(iterator)
            live.start_over()
            time.sleep(0.2)
            peak = max(peak, live.peak)
    return {"held": peak, "grown": resident_bytes() - before}


def with_ram_budget(budget: int | None) -> Options:
    options = Options()
    if budget is not None:
        options.autotune.ram_budget = budget
    return options


def resident_bytes() -> int:
    """The most of the process that ever was in memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def report_memory(found: dict[str, Any]) -> None:
    budget = BUDGET if has_ram_budget() else None
    if budget is None:
        print("  options.autotune.ram_budget is not accepted; without it:")
    for buffer_size in (AUTOTUNE, 100):
        name = f"prefetch({'AUTOTUNE' if buffer_size == AUTOTUNE else buffer_size})"
        result = found[name] = in_new_process(sleepy_consumer, buffer_size, budget)
        report(f"held by map(AUTOTUNE).{name}", result["held"] / 1e6, at_most=BUDGET / 1e6, unit="MB")
        report("the process grew by, with the element in the consumer's hands", result["grown"] / 1e6, unit="MB")


def has_ram_budget() -> bool:
    try:
        with_ram_budget(BUDGET)
    except (AttributeError, ValueError):
        return False
    return True


if __name__ == "__main__":
    main()
