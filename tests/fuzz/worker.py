"""Worker process: tries inputs of one target until their number or the time is reached, or an input crashes it.

The parent reads the number of the current input from a small shared file. If an input takes too long, a timer signal
kills the process, which also works inside C libraries.
"""

from __future__ import annotations

import faulthandler
import json
import mmap
import os
import random
import signal
import struct
import sys
import tempfile
import time
import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from .planted import PLANTED
from .target import Target
from .targets import TARGETS

CPU_SECONDS = 5.0  # per input
WALL_SECONDS = 60  # per input; the machine may be busy
MEMORY_BYTES = 400 << 20  # in addition to the memory that the process has at the start

PROGRESS = struct.Struct("<qqq")  # the number of the input, how many were tried, and how many were accepted


def input_of(target: Target, seed: int, number: int) -> Any:
    """Return the input with this number."""
    return target.make_input(random.Random(f"{seed}/{target.name}/{number}"))


def try_one(target: Target, data: Any) -> tuple[bool, str]:
    """Return whether the library accepts an input, and the finding, if any."""
    try:
        target.check(data)
    except target.allowed:
        return False, ""
    except Exception:  # including AssertionError and MemoryError
        return False, traceback.format_exc()
    return True, ""


def limit_memory() -> None:
    """Limit the process to its current memory and a few hundred megabytes more."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (ImportError, OSError):  # the system does not report the size
        return
    limit = pages * resource.getpagesize() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def scratch() -> str | None:
    """Return the folder with the fastest files."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108


def shown(data: Any) -> str:
    """Return an input as text for a report."""
    try:
        return f"{data!r:.2000}"
    except ValueError as error:  # an integer of too many digits
        return str(error)


def say(**fields: Any) -> None:
    """Report a finding to the parent."""
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Try inputs, as the argument says: see driver.py."""
    arguments = SimpleNamespace(**json.loads(sys.argv[1]))
    faulthandler.enable()
    faulthandler.register(signal.SIGPROF, all_threads=True, chain=True)
    with (
        tempfile.TemporaryDirectory(prefix="fuzz-", dir=scratch()) as folder,
        Path(arguments.progress).open("r+b") as shared,
    ):
        progress = mmap.mmap(shared.fileno(), PROGRESS.size)
        target = (TARGETS | PLANTED)[arguments.target](Path(folder))
        target.warm_up()
        limit_memory()
        say(ready=True)
        _try_many(target, arguments, progress)


def _try_many(target: Target, arguments: Any, progress: mmap.mmap) -> None:
    _, tried, taken = PROGRESS.unpack(progress[:])
    number, findings, end = arguments.start, 0, time.monotonic() + arguments.seconds
    while number < arguments.stop and time.monotonic() < end and findings < arguments.faults:
        data = input_of(target, arguments.seed, number)
        progress[:] = PROGRESS.pack(number, tried, taken)
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        signal.alarm(WALL_SECONDS)
        is_taken, words = try_one(target, data)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        tried, taken, number = tried + 1, taken + is_taken, number + 1
        if words:
            findings += 1
            say(number=number - 1, words=words, input=shown(data))
    progress[:] = PROGRESS.pack(number, tried, taken)


if __name__ == "__main__":
    main()
