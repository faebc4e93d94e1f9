"""Runner of one cell, in separate processes.

    pytest ---> zygote ---> supervisor ---> program, and what it starts
            asks       forks            forks

The *zygote* is an interpreter that has imported what the programs need, so that a program starts by a fork. The
*supervisor* runs the programs of one cell one after another. It is the subreaper of all processes below it, so it
detects processes that outlive their program.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import json
import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SHARED_MEMORY = "/dev/shm"  # noqa: S108  # a separate disk for each cell, if the system allows it
TESTS = Path(__file__).parents[1]
PROGRAM_SECONDS = 100
"""The time limit of a whole program, which may have many parts with limits of a few seconds."""

LEAVING_SECONDS = 5
"""The time limit for the processes that a program has started, after its end."""

_PR_SET_CHILD_SUBREAPER = 36  # from Linux's <sys/prctl.h>


class Zygote:
    """Zygote process that forks the programs of cells. ``torch`` says whether it imports torch."""

    def __init__(self, *, torch: bool) -> None:
        path = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
        warnings = [] if torch else ["-W", "error", "-W", "ignore::DeprecationWarning"]
        self._process = subprocess.Popen(
            [sys.executable, *warnings, "-c", f"from faults import runner; runner.serve(torch={torch})"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )

    def run(self, row: str, column: str, seed: str, *, is_thorough: bool) -> str:
        """Run a cell; return its errors, or an empty text."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"row": row, "column": column, "seed": seed, "is_thorough": is_thorough}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("the zygote has ended")
        return str(json.loads(answer))

    def close(self) -> None:
        """End the zygote."""
        self._process.communicate()


def serve(*, torch: bool) -> None:
    """Run as a zygote: read a request from each line of stdin, write the response to a line of stdout."""
    from faults import columns  # noqa: F401
    from support import overlap  # noqa: F401  # imported before the forks, as the modules below are

    with contextlib.suppress(ImportError):
        import cloudpickle  # noqa: F401
    if torch:
        import torch.utils.data
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        request = json.loads(line)
        read, write = os.pipe()
        supervisor = os.fork()
        if not supervisor:
            os.close(read)
            answers.close()
            _supervise(request, write)
            return  # to end the program normally
        os.close(write)
        with os.fdopen(read) as answer:
            text = answer.read()
        status = os.waitstatus_to_exitcode(os.waitpid(supervisor, 0)[1])
        answers.write((text or json.dumps(f"the supervisor ended with {status}")) + "\n")
        answers.flush()


def _supervise(request: dict[str, Any], answer: int) -> None:
    """Run the programs of a cell; this returns only in the processes of the programs."""
    from faults import disks
    from faults.columns import Play, cell
    from faults.rows import ROWS

    os.setsid()
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    found = cell(request["row"], request["column"])
    assert isinstance(found, Play)
    is_quiet = not ROWS[request["row"]].needs_torch  # torch prints errors of its own threads
    folder = Path(tempfile.mkdtemp(prefix="dataset-faults-"))
    has_own_memory = disks.can_mount() and disks.mount(SHARED_MEMORY, 1 << 26)
    (folder / "tmp").mkdir()
    problem = ""
    for number, step in enumerate(found.steps):
        program = os.fork()
        if not program:
            os.close(answer)
            _be_program(request, folder, number)
            return
        problem = _watch(program, step.exit_code, folder, is_quiet=is_quiet)
        if problem:
            problem = f"{step.program.__name__}, step {number}: {problem}"
            break
    if has_own_memory and not problem and (names := [path.name for path in Path(SHARED_MEMORY).iterdir()]):
        problem = f"shared memory is left: {names}"
    shutil.rmtree(folder, ignore_errors=True)
    with os.fdopen(answer, "w") as out:
        out.write(json.dumps(problem))
    os._exit(0)


def _be_program(request: dict[str, Any], folder: Path, number: int) -> None:
    """Run a program; if it returns, the interpreter exits normally."""
    from faults.checks import Cell
    from faults.columns import Play, cell
    from faults.rows import ROWS

    os.setpgid(0, 0)
    for stream, flags in enumerate((os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)):
        descriptor = os.open([os.devnull, folder / "stdout", folder / "stderr"][stream], flags)
        os.dup2(descriptor, stream)
        os.close(descriptor)
    faulthandler.enable(all_threads=True)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    logging.getLogger("dataset").addHandler(logging.NullHandler())  # otherwise its warnings are written to stderr
    tempfile.tempdir = os.environ["TMPDIR"] = str(folder / "tmp")
    os.environ["FAULTS_PROGRAM"] = f"{folder}"
    found = cell(request["row"], request["column"])
    assert isinstance(found, Play)
    chances = random.Random(f"{request['seed']} {request['row']} {request['column']} {number}")
    try:
        found.steps[number].program(Cell(ROWS[request["row"]], folder, chances, request["is_thorough"]))
    except Exception:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)  # even if threads are still running


def _watch(program: int, expected: int, folder: Path, *, is_quiet: bool) -> str:
    """Wait for a program and all processes that it has started; return the errors, or an empty text."""
    from faults.programs import children

    try:
        with _alarm(PROGRAM_SECONDS):
            status = os.waitpid(program, 0)[1]
        with _alarm(LEAVING_SECONDS):
            _wait_for_orphans()
    except TimeoutError:
        left = [_describe(process) for process in children()]
        for process in children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        _wait_for_orphans()
        return f"still there: {left}\n{_stderr(folder)}"
    code = os.waitstatus_to_exitcode(status)
    errors = _stderr(folder)
    if code != expected or (errors and is_quiet):
        return f"exit code {code}, expected {expected}\n{errors}"
    return ""


def _wait_for_orphans() -> None:
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def _stderr(folder: Path) -> str:
    return (folder / "stderr").read_text(errors="replace")[-6000:]


@contextmanager
def _alarm(seconds: int) -> Iterator[None]:
    def give_up(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def _describe(process: int) -> str:
    with contextlib.suppress(OSError):
        command = Path(f"/proc/{process}/cmdline").read_bytes().replace(bytes(1), b" ")
        return f"{process}: {command.decode(errors='replace')[:200]}"
    return str(process)
