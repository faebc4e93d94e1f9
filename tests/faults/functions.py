"""The user function of all pipelines, and the faults that it can show.

The fault is not part of the function but of a file: pipelines with and without a fault are the same pipeline, with the
same states, caches and snapshots. Worker processes import this module, so it has few imports.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from support.process_helpers import exit_code_of, fork

WORK_SECONDS = 5e-4  # enough that parallel operations call their workers
WIDTH = 1200  # values of a wide element: more than 8 kB, the size from which batches are written in place


@dataclass(frozen=True)
class Fault:
    """The fault of the function for the element ``value``.

    Attributes:
        kind: a name in FAULTS.
        value: the value of the element.
        once: whether the fault occurs only the first time.
    """

    kind: str
    value: int
    once: bool = False

    @classmethod
    def set(cls, folder: str | Path, kind: str, value: int, *, once: bool = False) -> None:
        """Make the functions of a folder, in all processes, show a fault from now on."""
        new = Path(folder, "fault.new")
        new.write_text(json.dumps(asdict(cls(kind, value, once))))
        new.rename(Path(folder, "fault"))

    @classmethod
    def clear(cls, folder: str | Path) -> None:
        """Make the functions of a folder work without a fault from now on."""
        Path(folder, "fault").unlink(missing_ok=True)
        Path(folder, "shown").unlink(missing_ok=True)

    @classmethod
    def get(cls, folder: str) -> Fault | None:
        """Return the fault of a folder."""
        try:
            return cls(**json.loads(Path(folder, "fault").read_text()))
        except FileNotFoundError:
            return None


@dataclass(frozen=True)
class UserFunction:
    """Function that returns a number, or an array filled with it, unless the folder has a fault for the number."""

    folder: str
    width: int = 0

    def __call__(self, x: Any) -> Any:
        number = int(x)
        time.sleep(WORK_SECONDS)
        fault = Fault.get(self.folder)
        if fault is not None and fault.value == number and (not fault.once or _is_first(self.folder)):
            FAULTS[fault.kind](self.folder, fault)
        return np.full(self.width, number) if self.width else number


def _is_first(folder: str) -> bool:
    try:
        os.close(os.open(Path(folder, "shown"), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


class UnpicklableError(Exception):
    """An exception that cannot be pickled."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.lock = threading.Lock()


def _raise(error: Callable[[], BaseException]) -> Callable[[str, Fault], None]:
    def show(folder: str, fault: Fault) -> None:
        raise error()

    return show


def _recurse(folder: str, fault: Fault) -> None:
    _recurse(folder, fault)


def _hang(folder: str, fault: Fault) -> None:
    """Signal the start and wait for the release, by two named pipes: they work between threads and processes."""
    Path(folder, "reached").write_text("reached")
    Path(folder, "released").read_text()


FAULTS: dict[str, Callable[[str, Fault], None]] = {
    "exception": _raise(lambda: ValueError("bad element")),
    "StopIteration": _raise(lambda: StopIteration("bad element")),
    "SystemExit": lambda folder, fault: sys.exit(9),
    "MemoryError": _raise(lambda: MemoryError("bad element")),
    "RecursionError": _recurse,
    "unpicklable": _raise(lambda: UnpicklableError("bad element")),
    "hang": _hang,
    "os._exit": lambda folder, fault: os._exit(7),
    "SIGKILL": lambda folder, fault: os.kill(os.getpid(), 9),
    "fork": lambda folder, fault: exit_code_of(fork(atexit._run_exitfuncs)),
}
