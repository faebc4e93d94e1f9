"""The programs that inject a fault and check the promised outcome. Each runs in a separate process; see runner.py.

In addition to its own assertions, each program checks that it leaves nothing over (``nothing_left``), and that nothing
takes longer than ``within`` allows.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import gc
import itertools
import os
import resource
import shutil
import signal
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing import popen_fork
from pathlib import Path
from types import FrameType
from typing import Any

from dataset import Dataset
from dataset.errors import ClosedError, DatasetError, WorkerDiedError
from faults import disks
from faults.checks import (
    SECONDS,
    STARTING_SECONDS,
    Cell,
    Outcome,
    Raised,
    assert_equal,
    assert_like_an_undisturbed_run,
    assert_no_temporary_files,
    assert_nothing_kept,
    has_closed,
    in_background,
    show,
    within,
)
from faults.functions import UnpicklableError
from faults.rows import ERROR
from support.fault_injection import injected
from support.overlap import nothing_left
from support.process_helpers import exit_code_of, fork

Program = Callable[[Cell], None]


def restart(cell: Cell) -> None:
    """Reset the folder."""
    cell.clear_fault()
    shutil.rmtree(cell.folder / "out", ignore_errors=True)


def second_run(cell: Cell) -> None:
    """Check that the run after an interrupted one returns all elements and removes what the other has left."""
    if cell.row.writes and not cell.row.is_iterator and (cell.folder / "out" / "metadata.json").exists():
        assert_equal(cell.outcomes(iter(Dataset.load(str(cell.folder / "out")))), cell.expected)
    with nothing_left():
        cell.complete_run()
    if cell.row.writes:
        assert_like_an_undisturbed_run(cell)


# Exceptions of the user's function

EXCEPTIONS: dict[str, tuple[type[BaseException], str]] = {
    "exception": (ValueError, "bad element"),
    "StopIteration": (RuntimeError, "StopIteration"),  # otherwise a for loop would end silently
    "SystemExit": (SystemExit, "9"),
    "MemoryError": (MemoryError, "bad element"),
    "RecursionError": (RecursionError, "recursion"),
    "unpicklable": (Exception, "bad element"),
    "os._exit": (WorkerDiedError, "exit code 7"),
    "SIGKILL": (WorkerDiedError, "killed by SIGKILL"),
}
"""The exception that is raised for each kind of fault, and a part of its message."""


def raises(kind: str) -> Program:
    """The function raises an exception for one element, possibly in a worker process that dies of it."""

    def program(cell: Cell) -> None:
        value = cell.value()
        fault = {"kind": kind, "value": value, "once": kind == "SystemExit"}
        with nothing_left():
            restart(cell)
            cell.set_fault(**fault)
            if not cell.row.is_iterator:
                _assert_raised_without_places(cell, kind)
                return
            found = cell.outcomes(iter(cell.pipeline()))
            error = _only_error(found)
            is_retried = kind == "SystemExit" and [one for one in found if one != error] == cell.expected
            if is_retried:  # it is raised as soon as it is seen, and never after the position of its element
                assert found.index(error) <= cell.row.place_of(value), show(found)
            else:
                assert_equal(found, _with_error(cell, error, value))
            assert is_retried or kind != "SystemExit" or cell.row.exit_takes_place, show(found)
            assert issubclass(error.type, EXCEPTIONS[kind][0]), error
            assert EXCEPTIONS[kind][1] in error.text, error
            if kind != "SystemExit":
                assert f"element {_position(cell, value)}" in error.text, error
                assert "rows.py" in error.text, error
            place = found.index(error)
            for before in {place, place + 1, cell.chances.randrange(len(found))}:
                if before == 0 and cell.row.keeps_passes:
                    continue  # a pass that starts after a complete one returns the elements that the other one kept
                restart(cell)
                cell.set_fault(**fault)
                _assert_resumes(cell, before, value)
        if cell.row.writes:
            assert_no_temporary_files(cell)

    return program


def _only_error(found: list[Outcome]) -> Raised:
    errors = [outcome for outcome in found if isinstance(outcome, Raised)]
    assert len(errors) == 1, show(found)
    return errors[0]


def _position(cell: Cell, value: int) -> int:
    """Return the number by which the operation counts the element."""
    if cell.row.expected[1] == (4,):
        return value % 4
    return cell.row.place_of(value) if len(cell.row.expected[0]) == 1 else value


def _with_error(cell: Cell, error: Raised, value: int) -> list[Outcome]:
    """Check that the exception takes the place of the element."""
    return [error if group == ERROR else group for group in cell.row.with_error(value)]


def _assert_resumes(cell: Cell, before: int, value: int) -> None:
    """Check that an iterator restored after ``before`` outcomes continues like the one that saved the state."""
    pipeline = cell.pipeline()
    iterator = iter(pipeline)
    taken = cell.outcomes(iterator, before)
    state = iterator.state_dict()
    rest = cell.outcomes(iterator)
    if not any(isinstance(outcome, Raised) for outcome in taken):
        Path(cell.folder, "shown").unlink(missing_ok=True)  # a fault that occurs once may occur again
    resumed = iter(pipeline)
    resumed.load_state_dict(state)
    again = [_as_held(outcome) for outcome in cell.outcomes(resumed)]
    rest = [_as_held(outcome) for outcome in rest]
    exits = [outcome for outcome in again + rest if isinstance(outcome, Raised) and "SystemExit" in outcome.text]
    if exits:  # whether it takes the place of the element depends on the thread that calls the function
        failing = cell.expected[cell.row.place_of(value)]
        again, rest = ([one for one in part if one not in (*exits, failing)] for part in (again, rest))
    assert_equal(again, rest)


def _as_held(outcome: Outcome) -> Outcome:
    """Return an exception as restored from a state: a DatasetError names a class that is not a built-in one."""
    if not isinstance(outcome, Raised) or issubclass(outcome.type, DatasetError):
        return outcome
    if outcome.type in {UnpicklableError, SystemExit}:
        return Raised(DatasetError, f"{outcome.type.__name__}: {outcome.text}")
    return outcome


def _assert_raised_without_places(cell: Cell, kind: str) -> None:
    """Check an exception from save(), or from a DataLoader, which rephrases it and cannot always continue."""
    iterator = iter(cell.pipeline())
    found = cell.outcomes(iterator, 1)
    while isinstance(found[-1], tuple):
        found += cell.outcomes(iterator, 1)
    error = found.pop()
    assert isinstance(error, Raised)
    assert_equal(found, cell.expected[: len(found)])
    if cell.row.writes:
        assert not found, show(found)
        assert issubclass(error.type, EXCEPTIONS[kind][0]), error
        assert_nothing_kept(cell)
    is_death = kind in {"os._exit", "SIGKILL", "SystemExit"} and not cell.row.writes
    assert ("DataLoader worker" if is_death else EXCEPTIONS[kind][1]) in error.text, error
    assert not is_death or error.type is RuntimeError, error
    if not is_death and not cell.row.writes:
        place = len(found)  # elements are numbers here
        assert_equal([*found, error, *cell.outcomes(iterator)], _with_error(cell, error, place))
    cell.complete_run()
    if cell.row.writes:
        assert_like_an_undisturbed_run(cell)


# MemoryError in the library

ALLOCATIONS = "any array or chunk"
SAMPLE = 4  # how many places of a cell are tried in a short run


def allocation_fails(cell: Cell) -> None:
    """A random allocation of the library fails."""
    cell.wide = True
    restart(cell)
    with injected(ALLOCATIONS, sys.maxsize) as none:
        assert_equal(cell.outcomes(iter(cell.pipeline())), cell.expected)
    assert none.calls, "this pipeline allocates nothing"
    calls: Any = range(1, none.calls + 1)
    for call in calls if cell.is_thorough else sorted(cell.chances.sample(calls, min(SAMPLE, len(calls)))):
        with nothing_left():
            restart(cell)
            _with_failing_allocation(cell, call)
    cell.wide = False
    restart(cell)
    cell.complete_run()


def _with_failing_allocation(cell: Cell, call: int) -> None:
    pipeline = cell.pipeline()
    with injected(ALLOCATIONS, call) as allocation:
        try:
            with within():
                iterator = iter(pipeline)
        except MemoryError:
            return
        found = cell.outcomes(iterator)
        del iterator
    if allocation.has_fired or cell.row.has_processes:
        missing = missing_after_errors(cell, found, MemoryError)
    else:
        missing = 0
        assert_equal(found, cell.expected)
    if cell.row.writes:
        assert_no_temporary_files(cell)
    again = cell.outcomes(iter(pipeline))
    if not cell.row.keeps_passes:
        assert_equal(again, cell.expected)
    assert len(again) + missing >= len(cell.expected), f"allocation {call}\nfirst {show(found)}\nthen {show(again)}"
    assert_in_order(cell, again)


def missing_after_errors(cell: Cell, found: list[Outcome], kind: type[BaseException]) -> int:
    """Return how many elements are missing: an error took the place of one, or ended the iteration."""
    if isinstance(found[-1], Raised) and found[-1].type is ClosedError:
        assert "cannot continue after" in found[-1].text, show(found)
        found = found[:-1]  # the error that ended it is before that
    if cell.row.length_of_inputs > 1:
        return _missing_inputs(cell, found, kind)
    missing, expected = 0, iter(cell.expected)
    upcoming = next(expected, None)
    errors = 0
    for outcome in found:
        if isinstance(outcome, Raised):
            assert issubclass(outcome.type, kind), show(found)
            errors += 1
            continue
        while upcoming != outcome and errors:
            upcoming, errors, missing = next(expected, None), errors - 1, missing + 1
        assert upcoming == outcome, f"lost, or out of order, without a word: {show(found)}"
        upcoming, errors = next(expected, None), 0
    rest = (upcoming is not None) + len(list(expected))
    assert not rest or isinstance(found[-1], Raised), f"the end came too early, without a word: {show(found)}"
    return missing + rest


def _missing_inputs(cell: Cell, found: list[Outcome], kind: type[BaseException]) -> int:
    """Check the same if an error may also take the place of a dataset that could not be opened."""
    groups = [outcome for outcome in found if not isinstance(outcome, Raised)]
    errors = [outcome for outcome in found if isinstance(outcome, Raised)]
    assert all(issubclass(error.type, kind) for error in errors), show(found)
    assert len(set(groups)) == len(groups), show(found)
    missing = len(set(cell.expected) - set(groups))
    is_said = missing <= cell.row.length_of_inputs * len(errors) or isinstance(found[-1], Raised)
    assert is_said, f"lost without a word: {show(found)}"
    return missing


def assert_in_order(cell: Cell, found: list[Outcome]) -> None:
    """Check that no element is returned twice or out of order."""
    places = [cell.expected.index(outcome) for outcome in found]
    assert places == sorted(set(places)), show(found)


# Signals


WEAK_COLLECTIONS = {weakref.__file__, weakref.WeakSet.__init__.__code__.co_filename}


def duration_of_a_run(cell: Cell) -> float:
    """Return the time of a run in seconds; the run leaves nothing."""
    list(iter(cell.pipeline()))  # imports the modules that are imported at the first use
    restart(cell)
    started = time.perf_counter()
    list(iter(cell.pipeline()))
    duration = time.perf_counter() - started
    restart(cell)
    return duration


@contextmanager
def signal_after(seconds: float, number: int) -> Iterator[None]:
    """Send a signal to all processes of the program, as a terminal does, unless the block ends first."""

    def send(signum: int, frame: FrameType | None) -> None:
        if _is_lost_in(frame):
            signal.setitimer(signal.ITIMER_REAL, 0.05)  # a fork restarts after each signal and takes a while
        else:
            os.killpg(0, number)

    signal.signal(signal.SIGALRM, send)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _is_lost_in(frame: FrameType | None) -> bool:
    """Return whether multiprocessing is starting a process, PyTorch is ending a DataLoader, or an object is dropped.

    Python only reports what a signal handler raises there: in callbacks of ``os.register_at_fork``, such as that of
    ``logging``, in ``__del__``, and in the callbacks of weak collections.
    """
    while frame is not None:
        code = frame.f_code
        if code is popen_fork.Popen._launch.__code__ or (code.co_name == "__del__" and "torch" in code.co_filename):
            return True
        if code.co_name in {"remove", "_remove"} and code.co_filename in WEAK_COLLECTIONS:
            return True
        frame = frame.f_back
    return False


def interrupted(cell: Cell) -> None:
    """Ctrl-C at any microsecond; then the iterator is closed, saved, continued or dropped."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    warnings.simplefilter("ignore", ResourceWarning)
    duration = duration_of_a_run(cell)
    reactions = ["close", "resume", "continue", "drop"] if cell.row.is_iterator else ["drop"]
    for _ in range(25 if cell.is_thorough else 1):
        for reaction in reactions:
            restart(cell)
            with nothing_left():
                _interrupt(cell, reaction, cell.chances.uniform(1e-4, 1.1 * duration))


def _interrupt(cell: Cell, reaction: str, delay: float) -> None:
    pipeline = cell.pipeline()
    iterator = iter(pipeline)
    found: list[Any] = []
    with within(2 * SECONDS):
        try:
            with signal_after(delay, signal.SIGINT):
                found.extend(iterator)  # no bytecode is executed between next() and the list
        except KeyboardInterrupt:
            pass
    groups: list[Outcome] = [cell.group(element) for element in found]
    assert_equal(groups, cell.expected[: len(groups)])
    if reaction == "close":
        with within():
            iterator.close()
    elif reaction == "resume":
        with within():
            state = iterator.state_dict()
            iterator.close()
        resumed = iter(pipeline)
        resumed.load_state_dict(state)
        assert_equal(groups + cell.outcomes(resumed), cell.expected)
    elif reaction == "continue":
        assert_equal(groups + cell.outcomes(iterator), cell.expected)
    del iterator
    if not cell.row.is_iterator and cell.row.writes:
        if not (cell.folder / "out" / "metadata.json").exists():
            assert_nothing_kept(cell)
        assert_no_temporary_files(cell)


def _run_for_ever(cell: Cell, number: int) -> None:
    duration = duration_of_a_run(cell)
    with within(3 * SECONDS), signal_after(cell.chances.uniform(1e-4, 1.5 * duration), number):
        while True:
            for _ in cell.pipeline():
                pass


def terminated(cell: Cell) -> None:
    """SIGTERM ends a program that does not handle it."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _run_for_ever(cell, signal.SIGTERM)


def exits_by_handler(cell: Cell) -> None:
    """SIGTERM makes the program exit in good order."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # For a file that was just opened when the garbage collector closes it.
    warnings.simplefilter("ignore", ResourceWarning)
    try:
        _run_for_ever(cell, signal.SIGTERM)
    finally:
        faulthandler.dump_traceback_later(SECONDS, exit=True)  # until the interpreter has ended


# Deaths


def kill_launcher(cell: Cell) -> None:
    """The process that starts the workers is killed: a new one is started."""
    count = cell.chances.randrange(1, len(cell.expected) - 1)
    with nothing_left():
        iterator = iter(cell.pipeline())
        found = cell.outcomes(iterator, count)
        for launcher in children():
            os.kill(launcher, signal.SIGKILL)
        found += cell.outcomes(iterator)
        missing_after_errors(cell, found, WorkerDiedError)
        assert len(found) == len(cell.expected), show(found)
        in_progress = [outcome for outcome in found if isinstance(outcome, Raised)]
        assert len(in_progress) <= 4, show(found)
        del iterator
        cell.complete_run()


def children() -> list[int]:
    """Return the running processes that this one has started."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):
                state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
                if int(parent) == os.getpid() and state != "Z":
                    found.append(int(folder.name))
    return found


def exits_in_function(cell: Cell) -> None:
    """``os._exit`` in a function that runs in the program itself."""
    cell.set_fault("os._exit", cell.value())
    for _ in cell.pipeline():
        pass
    raise AssertionError("the function has not ended the program")


# Endings


def make_pipes(cell: Cell) -> None:
    """Create the pipes for functions that hang: see functions.py."""
    for name in ("reached", "released"):
        with contextlib.suppress(FileExistsError):
            os.mkfifo(cell.folder / name)


def wait_until_it_hangs(cell: Cell) -> None:
    with within(STARTING_SECONDS if cell.row.has_processes else SECONDS):
        Path(cell.folder, "reached").read_text()


def release(cell: Cell) -> None:
    with within():
        Path(cell.folder, "released").write_text("released")


def closed_while_it_hangs(taken: int) -> Program:
    """Close while next() waits in another thread and the function hangs, after some elements.

    Processes are killed. Threads cannot be killed, so close waits for them; next() raises ClosedError immediately,
    unless it is in the function.
    """

    def program(cell: Cell) -> None:
        make_pipes(cell)
        cell.set_fault("hang", cell.later_value() if taken else cell.value(), once=True)
        with nothing_left():
            iterator = iter(cell.pipeline())
            found = cell.outcomes(iterator, taken)
            # Until a worker hangs, the others must be kept busy, but must never wait for it.
            consumer = in_background(partial(cell.outcomes_until_closed, iterator))
            wait_until_it_hangs(cell)
            closer = in_background(iterator.close)
            if not cell.row.calls_in_background:
                release(cell)
            found += consumer()
            if cell.row.calls_in_background and not cell.row.has_processes:
                release(cell)
            closer()
            assert_equal(found, cell.expected[: len(found)])
            assert has_closed(partial(next, iterator))
            del iterator
        assert_no_temporary_files(cell)
        restart(cell)
        cell.complete_run()

    return program


def hangs_in_a_data_loader(cell: Cell) -> None:
    """A DataLoader is dropped while the function hangs in its worker: torch ends the worker."""
    make_pipes(cell)
    cell.set_fault("hang", cell.chances.randrange(4), once=True)  # this many are prefetched
    with nothing_left():
        iterator = iter(cell.pipeline())
        wait_until_it_hangs(cell)
        with within():
            del iterator
    cell.complete_run()


def dropped(cell: Cell) -> None:
    """The last reference is dropped, without the garbage collector."""
    for taken in (0, 1, cell.chances.randrange(2, len(cell.expected))):
        restart(cell)
        with nothing_left():
            iterator = iter(cell.pipeline())
            assert_equal(cell.outcomes(iterator, taken), cell.expected[:taken])
            gone = weakref.ref(iterator)
            gc.disable()
            with within():
                del iterator
            assert not cell.row.is_iterator or gone() is None
            gc.enable()
        assert_no_temporary_files(cell)
    restart(cell)
    cell.complete_run()


def exits_midway(cell: Cell) -> None:
    """The interpreter exits while an iterator is open, in the middle of its elements."""
    taken = cell.chances.randrange(len(cell.expected))
    iterator = iter(cell.pipeline())
    assert_equal(cell.outcomes(iterator, taken), cell.expected[:taken])
    cell.keep(iterator)
    faulthandler.dump_traceback_later(SECONDS, exit=True)  # until the interpreter has ended


def forks(cell: Cell) -> None:
    """A fork while an iterator is open: the child's copy raises an error, the parent's continues."""
    taken = cell.chances.randrange(1, len(cell.expected) - 1)
    with nothing_left():
        iterator = iter(cell.pipeline())
        found = cell.outcomes(iterator, taken)
        for end in (_refuse, _close, _drop_and_exit):
            holder = [iterator]
            child = fork(partial(end, holder))
            with within():
                assert exit_code_of(child) == 0, f"{end.__name__} in the child"
            del holder
        found += cell.outcomes(iterator)
        assert_equal(found, cell.expected)
        del iterator
    if cell.row.writes:
        assert_like_an_undisturbed_run(cell)


def _refuse(holder: list[Any]) -> None:
    iterator = holder[0]
    for use in (lambda: next(iterator), iterator.state_dict, lambda: list(iterator)):
        error = has_closed(use)
        assert error is not None, "the child has used the parent's iterator"
        assert "parent" in str(error), error


def _close(holder: list[Any]) -> None:
    for _ in range(2):
        holder[0].close()


def _drop_and_exit(holder: list[Any]) -> None:
    holder.clear()
    gc.collect()
    atexit._run_exitfuncs()


def forks_in_function(cell: Cell) -> None:
    """The function forks a child that exits, while save() writes."""
    with nothing_left():
        cell.set_fault("fork", cell.value())
        assert_equal(cell.outcomes(iter(cell.pipeline())), cell.expected)
    assert_like_an_undisturbed_run(cell)


def forks_workers(cell: Cell) -> None:
    """A DataLoader forks its workers while an iterator of the same dataset is open."""
    pipeline = cell.pipeline()
    mine = iter(pipeline.dataset)
    with nothing_left():
        found = cell.outcomes(mine, 5)
        assert_equal(cell.outcomes(iter(pipeline)), cell.expected)
        assert_equal(found + cell.outcomes(mine), cell.expected)


def shared_by_threads(cell: Cell) -> None:
    """Two threads share an iterator: each element goes to one of them."""
    barrier = threading.Barrier(2)

    def consume(iterator: Any) -> list[Outcome]:
        barrier.wait(SECONDS)
        return [cell.group(element) for element in iterator]

    with nothing_left():
        iterator = iter(cell.pipeline())
        results = [in_background(partial(consume, iterator)) for _ in range(2)]
        found = [result() for result in results]
        del iterator
    for part in found:
        assert_in_order(cell, part)
    assert_equal(sorted(itertools.chain(*found)), sorted(cell.expected))
    if cell.row.writes:
        assert_like_an_undisturbed_run(cell)


# Disks


def disk_is_full(cell: Cell) -> None:
    """There is disk space for only a part of the files."""
    earlier = not cell.row.is_iterator  # save() replaces what was saved before, or leaves it
    for limited, rooms in _limits(cell):
        for room in rooms:
            restart(cell)
            if earlier and limited is limited_size:
                cell.complete_run()
            with nothing_left():
                with limited(cell, room):
                    found = cell.outcomes(iter(cell.pipeline()))
                    errors = [outcome for outcome in found if isinstance(outcome, Raised)]
                    _assert_disk_error(cell, found, errors)
                    if errors and (limited is not limited_size or not earlier):
                        assert_nothing_kept(cell)
                if earlier and limited is limited_size:
                    assert_equal(cell.outcomes(iter(Dataset.load(str(cell.folder / "out")))), cell.expected)
            if not errors:
                break
        else:
            assert not cell.is_thorough, f"no run was successful with {limited.__name__}"
    second_run(cell)


def _assert_disk_error(cell: Cell, found: list[Outcome], errors: list[Any]) -> None:
    if cell.row.is_iterator:  # the elements are returned nevertheless
        assert_equal([outcome for outcome in found if outcome not in errors], cell.expected)
    else:
        assert_equal(found, errors or cell.expected)
    assert len(errors) <= 1, show(found)
    assert all(issubclass(error.type, OSError) for error in errors), show(found)


def _limits(cell: Cell) -> list[tuple[Any, Any]]:
    """Return how the space is limited, and the limit: in bytes of each file, or in pages in total."""
    sizes, pages = (
        places if cell.is_thorough else sorted(cell.chances.sample(places, SAMPLE))
        for places in (range(0, 1200, 8), range(1, 12))
    )
    return [(limited_size, sizes), *([(small_disk, pages)] if disks.can_mount() else [])]


@contextmanager
def limited_size(cell: Cell, room: int) -> Iterator[None]:
    """Limit each file to ``room`` bytes: a write fails as on a full disk, but with EFBIG."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def small_disk(cell: Cell, room: int) -> Iterator[None]:
    """Make the folder a disk of ``room`` pages that only this process sees."""
    out = cell.folder / "out"
    out.mkdir()
    assert disks.mount(out, room * resource.getpagesize())
    try:
        yield
    finally:
        disks.unmount(out)


def killed_while_writing(cell: Cell) -> None:
    """The program is killed at any call of a function, of the library or of Python, while it writes files."""
    if cell.chances.random() < 0.5 and not cell.row.is_iterator:
        cell.complete_run()
    calls = itertools.count()
    undisturbed = Cell(cell.row, cell.folder / "undisturbed", cell.chances)
    undisturbed.folder.mkdir()
    with profiled(lambda: next(calls)):
        list(undisturbed.pipeline())
    remaining = itertools.count(cell.chances.randrange(next(calls)), -1)

    def kill_at_the_last() -> None:
        if not next(remaining):
            os.kill(os.getpid(), signal.SIGKILL)

    with profiled(kill_at_the_last):
        while True:
            list(cell.pipeline())


@contextmanager
def profiled(at_call: Callable[[], object]) -> Iterator[None]:
    """Call ``at_call`` whenever this thread calls a function inside the block."""

    def profile(frame: Any, event: str, argument: Any) -> None:
        if event in {"call", "c_call"}:
            at_call()

    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)
