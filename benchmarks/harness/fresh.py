"""Runs a job in a fresh process, from outside: the time-out, the looks at its processes, and the end of all of them."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.tree import Look, Tree

HERE = Path(__file__).parents[1]
LOOK_S = 0.25
LOOKS_SHARE = 0.02
"""Looking takes longer where a machine has many processes. It may take this share of one core."""


@dataclass
class Outcome:
    """What came of a job: its result, or why there is none."""

    result: dict[str, Any] | None = None
    error: str = ""
    log: str = ""
    marks: dict[str, Look] = field(default_factory=dict)
    looks: list[Look] = field(default_factory=list)
    killed: int = 0

    def between(self, first: str, last: str) -> list[Look]:
        """The looks from one mark to another."""
        start, end = self.marks[first], self.marks[last]
        return [start, *(look for look in self.looks if start.time_s < look.time_s < end.time_s), end]


def environment(path: Sequence[Path], scratch: Path) -> dict[str, str]:
    """Of the process: no network, no accelerator, no messages, and temporary files where they are removed."""
    inherited = [str(Path(entry).absolute()) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*map(str, path), str(HERE), *inherited]),
        "PYTHONHASHSEED": "0",
        "PYTHONWARNINGS": "ignore",
        "CUDA_VISIBLE_DEVICES": "",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(scratch / "hf"),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        "TMPDIR": str(scratch),
        "RAY_TMPDIR": str(scratch),
    }


def run(job: dict[str, Any], tree: Tree, *, timeout_s: float, path: Sequence[Path] = ()) -> Outcome:
    """Do a job in a fresh process. When this returns, no process of it is left."""
    # Short, because the sockets that some libraries put there may have long names.
    scratch = Path(tempfile.mkdtemp(prefix="bench-"))
    mine, its = socket.socketpair()
    try:
        with (scratch / "log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "harness.child", str(its.fileno()), json.dumps(job)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=scratch,
                env=environment(path, scratch),
                pass_fds=[its.fileno()],
                start_new_session=True,
            )
        its.close()
        outcome = _listen(process, mine, tree, timeout_s)
        try:
            process.wait(10 if outcome.result is not None else 0)
        except subprocess.TimeoutExpired:
            process.kill()
        process.wait()
        outcome.log = (scratch / "log").read_text(errors="replace")
        if outcome.result is None and not outcome.error:
            outcome.error = f"failed: {_ending(process.returncode)}{_last_line(outcome.log)}"
        elif outcome.error.startswith("timed out"):
            outcome.error += _last_line(outcome.log)
        return outcome
    finally:
        mine.close()
        killed = tree.end()
        if "outcome" in locals():
            outcome.killed = killed
        shutil.rmtree(scratch, ignore_errors=True)


def _listen(process: subprocess.Popen[bytes], mine: socket.socket, tree: Tree, timeout_s: float) -> Outcome:
    """Take down what the process tells, until it has a result, has ended, or takes too long."""
    outcome = Outcome()
    deadline = time.monotonic() + timeout_s
    heard, wait_s = b"", LOOK_S
    while time.monotonic() < deadline:
        ended = process.poll() is not None
        if not select.select([mine], [], [], 0 if ended else wait_s)[0]:
            if ended:
                return outcome
            look = tree.look()
            outcome.looks.append(look)
            wait_s = max(LOOK_S, (time.monotonic() - look.time_s) / LOOKS_SHARE)
            continue
        some = mine.recv(1 << 16)
        if not some:  # it has closed its end, and so is about to end
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
                return outcome
            break
        heard += some
        while b"\n" in heard:
            line, heard = heard.split(b"\n", 1)
            message = json.loads(line)
            if "mark" in message:
                outcome.marks[message["mark"]] = tree.look().with_own(process.pid, message["cpu_s"])
                mine.sendall(b"\n")
            else:
                outcome.result, outcome.error = message.get("result"), message.get("error", "")
                return outcome
    outcome.error = f"timed out: no result after {timeout_s:g} s"
    process.kill()
    return outcome


def _ending(status: int) -> str:
    return f"ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"


def _last_line(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return f", having said {lines[-1][:200]!r}" if lines else ""
