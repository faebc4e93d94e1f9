"""Driver of the fuzzer: runs the workers one after the other and reports their findings."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from .worker import PROGRESS, WALL_SECONDS

ROOT = Path(__file__).parents[2]
_START_SECONDS = 120  # for imports, on a busy machine
_LONG = 600  # seconds, where the number of inputs is the limit
_TAIL = 3000
_VARIABLES = {"PYTHONPATH": str(ROOT / "src"), "PYTHONHASHSEED": "0"}
_VARIABLES |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


@dataclass
class Findings:
    """The result for one target."""

    target: str
    tried: int = 0
    taken: int = 0
    seconds: float = 0
    faults: list[str] = field(default_factory=list)


def fuzz(
    target: str, seed: int, seconds: float = _LONG, faults_max: int = 5, *, start: int = 0, count: int = sys.maxsize
) -> Findings:
    """Try ``count`` inputs of a target, or as many as the time allows. A worker process that dies is replaced."""
    found, stop = Findings(target), start + count
    with tempfile.TemporaryDirectory() as folder:
        shared = Path(folder, "progress")
        shared.write_bytes(PROGRESS.pack(0, 0, 0))
        while start < stop and found.seconds < seconds and len(found.faults) < faults_max:
            limits = {"seconds": seconds - found.seconds, "faults": faults_max - len(found.faults), "stop": stop}
            start = _run_worker(found, seed, start, shared, limits)
    return found


def _run_worker(found: Findings, seed: int, start: int, shared: Path, limits: dict[str, float]) -> int:
    """Run one worker to its end; return the number of the next input."""
    package = __package__ if __package__.startswith("tests.") else f"tests.{__package__}"
    arguments = {"target": found.target, "seed": seed, "start": start, "progress": str(shared), **limits}
    command = [sys.executable, "-m", f"{package}.worker", json.dumps(arguments)]
    variables = {**os.environ, **_VARIABLES}
    begun = time.monotonic()
    process = subprocess.Popen(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        output, errors = process.communicate(timeout=limits["seconds"] + _START_SECONDS + WALL_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        output, errors = process.communicate()
    finally:
        process.kill()
        process.wait()
    number, found.tried, found.taken = PROGRESS.unpack(shared.read_bytes())
    is_ready = False
    for line in output.splitlines():
        said = json.loads(line)
        is_ready = is_ready or "ready" in said
        if "words" in said:
            words = f"{said['words'][-_TAIL:]}\ninput: {said['input']}"
            found.faults.append(_fault(found.target, seed, said["number"], words))
    if not is_ready:
        found.faults.append(f"the worker of {found.target} did not start:\n{errors.decode(errors='replace')[-_TAIL:]}")
        found.seconds = math.inf
        return start
    found.seconds += time.monotonic() - begun
    if process.returncode:
        found.tried += 1
        words = f"the process died: {_exit(process.returncode)}\n{errors.decode(errors='replace')[-_TAIL:]}"
        found.faults.append(_fault(found.target, seed, number, words))
        number += 1
        shared.write_bytes(PROGRESS.pack(number, found.tried, found.taken))
    return int(number)


def _exit(code: int) -> str:
    if -code in {signal.SIGPROF, signal.SIGALRM}:
        return "one input took too long"
    with contextlib.suppress(ValueError):
        return signal.Signals(-code).name
    return f"exit status {code}"


def _fault(target: str, seed: int, number: int, words: str) -> str:
    again = f"python -m tests.fuzz --target {target} --seed {seed} --only {number}"
    return f"{again}\n{words}"
