"""Measures this library and its peers on the same work, side by side. How is in docs/benchmarks.md.

python benchmarks/run.py [--runs 3] [--only TEXT] [--libraries dataset,tf.data] [--cap 2] [--json FILE]
python benchmarks/run.py --check    whether all give the same elements, on little data, and nothing else
python benchmarks/run.py --list     what there is
python benchmarks/run.py --print    the results that are there
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from harness import data, fresh, machine, results, tables, tree
from harness.results import Result
from harness.workload import Workload

HERE = Path(__file__).parent
BUILD = HERE.parent / "build" / "benchmarks"


def say(*words: object) -> None:
    """What goes on, beside the tables."""
    print(*words, file=sys.stderr, flush=True)


@dataclass
class Bench:
    """Measures workloads.

    Args:
        tree: the processes below this one.
        folder: where data is kept.
        path: where the workloads can be imported from.
        runs: how many runs of each library.
        cap_s: how long a pass may take after its first batch before it is cut short.
        timeout_s: how long a process may take before it is killed.
        libraries: names to choose from, before the comma. None for all.
        verbose: whether to show what a process that failed has printed.
    """

    tree: tree.Tree
    folder: Path
    path: list[Path]
    runs: int = 3
    cap_s: float = 2.0
    timeout_s: float = 300.0
    libraries: frozenset[str] | None = None
    verbose: bool = False

    def job(self, module: ModuleType, what: str, **details: Any) -> fresh.Outcome:
        job = {"module": module.__name__, "what": what, "cap_s": max(self.cap_s, module.WORKLOAD.cap_s), **details}
        outcome = fresh.run(job, self.tree, timeout_s=self.timeout_s, path=self.path)
        if outcome.error and self.verbose:
            say("\n".join(f"    {line}" for line in outcome.log.splitlines()[-40:]))
        return outcome

    def chosen(self, workload: Workload) -> list[str]:
        wanted = self.libraries
        return [library for library in workload.runners if wanted is None or results.base(library) in wanted]

    def data(self, module: ModuleType, scale: float) -> tuple[Path, Result]:
        """The folder with data of a scale, and what is known of it. Of full data, that is how many elements it has."""
        workload: Workload = module.WORKLOAD
        name = "full" if scale == 1.0 else "small"
        folder = self.folder / module.__name__.rpartition(".")[2] / name

        def make(into: Path) -> Result:
            say(f"  making the {name} data")
            if error := self.job(module, "data", folder=str(into), scale=scale).error:
                raise DataError(f"no data: {error}")
            if name == "small":
                return {}
            counted = self.job(module, "count", folder=str(into), library=workload.reference)
            if counted.result is None:
                raise DataError(f"the reference could not count the data: {counted.error}")
            return {"elements": counted.result["elements"]}

        about = data.kept(folder, f"{scale} {data.fingerprint(module)}", make)
        say(f"  {name} data: {tables.in_bytes(about['bytes'])}")
        return folder, about

    def check(self, module: ModuleType) -> dict[str, str]:
        """Of each library: ``"ok"``, or what is wrong with the elements that it gives."""
        workload: Workload = module.WORKLOAD
        folder, _ = self.data(module, workload.small)
        first = self.job(module, "check", folder=str(folder), library=workload.reference)
        if first.result is None:
            raise DataError(f"the reference, {workload.reference}: {first.error}")
        reference = first.result["epochs"]
        found = {}
        for library in self.chosen(workload):
            outcome = (
                first
                if library == workload.reference
                else self.job(module, "check", folder=str(folder), library=library)
            )
            if outcome.result is None:
                found[library] = outcome.error
            else:
                found[library] = results.compared(outcome.result["epochs"], reference, workload.tolerance) or "ok"
            say(f"  {library}: {found[library]}{_left(outcome)}")
        say(f"  of {reference[0][0]:,} {workload.unit}")
        return found

    def measure(self, module: ModuleType) -> Result:
        """Check a workload, then run it with all libraries in turn."""
        workload: Workload = module.WORKLOAD
        result: Result = {
            "title": workload.title,
            "unit": workload.unit,
            "notes": workload.notes,
            "about": (module.__doc__ or "").strip(),
            "date": machine.now(),
            "load": round(os.getloadavg()[0], 2),
            "libraries": {},
            "limits": {},
        }
        try:
            outcomes = self.check(module)
            folder, about = self.data(module, 1.0)
        except DataError as error:
            say(f"  {error}")
            return {**result, "error": str(error)}
        data.warm(folder)
        result |= {"elements": about["elements"], "data_bytes": about["bytes"]}
        for library, outcome in outcomes.items():
            how = {"settings": workload.runners[library].settings, "source": workload.runners[library].source}
            result["libraries"][library] = {"outcome": outcome, **how, "runs": []}
        result["limits"] = {limit.step: {"outcome": "ok", "runs": []} for limit in workload.limits}
        self._runs(module, folder, result)
        for entries, summed in ((result["libraries"], results.of_runs), (result["limits"], results.of_limit)):
            for entry in entries.values():
                if entry["outcome"] == "ok":
                    entry.update(summed(entry["runs"]))
        return result

    def _runs(self, module: ModuleType, folder: Path, result: Result) -> None:
        """Run all libraries that are sound, and the limits, in turn."""
        for number in range(self.runs):
            say(f"  run {number + 1} of {self.runs}")
            for library in _turned(list(result["libraries"]), number):
                entry = result["libraries"][library]
                if entry["outcome"] == "ok":
                    entry["outcome"] = self._run(module, folder, library, result["elements"], entry["runs"])
            for step, entry in result["limits"].items():
                if entry["outcome"] == "ok":
                    outcome = self.job(module, "limit", folder=str(folder), step=step)
                    entry["outcome"] = outcome.error or "ok"
                    entry["runs"].append(outcome.result)

    def _run(self, module: ModuleType, folder: Path, library: str, expected: int, runs: list[Result]) -> str:
        """Add a run. Returns ``"ok"``, or why it does not count."""
        outcome = self.job(module, "measure", folder=str(folder), library=library)
        if outcome.result is None:
            say(f"    {library}: {outcome.error}")
            return outcome.error
        whole = outcome.result
        run = {
            "construction_s": whole["construction_s"],
            "first_batch_s": whole["first"]["first_batch_s"],
            "second_first_batch_s": whole["timed"]["first_batch_s"],
            **{name: whole["timed"][name] for name in ("passes", "elements", "seconds", "complete")},
            "cpu_s": tree.cpu_s(outcome.between("started", "ended")),
            "peak_bytes": max(look.peak_bytes for look in outcome.between("made", "ended")),
            "made_bytes": outcome.marks["made"].peak_bytes,
            "killed": outcome.killed,
        }
        runs.append(run)
        wrong = results.wrong_run(run, expected)
        if not wrong and whole["first"]["complete"]:
            wrong = results.wrong_run({**whole["first"], "passes": 1}, expected)
        speed = tables.three(run["elements"] / run["seconds"])
        say(f"    {library}: {wrong or f'{speed}/s'}{_left(outcome)}")
        return wrong or "ok"


class DataError(Exception):
    """A workload without data, or without a result to compare with."""


def _turned(libraries: list[str], number: int) -> list[str]:
    """Another one begins each time, so that none always runs after the same one."""
    start = number % max(1, len(libraries))
    return libraries[start:] + libraries[:start]


def _left(outcome: fresh.Outcome) -> str:
    return f" ({outcome.killed} processes had to be killed)" if outcome.killed else ""


def modules(folder: Path, only: str) -> Iterator[ModuleType]:
    """The workloads of a folder, which is a package."""
    for found in pkgutil.iter_modules([str(folder)]):
        if only in found.name:
            module = importlib.import_module(f"{folder.name}.{found.name}")
            if hasattr(module, "WORKLOAD"):
                yield module


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="runs of each library, each in a fresh process")
    parser.add_argument("--only", default="", help="only workloads with this text in their file's name")
    parser.add_argument("--libraries", help="only some, with commas between; one name stands for all its variants")
    parser.add_argument(
        "--cap", type=float, default=2.0, help="seconds after its first batch at which a pass is cut short"
    )
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds after which a process is killed")
    parser.add_argument("--json", type=Path, help="where results go (default: build/benchmarks/results.json)")
    parser.add_argument("--update", action="store_true", help="keep the results that are there of other workloads")
    parser.add_argument("--check", action="store_true", help="only check that all give the same")
    parser.add_argument("--list", action="store_true", help="only print the workloads and their libraries")
    parser.add_argument("--print", action="store_true", help="only print the results that are there")
    parser.add_argument("--verbose", action="store_true", help="show what a process that failed has printed")
    parser.add_argument("--workloads", type=Path, default=HERE / "workloads", help="the folder of the workloads")
    parser.add_argument("--data", type=Path, default=BUILD / "data", help="the folder that data is kept in")
    return parser.parse_args()


def main() -> int:
    arguments = parsed()
    # So that whoever ends this also ends what it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
    folder = arguments.workloads.absolute()
    sys.path.insert(0, str(folder.parent))
    chosen = list(modules(folder, arguments.only))
    bench = Bench(
        tree.Tree(),
        arguments.data.absolute(),
        [folder.parent],
        arguments.runs,
        arguments.cap,
        arguments.timeout,
        frozenset(arguments.libraries.split(",")) if arguments.libraries else None,
        arguments.verbose or arguments.check,
    )
    if arguments.list:
        for module in chosen:
            print(f"{module.__name__.rpartition('.')[2]}: {module.WORKLOAD.title}")
            print(f"    {'; '.join(bench.chosen(module.WORKLOAD))}")
        return 0
    if arguments.check:
        sound = [checks(bench, module) for module in chosen]
        return 0 if all(sound) else 1
    path = arguments.json or BUILD / "results.json"
    if arguments.print:
        whole = json.loads(path.read_text())
        print(tables.report(whole, whole["workloads"]))
        return 0
    whole = whole_of(arguments, path)
    for module in chosen:
        say(module.WORKLOAD.title)
        name = module.__name__.rpartition(".")[2]
        whole["workloads"][name] = bench.measure(module)
        whole["workloads"] = dict(sorted(whole["workloads"].items()))
        write(path, whole)
    print(tables.report(whole, [module.__name__.rpartition(".")[2] for module in chosen]))
    return 0 if all(tables.ours_is_sound(workload) for workload in whole["workloads"].values()) else 1


def checks(bench: Bench, module: ModuleType) -> bool:
    """Whether all libraries that are there give the same."""
    say(module.__name__.rpartition(".")[2])
    try:
        outcomes = bench.check(module)
    except DataError as error:
        say(f"  {error}")
        return False
    return all(outcome.startswith(("ok", "absent")) for outcome in outcomes.values())


def whole_of(arguments: argparse.Namespace, path: Path) -> Result:
    """What results are added to."""
    kept = json.loads(path.read_text())["workloads"] if arguments.update and path.exists() else {}
    return {
        **machine.conditions(),
        "versions": machine.versions(),
        "runs": arguments.runs,
        "cap_s": arguments.cap,
        "workloads": kept,
    }


def write(path: Path, whole: Result) -> None:
    """All results so far, so that they are not lost with what comes later."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(whole, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
