"""What the programs share: the watchdog, the outcomes of an iteration, and what may be left in a folder."""

from __future__ import annotations

import contextlib
import faulthandler
import random
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dataset.errors import ClosedError
from faults.functions import WIDTH, Fault, UserFunction
from faults.rows import COUNT, Group, Row

SECONDS = 5
"""Within which an error comes out, and an iterator closes."""

STARTING_SECONDS = 30
"""Within which the first element comes where processes are started, and all of a DataLoader, which looks for its dead
workers now and then only."""

OUTCOMES_MAX = 4 * COUNT


@contextmanager
def within(seconds: float = SECONDS) -> Iterator[None]:
    """End the program, with the stacks of all threads on stderr, if the block takes longer."""
    faulthandler.dump_traceback_later(seconds, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


@dataclass(frozen=True)
class Raised:
    """An exception that came out of ``next``, without the frames that it refers to."""

    type: type[BaseException]
    text: str

    @classmethod
    def of(cls, error: BaseException) -> Raised:
        """What it says, without the traceback of a worker process, which differs with what ran there before."""
        text = "\n".join([str(error), *getattr(error, "__notes__", [])])
        return cls(type(error), text.partition("In the worker process:")[0])


Outcome = Group | Raised


@dataclass
class Cell:
    """One run of a cell, as the programs see it.

    Attributes:
        folder: for all of its files; TMPDIR is a folder in it.
        chances: draws places and times.
        is_thorough: whether time does not matter.
    """

    row: Row
    folder: Path
    chances: random.Random
    is_thorough: bool = False
    wide: bool = False
    _kept: list[Any] = field(default_factory=list)
    _pipelines: dict[bool, Any] = field(default_factory=dict)

    def pipeline(self) -> Any:
        """The row's pipeline: the same each time, for the sake of its processes, unless it holds more than these."""
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
        """What comes out of it without a fault."""
        return list((self.wide and self.row.allocated) or self.row.expected)

    def value(self) -> int:
        """A number to fail at: any."""
        return self.chances.randrange(COUNT)

    def later_value(self) -> int:
        """One that is not in the first element."""
        return self.chances.choice([value for value in range(COUNT) if value not in self.row.expected[0]])

    def keep(self, value: Any) -> None:
        """Hold something until the interpreter exits."""
        self._kept.append(value)

    def group(self, element: Any) -> Group:
        """The numbers in an element."""
        array = np.asarray(element)
        return tuple(int(row.flat[0]) for row in (array.reshape(-1, WIDTH) if self.wide else array.reshape(-1, 1)))

    def set_fault(self, kind: str, value: int, *, once: bool = False) -> None:
        Fault.set(self.folder, kind, value, once=once)

    def clear_fault(self) -> None:
        Fault.clear(self.folder)

    def outcomes(self, iterator: Any, most: int = OUTCOMES_MAX) -> list[Outcome]:
        """What comes out until the end, an exception in the place of what failed; each within some seconds."""
        found: list[Outcome] = []
        while len(found) < most:
            is_slow = self.row.needs_torch or (self.row.has_processes and not found)
            try:
                with within(STARTING_SECONDS if is_slow else SECONDS):
                    element = next(iterator)
            except StopIteration:
                return found
            except BaseException as error:
                found.append(Raised.of(error))
                if isinstance(error, ClosedError):  # as after a fault of the library: it says so each time
                    return found
            else:
                found.append(self.group(element))
        assert most < OUTCOMES_MAX, f"no end: {found}"
        return found

    def outcomes_until_closed(self, iterator: Any) -> list[Outcome]:
        """What comes out until the iterator is closed."""
        found: list[Outcome] = []
        while True:
            try:
                found.append(self.group(next(iterator)))
            except ClosedError:
                return found

    def complete_run(self) -> None:
        """A pipeline without a fault gives all."""
        self.clear_fault()
        assert_equal(self.outcomes(iter(self.pipeline())), self.expected)


def assert_equal(found: Sequence[Outcome], expected: Sequence[Outcome]) -> None:
    """All that came out, in order."""
    assert list(found) == list(expected), f"\n   found {show(found)}\nexpected {show(expected)}"


def show(outcomes: Sequence[Outcome]) -> str:
    """Outcomes on a line."""
    return " ".join(f"<{o.type.__name__}: {o.text}>" if isinstance(o, Raised) else str(list(o)) for o in outcomes)


def has_closed(use: Callable[[], object]) -> ClosedError | None:
    """The ClosedError that ``use`` raises; None if it comes back with a value or the end."""
    try:
        with contextlib.suppress(StopIteration):
            use()
    except ClosedError as error:
        return error
    return None


class Background:
    """A thread that calls a function; ``result`` waits for it, not for ever, and raises what it raised."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._value: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._value = self._function()
        except BaseException as error:
            self._error = error

    def result(self) -> Any:
        with within():
            self._thread.join()
        error, self._error = self._error, None
        if error is not None:
            try:
                raise error
            finally:
                del error
        return self._value


_RANDOM_NAME = re.compile(r"[0-9a-f]{16}")


def shape_of(folder: Path) -> list[str]:
    """The names of all files and folders below, with a mark in the place of random names."""
    return sorted(_RANDOM_NAME.sub("#", str(path.relative_to(folder))) for path in folder.rglob("*"))


def assert_no_temporary_files(cell: Cell) -> None:
    """Nothing in the folder for temporary files, and none under the names that only writers in progress use."""
    found = shape_of(cell.folder / "tmp")
    hidden = [name for name in shape_of(cell.folder / "out") if name.endswith(".lock") or "/." in f"/{name}"]
    assert not found + hidden, f"temporary files are left: {found + hidden}"


def assert_nothing_kept(cell: Cell) -> None:
    """Of a run that was given up, no file is left; empty folders may be."""
    files = [str(path.relative_to(cell.folder)) for path in (cell.folder / "out").rglob("*") if not path.is_dir()]
    assert not files, f"files of a run that was given up: {files}"
    assert_no_temporary_files(cell)


def assert_like_an_undisturbed_run(cell: Cell) -> None:
    """The files are as many, and named alike, as those of a run that nothing disturbed."""
    undisturbed = cell.folder / "undisturbed"
    undisturbed.mkdir(exist_ok=True)
    list(cell.row.build(undisturbed, UserFunction(str(undisturbed))))
    assert shape_of(cell.folder / "out") == shape_of(undisturbed / "out")
    assert_no_temporary_files(cell)
