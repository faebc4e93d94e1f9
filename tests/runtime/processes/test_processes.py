"""Tests of worker processes: what they return, what they reject, and how they die."""

import ctypes
import os
import re
import signal
import sys
import threading
import types
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from dataset import Dataset, WorkerDiedError
from dataset.plan.structure import LEAF
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.processes import WorkerProcesses, bootstrap, worker_processes
from dataset.runtime.processes.transport import encoding
from dataset.testing import no_leaks
from support.process_helpers import LABEL, elementwise, exit_code_of, fork, in_thread, numbers, one, plain

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def test_results_and_exceptions_come_back_in_their_places_and_show_where_in_the_worker_they_came_from(start):
    def inner():
        raise KeyError("two")

    def half(x):
        if x == 2:
            try:
                inner()
            except KeyError as error:
                error.add_note("a note of the user's")
                raise
        return x / 2

    outcomes = start(half).run(numbers(4), 0)
    assert plain(outcomes) == [0.0, 0.5, KeyError, 1.5]
    assert str(outcomes[2]) == "'two'"
    first, *others = outcomes[2].__notes__
    assert first == "a note of the user's"
    assert "a note of the user's" not in "\n".join(others)
    assert "in inner\n" in "\n".join(others)
    assert "test_processes.py" in "\n".join(others)


@pytest.mark.parametrize("reduce", [None, Exception.__reduce__], ids=["pickled", "unpickled"])
def test_an_exception_that_cannot_be_sent_becomes_a_runtime_error_with_its_text(start, reduce):
    class StubbornError(Exception):
        def __init__(self, one, two):
            super().__init__(f"{one} and {two}")

        __reduce__ = reduce

    def fail(x):
        raise StubbornError(1, 2)

    [error] = start(fail).run(numbers(1), 0)
    assert type(error) is RuntimeError
    assert "StubbornError: 1 and 2" in str(error)
    assert "in fail" in error.__notes__[-1]


def test_processes_that_were_started_ahead_do_the_work(start):
    processes = start(lambda x: os.getpid(), count=2)
    for _ in range(3):  # the third finds both in use
        processes.start()
    ahead = set(processes._idle)
    assert len(ahead) == 2
    [outcome] = processes.run(one(0), 0)
    assert set(processes._idle) == ahead
    assert outcome.rows() != [os.getpid()]


def test_classes_defined_in_a_function_are_the_same_on_both_sides(start):
    class Point(NamedTuple):
        x: int
        y: int

    def mirror(point):
        assert type(point) is Point
        return Point(point.y, point.x)

    processes = start(mirror)
    for _ in range(2):
        [outcome] = processes.run(one(Point(1, 2)), 0)
        assert outcome.rows() == [Point(2, 1)]
        assert type(outcome.rows()[0]) is Point


class OneWay:
    """An object that can be pickled, but not unpickled in the process with its id."""

    def __init__(self, pid):
        self.pid = pid

    def __reduce__(self):
        return _arrive, (self.pid,)


def _arrive(pid):
    if pid in (0, os.getpid()):
        raise ValueError("not here")
    return OneWay(pid)


@pytest.mark.parametrize(
    ("make", "words"),
    [(lambda parent: threading.Lock(), "cannot be sent from a worker process: .*lock"), (OneWay, "not here")],
)
def test_a_result_that_cannot_be_sent_or_read_fails_alone(start, make, words):
    parent = os.getpid()
    outcomes = start(lambda x: make(parent) if x == 1 else x).run(numbers(3), 0)
    assert plain(outcomes) == [0, TypeError, 2]
    assert re.search(words, str(outcomes[1]))


@pytest.mark.parametrize(("bad", "words"), [(threading.Lock(), "lock"), (OneWay(0), "not here")])
def test_an_element_that_cannot_be_sent_or_read_fails_alone(start, bad, words):
    outcomes = start(lambda x: x).run(Chunk(LEAF, 3, rows=[0, bad, 2]), 0)
    assert plain(outcomes) == [0, TypeError, 2]
    assert words in str(outcomes[1])


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_what_is_no_exception_is_raised_by_run_and_the_worker_goes_on(start, kind):
    def work(inputs, position, context, started):
        if position == 0:
            raise kind(3)
        return [inputs]

    processes = start(None, work=work)
    with pytest.raises(kind):
        processes.run(numbers(1), 0)
    assert plain(processes.run(numbers(2), 1)) == [0, 1]


def test_several_threads_keep_as_many_workers_busy_and_those_draw_different_random_numbers(start, gate):
    def meet(x):  # neither call returns before the other one has started
        os.close(os.open(gate, os.O_WRONLY if x else os.O_RDONLY))
        return os.getpid(), np.random.random()

    processes = start(meet, 2)
    other = in_thread(lambda: processes.run(numbers(1), 0))
    [mine], [theirs] = plain(processes.run(numbers(1, 1), 1)), plain(other.result())
    assert mine[0] != theirs[0]
    assert mine[1] != theirs[1]


def test_no_more_workers_are_started_than_are_needed_and_more_threads_wait_for_their_turn(start):
    processes = start(lambda x: os.getpid(), 2)
    assert len({plain(processes.run(numbers(1), 0))[0] for _ in range(5)}) == 1
    others = [in_thread(lambda: processes.run(numbers(3), 0)) for _ in range(6)]
    assert all(len(plain(other.result())) == 3 for other in others)
    assert len(processes._group.workers) <= 2


def test_libraries_in_workers_use_one_thread_unless_the_user_says_otherwise(start, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert plain(start(lambda x: os.environ["OMP_NUM_THREADS"]).run(numbers(1), 0)) == ["1"]
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert plain(start(lambda x: os.environ["OMP_NUM_THREADS"]).run(numbers(1), 0)) == ["3"]


def test_modules_and_arguments_are_those_of_the_parent(start, tmp_path, monkeypatch):
    (tmp_path / "only_here.py").write_text("value = 17")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "argv", ["train.py", "--fast"])

    def look(x):
        import only_here

        return (only_here.value, " ".join(sys.argv), str(Path.cwd()))

    assert plain(start(look).run(numbers(1), 0)) == [(17, "train.py --fast", str(Path.cwd()))]


def test_the_whole_library_is_there_for_a_function_and_not_imported_for_others(start):
    def look(x):
        before = "dataset.ops.zip" in sys.modules
        import dataset
        from dataset import Dataset, io

        return (before, [int(y) for y in dataset.Dataset.range(3)], "Dataset" in dir(dataset), Dataset, io.__name__)

    def look_from(x):
        from dataset import Dataset

        return Dataset.__name__

    assert plain(start(look).run(numbers(1), 0)) == [(False, [0, 1, 2], True, Dataset, "dataset.io")]
    assert plain(start(look_from).run(numbers(1), 0)) == ["Dataset"]


def test_a_function_that_cannot_be_sent_is_refused_at_once():
    lock = threading.Lock()
    with no_leaks(), pytest.raises(TypeError, match=r"map\(f\) from train.py:41: the function .* lock"):
        WorkerProcesses(elementwise(lambda x: lock), 1, LABEL)


def test_without_cloudpickle_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    encoding._by_value.cache_clear()
    with no_leaks(), pytest.raises(ImportError, match=r"pip install \"dataset-combinators\[process\]\""):
        WorkerProcesses(elementwise(abs), 1, LABEL)


def test_other_systems_are_told_to_use_threads(monkeypatch):
    monkeypatch.setattr(worker_processes, "os", types.SimpleNamespace(name="nt"))
    with no_leaks(), pytest.raises(NotImplementedError, match='executor="thread"'):
        WorkerProcesses(elementwise(abs), 1, LABEL)


class _Loads:
    """An object that calls a function when it is unpickled."""

    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call

    def __call__(self, *args):
        raise AssertionError


@pytest.mark.parametrize(
    ("load", "error", "words"),
    [
        (_Loads(__import__, "no_such_module"), ModuleNotFoundError, "no_such_module"),
        (_Loads(os._exit, 7), WorkerDiedError, "exit code 7 while it loaded the function"),
    ],
)
def test_a_function_that_cannot_be_loaded_says_why_and_is_not_tried_for_ever(start, load, error, words):
    processes = start(None, work=load)
    for _ in range(2):
        with pytest.raises(error, match=words) as caught:
            processes.run(numbers(1), 0)
        if error is WorkerDiedError:
            assert caught.value.exit_code == 7
        else:
            assert LABEL in "\n".join(caught.value.__notes__)
    assert processes._group.started == 1


def test_a_launcher_that_cannot_start_is_an_error_with_the_reason(start, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", "/bin/false")
        with pytest.raises(WorkerDiedError, match=r"map\(f\) .* starts the workers ended with exit code 1"):
            start(abs).run(numbers(1), 0)
    monkeypatch.setattr(bootstrap, "_CODE", bootstrap._CODE.replace("(module)", "('no_such_library')"))
    with pytest.raises(WorkerDiedError, match="ModuleNotFoundError: No module named 'no_such_library'"):
        start(abs).run(numbers(1), 0)


DEATHS = {
    "exit": (lambda: os._exit(3), 3, "ended with exit code 3 while it worked on element 12"),
    "killed": (lambda: os.kill(os.getpid(), signal.SIGKILL), -9, "killed by SIGKILL .* out of memory"),
    "crash": (lambda: ctypes.string_at(0), -11, "killed by SIGSEGV .* native code"),
}


@pytest.mark.parametrize(("die", "code", "words"), DEATHS.values(), ids=list(DEATHS))
def test_the_element_that_kills_a_worker_gets_the_error_and_the_others_are_done(start, die, code, words):
    def function(x):
        if x == 2:
            die()
        return x

    processes = start(function)
    outcomes = processes.run(numbers(5), 10)
    assert plain(outcomes) == [0, 1, WorkerDiedError, 3, 4]
    error = outcomes[2]
    assert error.exit_code == code
    assert str(error).startswith(LABEL)
    assert re.search(words, str(error))
    assert plain(processes.run(numbers(2), 0)) == [0, 1]


def test_every_element_may_kill_its_worker_and_an_idle_worker_that_was_killed_is_replaced(start):
    processes = start(lambda x: os._exit(1) if x else os.getpid(), 2)
    assert plain(processes.run(numbers(3, 1), 0)) == [WorkerDiedError] * 3
    [pid] = plain(processes.run(numbers(1), 0))
    os.kill(pid, signal.SIGKILL)
    [other] = plain(processes.run(numbers(1), 0))
    assert isinstance(other, int)
    assert other != pid


def test_work_that_dies_before_its_first_element_is_an_error_and_not_tried_for_ever(start):
    processes = start(None, work=lambda inputs, position, context, started: os._exit(5))
    with pytest.raises(WorkerDiedError, match="exit code 5 before it started element 8"):
        processes.run(numbers(3), 8)
    assert processes._group.started == 2


def test_a_process_that_a_worker_has_forked_does_not_hide_its_death(start):
    def function(x):
        if os.fork():
            os._exit(4)
        signal.pause()

    assert plain(start(function).run(numbers(1), 0)) == [WorkerDiedError]


def test_a_death_is_seen_though_the_parent_has_forked(start, gate):
    def function(x):
        if x:
            os.close(os.open(gate, os.O_RDONLY))
            os._exit(4)

    processes = start(function)
    processes.run(numbers(1), 0)
    ours, theirs = os.pipe()
    child = fork(lambda: os.read(ours, 1))
    waiting = in_thread(lambda: processes.run(numbers(1, 1), 1))
    os.close(os.open(gate, os.O_WRONLY))
    assert plain(waiting.result()) == [WorkerDiedError]
    os.write(theirs, b"x")
    assert exit_code_of(child) == 0
    os.close(ours)
    os.close(theirs)


# Other systems


def test_workers_that_are_fresh_interpreters_do_the_same(start, monkeypatch):
    """As on macOS, where system libraries do not survive a fork."""
    afresh = "sys.modules[module]._STARTS_AFRESH = True; main("
    monkeypatch.setattr(bootstrap, "_CODE", bootstrap._CODE.replace("main(", afresh))
    processes = start(lambda x: os._exit(3) if x == 1 else " ".join(sys.argv))
    assert plain(processes.run(numbers(3), 0)) == [" ".join(sys.argv), WorkerDiedError, " ".join(sys.argv)]


def test_memory_without_memfd_is_a_file_without_a_name(start, monkeypatch):
    monkeypatch.delattr(os, "memfd_create")
    [outcome] = start(lambda x: x + 1).run(one(np.zeros(100_000)), 0)
    assert outcome.rows()[0].sum() == 100_000
