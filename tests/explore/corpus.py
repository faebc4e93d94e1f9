"""The corpus: a JSON file in tests/corpus for each failure that was found, which tests/test_corpus.py replays.

    python -m tests.explore.corpus FILE       replay a case; the exit code is 1 if it fails

Entries of each file:

kind: "resume", "fuzz", "program" or "command".
status: "fixed", or "known" for a case that still fails.
date: when it was found.
reason: what was wrong; of a known case, why it still fails.
failure: how it failed.
deterministic: false for a case that does not fail each time, which only ``make explore`` replays. Default: true.

A case of kind "resume" has a pipeline as text, and where it is interrupted (support/resume_search.py); "fuzz" a target
of tests/fuzz and its input; "program" the lines of a Python program, and the module whose names they use; "command" the
arguments of Python, environment variables, and another interpreter, if any. The first three depend on no generator, so
they stay what they are if the generators change.
"""

from __future__ import annotations

import ast
import datetime as dt
import hashlib
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "tests" / "corpus"
_TAIL = 4000

sys.path[:0] = [str(ROOT / "tests")]  # for the program; pytest does the same


def write(folder: Path, kind: str, content: dict[str, Any], failure: str) -> Path:
    """Write a case that still fails. A person gives it a reason and a name, and moves it to tests/corpus."""
    case = {"kind": kind, "status": "known", "date": f"{dt.datetime.now(dt.UTC):%Y-%m-%d}", "reason": ""}
    case |= {**content, "failure": failure[-_TAIL:].splitlines()}
    key = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{kind}-{key}.json"
    path.write_text(json.dumps(case, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def read(path: Path) -> dict[str, Any]:
    """Return the case in a file."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def replay(case: dict[str, Any]) -> str:
    """Return how a case fails, or an empty text. Raises an exception if the case can no longer be replayed."""
    return REPLAYS[case["kind"]](case)


def _replay_resume(case: dict[str, Any]) -> str:
    from chains.names import build
    from support.resume_search import Case, Run, Unsuitable, Worker, prepared

    found = Case.from_json(case)
    with prepared() as files:
        build(case["chain"], files, files)  # an exception here is no finding: the case has to be rewritten
        other = Worker(files) if any(stop.in_process for stop in found.stops) else None
        try:
            Run(found, files, other).check()
        except Unsuitable:
            raise
        except Exception:
            return traceback.format_exc()
        finally:
            if other is not None:
                other.close()
    return ""


def _replay_fuzz(case: dict[str, Any]) -> str:
    from fuzz.planted import PLANTED
    from fuzz.targets import TARGETS
    from fuzz.worker import scratch, try_one

    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=scratch()) as folder:
        return try_one((TARGETS | PLANTED)[case["target"]](Path(folder)), ast.literal_eval("".join(case["input"])))[1]


def _replay_program(case: dict[str, Any]) -> str:
    names = dict(vars(importlib.import_module(case["names"])))
    try:
        exec("\n".join(case["lines"]), names)
    except Exception:
        return traceback.format_exc()
    return ""


def _replay_command(case: dict[str, Any]) -> str:
    command = [case.get("python", sys.executable), *case["command"]]
    environment = {**os.environ, "EXPLORE": "1", **case.get("environment", {})}
    found = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return f"{found.stdout}{found.stderr}\nexit status {found.returncode}"[-_TAIL:] if found.returncode else ""


REPLAYS = {
    "resume": _replay_resume,
    "fuzz": _replay_fuzz,
    "program": _replay_program,
    "command": _replay_command,
}


def fuzz_content(target: str, seed: int, number: int) -> tuple[str, dict[str, Any]]:
    """Return the kind and the content of a case for an input of the fuzzer."""
    from fuzz.targets import TARGETS
    from fuzz.worker import input_of

    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        text = repr(input_of(TARGETS[target](Path(folder)), seed, number))
    try:
        ast.literal_eval(text)
    except ValueError:  # it contains arrays
        return "command", {
            "command": ["-m", "tests.fuzz", "--target", target, "--seed", f"{seed}", "--only", f"{number}"]
        }
    return "fuzz", {"target": target, "input": re.findall(r"(?s).{1,100}", text)}


def main() -> int:
    """Replay the case in a file. Return 1 if it fails."""
    failure = replay(read(Path(sys.argv[1])))
    sys.stdout.write(failure or "passes\n")
    return int(bool(failure))


if __name__ == "__main__":
    sys.exit(main())
