"""Helpers of the programs: the watchdog, the outcomes of an iteration, and checks for leftover files."""

from __future__ import annotations

import contextlib
import random
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dataset.errors import ClosedError
from faults.functions import WIDTH, Fault, UserFunction
from faults.rows import COUNT, Group, Row
from support.interrupting import watched

SECONDS = 5
"""The time within which an error must be raised and an iterator must be closed."""

STARTING_SECONDS = 30
"""The time within which the first element must be returned if processes are started. It applies to all elements of a
DataLoader, which checks for dead workers only periodically."""

OUTCOMES_MAX = 4 * COUNT


def within(seconds: float = SECONDS) -> AbstractContextManager[None]:
    """Print the stacks of all threads to stderr and end the program if the block takes longer."""
    return watched(seconds)


@dataclass(frozen=True)
class Raised:
    """An exception raised by ``next``, without the frames that it refers to."""

    type: type[BaseException]
    text: str

    @classmethod
    def of(cls, error: BaseException) -> Raised:
        """The message without the traceback of a worker process, which depends on what ran there before."""
        text = "\n".join([str(error), *getattr(error, "__notes__", [])])
        return cls(type(error), text.partition("In the worker process:")[0])


Outcome = Group | Raised


@dataclass
class Cell:
    """A run of a cell, for its programs.

    Attributes:
        folder: the folder for all files of the run; TMPDIR is a folder in it.
        chances: the random generator for places and times.
        is_thorough: whether the run may take long.
    """

    row: Row
    folder: Path
    chances: random.Random
    is_thorough: bool = False
    wide: bool = False
    _kept: list[Any] = field(default_factory=list)
    _pipelines: dict[bool, Any] = field(default_factory=dict)

    def pipeline(self) -> Any:
        """Return the row's pipeline: the same object each time, to keep its processes, unless it keeps other state."""
        if self.row.keeps_passes or self.row.needs_torch:
            return self._build()
        if self.wide not in self._pipelines:
            self._pipelines[self.wide] = self._build()
        return self._pipelines[self.wide]

    def _build(self) -> Any:
        function = UserFunction(str(self.folder), WIDTH if self.wide else 0)
        build = self.row.allocates if self.wide and self.row.allocates else self.row.build
        return build(self.folder, function)

    @property
    def expected(self) -> list[Outcome]:
        """Return the elements of the pipeline without a fault."""
        return list((self.wide and self.row.allocated) or self.row.expected)

    def value(self) -> int:
        """Draw a number to fail at."""
        return self.chances.randrange(COUNT)

    def later_value(self) -> int:
        """Draw a number to fail at that is not in the first element."""
        return self.chances.choice([value for value in range(COUNT) if value not in self.row.expected[0]])

    def keep(self, value: Any) -> None:
        """Keep a reference until the interpreter exits."""
        self._kept.append(value)

    def group(self, element: Any) -> Group:
        """Return the numbers in an element."""
        array = np.asarray(element)
        return tuple(int(row.flat[0]) for row in (array.reshape(-1, WIDTH) if self.wide else array.reshape(-1, 1)))

    def set_fault(self, kind: str, value: int, *, once: bool = False) -> None:
        Fault.set(self.folder, kind, value, once=once)

    def clear_fault(self) -> None:
        Fault.clear(self.folder)

    def outcomes(self, iterator: Any, most: int = OUTCOMES_MAX) -> list[Outcome]:
        """Return all outcomes until the end: elements, and exceptions of elements that failed; each is timed."""
        found: list[Outcome] = []
        while len(found) < most:
            is_slow = self.row.needs_torch or (self.row.has_processes and not found)
            try:
                with within(STARTING_SECONDS if is_slow else SECONDS):
                    # PyTorch reports a dead worker in a signal handler, that is, between any two instructions.
                    found.append(self.group(next(iterator)))
            except StopIteration:
                return found
            except BaseException as error:
                found.append(Raised.of(error))
                if isinstance(error, ClosedError):  # after a fault of the library, every call raises it
                    return found
        assert most < OUTCOMES_MAX, f"no end: {found}"
        return found

    def outcomes_until_closed(self, iterator: Any) -> list[Outcome]:
        """Return the outcomes until the iterator is closed."""
        found: list[Outcome] = []
        while True:
            try:
                found.append(self.group(next(iterator)))
            except ClosedError:
                return found

    def complete_run(self) -> None:
        """Check that a pipeline without a fault returns all elements."""
        self.clear_fault()
        assert_equal(self.outcomes(iter(self.pipeline())), self.expected)


def assert_equal(found: Sequence[Outcome], expected: Sequence[Outcome]) -> None:
    """Return all numbers in the outcomes, in order."""
    assert list(found) == list(expected), f"\n   found {show(found)}\nexpected {show(expected)}"


def show(outcomes: Sequence[Outcome]) -> str:
    """Return the outcomes as one line of text."""
    return " ".join(f"<{o.type.__name__}: {o.text}>" if isinstance(o, Raised) else str(list(o)) for o in outcomes)


def has_closed(use: Callable[[], object]) -> ClosedError | None:
    """Return the ClosedError that ``use`` raises; None if it returns a value or ends the iteration."""
    try:
        with contextlib.suppress(StopIteration):
            use()
    except ClosedError as error:
        return error
    return None


def in_background(function: Callable[[], Any]) -> Callable[[], Any]:
    """Call a function in a thread. Return a function that waits for it for a limited time, and returns or raises."""
    executor = ThreadPoolExecutor(1)
    future = executor.submit(function)

    def result() -> Any:
        with within():
            executor.shutdown()
        return future.result()

    return result


_RANDOM_NAME = re.compile(r"[0-9a-f]{16}")


def shape_of(folder: Path) -> list[str]:
    """Return the names of all files and folders below a folder, with random parts of names replaced by a mark."""
    return sorted(_RANDOM_NAME.sub("#", str(path.relative_to(folder))) for path in folder.rglob("*"))


def assert_no_temporary_files(cell: Cell) -> None:
    """Check that there are no temporary files, and no files with the names that writers in progress use."""
    found = shape_of(cell.folder / "tmp")
    hidden = [name for name in shape_of(cell.folder / "out") if name.endswith(".lock") or "/." in f"/{name}"]
    assert not found + hidden, f"temporary files are left: {found + hidden}"


def assert_nothing_kept(cell: Cell) -> None:
    """Check that an abandoned run leaves no files; empty folders are allowed."""
    files = [str(path.relative_to(cell.folder)) for path in (cell.folder / "out").rglob("*") if not path.is_dir()]
    assert not files, f"files of a run that was given up: {files}"
    assert_no_temporary_files(cell)


def assert_like_an_undisturbed_run(cell: Cell) -> None:
    """Check that the files have the same names as those of a run without a fault."""
    undisturbed = cell.folder / "undisturbed"
    undisturbed.mkdir(exist_ok=True)
    list(cell.row.build(undisturbed, UserFunction(str(undisturbed))))
    assert shape_of(cell.folder / "out") == shape_of(undisturbed / "out")
    assert_no_temporary_files(cell)
