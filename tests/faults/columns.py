"""Faults: the programs that test each of them, the pipelines it applies to, and the name of the outcome."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from faults import programs
from faults.programs import Program, raises
from faults.rows import ROWS, Row


@dataclass(frozen=True)
class Step:
    """Program and its expected exit code; it must print nothing to stderr."""

    program: Program
    exit_code: int = 0


class Play(NamedTuple):
    """Promised outcome of a cell, in a word or two, and the programs that test it, in order."""

    outcome: str
    steps: tuple[Step, ...]


class Absence(NamedTuple):
    """Reason why a fault does not apply to a pipeline."""

    reason: str


@dataclass(frozen=True)
class Column:
    """Kind of fault.

    Attributes:
        about: description for the page.
        cell: returns the test of a row, or why the fault does not apply to it.
        runs: number of runs in ``make faults``.
    """

    about: str
    cell: Callable[[Row], Play | Absence]
    runs: int = 5


def play(outcome: str, *steps: Step | Program) -> Play:
    return Play(outcome, tuple(step if isinstance(step, Step) else Step(step) for step in steps))


SECOND_RUN = Step(programs.second_run)
NO_ITERATOR = Absence("`save` returns when everything is written; the caller has no iterator")
NO_WORKERS = Absence("there are no worker processes")
OF_TORCH = Absence("PyTorch's iterator has no `close` and is not shared between threads")


def _raised(kind: str) -> Callable[[Row], Play | Absence]:
    def cell(row: Row) -> Play:
        outcome = "raised, nothing written" if not row.is_iterator and row.writes else "raised in place"
        if kind == "SystemExit" and row.needs_torch:
            outcome = "loader fails"
        elif kind == "SystemExit" and row.is_iterator and not row.exit_takes_place:
            outcome = "raised, then retried"
        return play(outcome, raises(kind))

    return cell


def _dies(kind: str) -> Callable[[Row], Play | Absence]:
    def cell(row: Row) -> Play | Absence:
        if row.has_processes:
            return play("loader fails" if row.needs_torch else "raised in place", raises(kind))
        if kind == "SIGKILL":
            return NO_WORKERS
        return play("program ends", Step(programs.exits_in_function, 7), SECOND_RUN)

    return cell


def _terminated(row: Row) -> Play:
    killed, exits = Step(programs.terminated, -signal.SIGTERM), Step(programs.exits_by_handler, 143)
    return play("program ends", killed, SECOND_RUN, exits, SECOND_RUN)


def _launcher(row: Row) -> Play | Absence:
    if row.has_launcher:
        return play("restarted", programs.kill_launcher)
    return Absence("the program itself starts the workers") if row.has_processes else NO_WORKERS


def _hang(row: Row) -> Play | Absence:
    if row.needs_torch:
        return play("worker ended", programs.hangs_in_a_data_loader)
    if not row.is_iterator:
        return NO_ITERATOR
    if not row.calls_in_background:
        return Absence("the function runs in the thread that calls `next`; see *close from another thread*")
    return play("closed", programs.closed_while_it_hangs(1))


def _unless_saved(outcome: str, *steps: Step | Program) -> Callable[[Row], Play | Absence]:
    return lambda row: NO_ITERATOR if row.writes and not row.is_iterator else play(outcome, *steps)


def _fork(row: Row) -> Play:
    if row.is_iterator:
        return play("child refuses", programs.forks)
    return play("unharmed", programs.forks_workers if row.needs_torch else programs.forks_in_function)


def _iterator_only(outcome: str, program: Program) -> Callable[[Row], Play | Absence]:
    def cell(row: Row) -> Play | Absence:
        if row.is_iterator:
            return play(outcome, program)
        return OF_TORCH if row.needs_torch else NO_ITERATOR

    return cell


def _writers_only(outcome: str, *steps: Step | Program) -> Callable[[Row], Play | Absence]:
    return lambda row: play(outcome, *steps) if row.writes else Absence("no files are written")


COLUMNS: dict[str, Column] = {
    "exception": Column("The function raises ValueError for an element.", _raised("exception")),
    "StopIteration": Column("The function raises StopIteration.", _raised("StopIteration")),
    "SystemExit": Column("The function calls `sys.exit`.", _raised("SystemExit")),
    "MemoryError in user code": Column("The function raises MemoryError.", _raised("MemoryError")),
    "MemoryError in the library": Column(
        "One allocation in the library fails, for an array or for a chunk of elements.",
        lambda row: play("raised", programs.allocation_fails),
        runs=1,
    ),
    "RecursionError": Column("The function recurses without end.", _raised("RecursionError")),
    "unpicklable exception": Column("The function raises an exception that cannot be pickled.", _raised("unpicklable")),
    "SIGINT": Column(
        "Ctrl-C at a random microsecond; then the iterator is closed, saved and loaded, used further or dropped.",
        lambda row: play("exact" if row.is_iterator else "raised", programs.interrupted),
    ),
    "SIGTERM": Column(
        "SIGTERM at a random microsecond; the program does not handle it, or its handler calls `sys.exit`.",
        _terminated,
        runs=25,
    ),
    "SIGKILL of worker": Column("A worker process is killed while it computes an element.", _dies("SIGKILL")),
    "SIGKILL of launcher": Column("The process that starts the workers is killed.", _launcher),
    "os._exit in user code": Column("The function ends its process.", _dies("os._exit")),
    "hang and close": Column("The function hangs in the background while the iterator is closed.", _hang),
    "dropped iterator": Column(
        "The last reference to the iterator is dropped, at a random element.",
        _unless_saved("nothing left", programs.dropped),
    ),
    "interpreter exit mid-way": Column(
        "The program ends while the iterator is open.", _unless_saved("exits with 0", programs.exits_midway, SECOND_RUN)
    ),
    "fork": Column("The program forks while the iterator is open; the child uses, closes or drops its copy.", _fork),
    "close from another thread": Column(
        "One thread closes the iterator while another waits in `next` and the function hangs.",
        _iterator_only("ClosedError", programs.closed_while_it_hangs(0)),
    ),
    "two threads on one iterator": Column(
        "Two threads take elements from one iterator.", _iterator_only("each once", programs.shared_by_threads)
    ),
    "full disk": Column(
        "The disk has room for only some of the files, or a file cannot grow.",
        _writers_only("raised, nothing written", programs.disk_is_full),
        runs=1,
    ),
    "kill -9 while writing": Column(
        "The program is killed at a random function call while it writes; then it runs a second time.",
        _writers_only("second run complete", Step(programs.killed_while_writing, -signal.SIGKILL), SECOND_RUN),
        runs=40,
    ),
}


def cell(row: str, column: str) -> Play | Absence:
    """Return the content of a cell."""
    return COLUMNS[column].cell(ROWS[row])


SHORTCOMINGS: dict[tuple[str, str], str] = {}
"""Descriptions, for the page, of promises that do not hold, by cell; these cells are not run."""

CELLS = [(row, column) for row in ROWS for column in COLUMNS]
