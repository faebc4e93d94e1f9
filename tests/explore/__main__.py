"""Searches for failures with a fresh seed: parts in a random order, each for its share of the time.

    python -m tests.explore --seconds 600                          all parts, as many as the time allows
    python -m tests.explore --seconds 60 --only resume --seed 7    one part again

What is found is written to build/corpus in the format of tests/corpus, and printed with the command that repeats it.
The exit code is 1 if something was found. The outputs of the parts are in build/explore.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import corpus
from .corpus import ROOT
from .parts import PARTS, Part

sys.path[:0] = [str(ROOT / "tests")]
from support import recording  # noqa: E402
from support.seeds import fresh_seed  # noqa: E402

LOGS = ROOT / "build" / "explore"
FOUND = ROOT / "build" / "corpus"
FINDINGS_MAX = 20  # of a run; more have one cause
_LATE = 900  # seconds after which a run that should have ended hangs; a failing test of Hypothesis shrinks for 300
_FUZZ = re.compile(r"^python -m tests\.fuzz --target (.+) --seed (\d+) --only (\d+)$\n(.*)", re.MULTILINE)
_ABSENT = re.compile(r"ModuleNotFoundError: No module named '(?!dataset)([^']+)'")
_INPUTS = re.compile(r"([\d,]+) inputs\b")
_WRITTEN = re.compile(r"^written to (.+)$", re.MULTILINE)


@dataclass
class Result:
    """What came of a part: findings, or why it did not run.

    Attributes:
        part: the name.
        seconds: how long it ran.
        not_run: why it did not run, or an empty text.
        found: the commands that repeat what was found.
        says: a summary.
    """

    part: str
    seconds: float = 0
    not_run: str = ""
    found: list[str] = field(default_factory=list)
    says: str = ""

    def __str__(self) -> str:
        says = f"not run: {self.not_run}" if self.not_run else f"{len(self.found)} found; {self.says}"
        return f"{self.part:18} {self.seconds:6.0f} s  {says}"


def say(text: str) -> None:
    """Print a text at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class Search:
    """The runs of one part, one after another, each with a seed of its own.

    Args:
        part: what runs.
        seed: the seed of the search.
        seconds: the time for all runs.
    """

    def __init__(self, part: Part, seed: int, seconds: float) -> None:
        self.part = part
        self.result = Result(part.name)
        self._seed = seed
        self._seconds = seconds
        self._outcomes: Counter[str] = Counter()
        self._skipped: Counter[str] = Counter()

    def run(self) -> Result:
        """Run until the time is over."""
        result = self.result
        python = self.part.python()
        if python is None:
            result.not_run = "its environment cannot be set up"
            return result
        started = time.monotonic()
        number = 0
        while (left := started + self._seconds - time.monotonic()) > min(self.part.seconds_min, self._seconds) / 2:
            seed = self._seed if number == 0 else random.Random(f"{self._seed} {number}").randrange(10**9)
            if not self._run_once(python, seed, left, LOGS / f"{self.part.name}-{number}"):
                break
            number += 1
        result.seconds = time.monotonic() - started
        return result

    def _run_once(self, python: str, seed: int, seconds: float, log: Path) -> bool:
        """Run once. Return whether another run can find more."""
        arguments = self.part.arguments(seed, seconds)
        variables = {**self.part.environment, "SEED": f"{seed}"}
        record = log.with_suffix(".jsonl")
        environment = (
            os.environ
            | variables
            | {
                "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")]),
                "EXPLORE": "1",
                "RECORD": str(record),
                "RECORD_UNTIL": f"{time.time() + seconds}",
            }
        )
        say(f"{self.part.name}: {shown(python, arguments, variables)}")
        with log.with_suffix(".txt").open("w+", encoding="utf-8", errors="replace") as output:
            process = subprocess.Popen(
                [python, *arguments], cwd=ROOT, env=environment, stdout=output, stderr=output, start_new_session=True
            )
            try:
                code = process.wait(seconds + _LATE)
            except subprocess.TimeoutExpired:
                code = "it did not end"
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            output.seek(0)
            text = output.read()
        before = len(self.result.found)
        if self.part.is_pytest:
            self._take_outcomes(recording.read(record), python, variables)
        else:
            self._take_text(text)
        if code not in ({0, 1, 2, 5} if self.part.is_pytest else {0}) and before == len(self.result.found):
            self._add(python, arguments, variables, f"{code}\n{text}")
        return bool(self._outcomes["passed"]) if self.part.is_pytest else len(self.result.found) == before

    def _take_outcomes(self, outcomes: list[dict[str, str]], python: str, variables: dict[str, str]) -> None:
        """Note the outcomes of tests, and try those that failed alone."""
        for each in outcomes:
            if each["test"].endswith(".py") and (absent := _ABSENT.search(each["text"])):
                each |= {"outcome": "skipped", "text": f"{absent[1]} not installed"}
        self._outcomes.update(each["outcome"] for each in outcomes)
        self._skipped.update(
            each["text"].removeprefix("Skipped: ") for each in outcomes if each["outcome"] == "skipped"
        )
        counts = [f"{self._outcomes[word]} {word}" for word in ("passed", "failed", "skipped") if self._outcomes[word]]
        reasons = [f"{reason} ({count})" for reason, count in self._skipped.most_common(3)]
        self.result.says = ", ".join(counts or ["no tests"]) + (f": {'; '.join(reasons)}" if reasons else "")
        if not self._outcomes["passed"] and not self._outcomes["failed"]:
            self.result.not_run = self.result.says
        for each in [each for each in outcomes if each["outcome"] == "failed"][:FINDINGS_MAX]:
            options = ["-p", "no:randomly", "-m", "", f"--hypothesis-seed={variables['SEED']}"]
            self._add(python, ["-m", "pytest", *options, each["test"]], variables, each["text"])

    def _take_text(self, text: str) -> None:
        """Note what a program of its own has printed."""
        inputs = [int(count.replace(",", "")) for count in _INPUTS.findall(text)]
        last = next((line for line in reversed(text.splitlines()) if line.strip()), "")
        self.result.says = f"{sum(inputs):,} inputs" if inputs else last
        for path in _WRITTEN.findall(text):
            self._note(Path(path))
        for target, seed, number, failure in _FUZZ.findall(text):
            kind, content = corpus.fuzz_content(target, int(seed), int(number))
            self._note(corpus.write(FOUND, kind, content, failure))

    def _add(self, python: str, command: list[str], variables: dict[str, str], failure: str) -> None:
        """Write a command as a case, and say whether it fails again."""
        content: dict[str, Any] = {"command": command, "environment": variables}
        if python != sys.executable:
            content["python"] = python
        if not corpus.replay({"kind": "command", **content}):
            content["deterministic"] = False
        self._note(corpus.write(FOUND, "command", content, failure), shown(python, command, variables))

    def _note(self, path: Path, command: str = "") -> None:
        path = Path(os.path.relpath(path, ROOT))
        command = command or f"python -m tests.explore.corpus {path}"
        self.result.found.append(command)
        failure = "\n    ".join(corpus.read(ROOT / path)["failure"][-15:])
        say(f"\n{self.part.name} has found {path}; repeat it with\n    {command}\n    {failure}\n")


def shown(python: str, arguments: list[str], variables: dict[str, str]) -> str:
    """Return a command as one types it."""
    settings = [f"{name}={shlex.quote(value)}" for name, value in variables.items()]
    executable = "python" if python == sys.executable else python
    return " ".join([*settings, executable, *map(shlex.quote, arguments)])


def explore(parts: list[Part], seed: int, seconds: float, jobs: int) -> list[Result]:
    """Run parts, several at a time."""
    results = {part.name: Result(part.name, not_run=part.needs()) for part in parts}
    for result in results.values():
        if result.not_run:
            say(f"{result.part}: not run: {result.not_run}")
    able = [part for part in parts if not results[part.name].not_run]
    random.Random(seed).shuffle(able)
    shares = sum(part.share for part in able)
    end = time.monotonic() + seconds

    def run(part: Part) -> None:
        left = end - time.monotonic()
        if left < min(part.seconds_min, seconds) * 0.9:
            results[part.name].not_run = "no time was left for it in this call"
            return
        given = min(left, seconds, max(part.seconds_min, seconds * jobs * part.share / shares))
        results[part.name] = Search(part, seed, given).run()
        say(f"{results[part.name]}")

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(run, able))
    return [results[part.name] for part in parts]


def main() -> int:
    """Search. Return 1 if something was found."""
    names = [part.name for part in PARTS]
    parser = argparse.ArgumentParser(
        prog="python -m tests.explore", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=600, help="for all parts together (default: 600)")
    parser.add_argument("--seed", type=int, default=fresh_seed(), help="default: a fresh one")
    parser.add_argument("--only", action="append", choices=names, metavar="PART", help=f"default: all of {names}")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="parts at a time (default: one per core)")
    given = parser.parse_args()
    parts = [part for part in PARTS if given.only is None or part.name in given.only]
    LOGS.mkdir(parents=True, exist_ok=True)
    for path in LOGS.iterdir():
        path.unlink()
    say(f"seed {given.seed}")
    results = explore(parts, given.seed, given.seconds, min(given.jobs, len(parts)))
    say(f"\nseed {given.seed}, {given.seconds:.0f} s\n" + "\n".join(map(str, results)))
    return int(any(result.found for result in results))


if __name__ == "__main__":
    sys.exit(main())
