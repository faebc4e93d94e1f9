"""Tests that worker processes rest between iterations, serve any pipeline, and end by themselves."""

import importlib
import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from dataset import Dataset
from dataset.runtime.processes import resting_groups
from dataset.testing import leaks, no_leaks
from support.process_helpers import WAIT, exit_code_of, fork, has_ended, members

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@pytest.fixture
def family(monkeypatch):
    """Set a mark in the environment of all processes; no process with it may remain at the end."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv("DATASET_TEST_FAMILY", mark)
    with no_leaks():
        yield mark
    assert all(map(has_ended, members(mark)))


def pids(count=1, **settings):
    """Return a dataset of the ids of the processes that compute its elements."""
    return Dataset.range(count).map(lambda x: os.getpid(), num_parallel_calls=1, executor="process", **settings)


def listed(dataset):
    return list(map(int, dataset))


def kept_pid(dataset):
    """Return the id of the only worker."""
    [pid] = set(listed(dataset))
    return pid


def test_the_first_iteration_starts_processes_and_later_ones_find_the_same(family):
    dataset = pids(3)
    assert not members(family)
    pid = kept_pid(dataset)
    assert kept_pid(dataset) == pid
    assert len(members(family)) == 2  # including the launcher
    [batch] = dataset.batch(3)  # a dataset that was made of it shares them
    assert batch.tolist() == [pid] * 3
    assert kept_pid(dataset.prefetch(2).repeat(2)) == pid


@pytest.mark.parametrize("operation", ["map", "distribute"])
def test_other_datasets_find_them_even_if_theirs_is_gone(operation, family):
    pid = kept_pid(pids())
    if operation == "map":
        assert kept_pid(pids()) == pid
    else:
        assert kept_pid(Dataset.range(1).map(lambda x: os.getpid()).distribute(1)) == pid
    assert kept_pid(pids(2).batch(2).unbatch().prefetch(1)) == pid
    assert len(members(family)) == 2


def test_operators_at_the_same_time_have_processes_of_their_own_and_later_ones_find_them_all(family):
    with iter(pids()) as ours, iter(pids()) as theirs:
        both = {int(next(ours)), int(next(theirs))}
    assert len(both) == 2
    for _ in range(2):
        chained = pids().map(lambda x: (x, os.getpid()), num_parallel_calls=1, executor="process")
        assert {int(pid) for element in chained for pid in element} == both


def test_each_iteration_sends_the_function_as_it_is_then(family):
    numbers = [1]

    def count(x):
        numbers.append(2)
        return len(numbers)

    dataset = Dataset.range(2).map(count, num_parallel_calls=1, executor="process")
    assert listed(dataset) == [2, 3]
    assert listed(dataset) == [2, 3]  # state in a worker is not kept
    numbers.append(2)
    assert listed(dataset) == [3, 4]


def test_a_resting_worker_has_forgotten_the_function(family, gate):
    parent = os.getpid()

    class Token:
        def __del__(self):
            if os.getpid() != parent:
                os.close(os.open(gate, os.O_WRONLY))

    token = Token()
    token.itself = token  # only the garbage collector frees it
    dataset = Dataset.range(2).map(lambda x: (token, x)[1], num_parallel_calls=1, executor="process")
    assert listed(dataset) == [0, 1]
    os.close(os.open(gate, os.O_RDONLY))  # waits for that
    assert listed(dataset) == [0, 1]
    os.close(os.open(gate, os.O_RDONLY))


CHANGES = {
    "environment": lambda patch, path: patch.setenv("DATASET_TEST_MORE", "1"),
    "arguments": lambda patch, path: patch.setattr(sys, "argv", ["other.py"]),
    "folder": lambda patch, path: patch.chdir(path),
    "modules": lambda patch, path: patch.syspath_prepend(path),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_processes_that_would_find_something_else_are_not_used_again(family, change, monkeypatch, tmp_path):
    dataset = pids()
    before = kept_pid(dataset)
    change(monkeypatch, tmp_path)
    assert resting_groups.resting_count() == 0
    assert kept_pid(dataset) != before
    assert has_ended(before)


def test_what_is_printed_goes_where_it_goes_now(family, tmp_path):
    said = "from the worker\n"
    dataset = Dataset.range(1).map(lambda x: sys.stdout.write(said), num_parallel_calls=1, executor="process")
    list(dataset)
    before = os.dup(1)
    try:
        with (tmp_path / "output").open("w") as file:
            os.dup2(file.fileno(), 1)
        list(dataset)
    finally:
        os.dup2(before, 1)
        os.close(before)
    assert (tmp_path / "output").read_text() == said


def test_they_end_when_they_have_rested_for_long_and_only_a_few_rest(family, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(resting_groups, "REST_SECONDS", 0.0)
        dataset = pids()
        before = kept_pid(dataset)
        assert has_ended(before)
        assert kept_pid(dataset) != before
    monkeypatch.setattr(resting_groups, "usable_cores", lambda: 0)  # room for four processes
    with iter(pids()) as first, iter(pids()) as second, iter(pids()) as third:
        rested = [int(next(iterator)) for iterator in (first, second, third)]
        first.close()
        second.close()
        third.close()
    assert has_ended(rested[0])
    assert set(rested[1:]) < set(members(family))
    assert len(members(family)) == 4


def test_processes_are_not_taken_after_a_module_was_reloaded(family, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "reloaded_steps.py"
    file.write_text("def step(x): return x + 1")
    import reloaded_steps

    def make():
        return Dataset.range(1).map(reloaded_steps.step, num_parallel_calls=1, executor="process")

    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert listed(make()) == [1]
    assert resting_groups.resting_count() == 1
    file.write_text("def step(x): return x + 100")
    importlib.invalidate_caches()
    importlib.reload(reloaded_steps)
    assert resting_groups.resting_count() == 0
    assert listed(make()) == [100]
    monkeypatch.delitem(sys.modules, "reloaded_steps")


def test_processes_that_a_worker_has_started_end_when_it_rests(family):
    def nested(x):
        [inner] = Dataset.range(1).map(lambda x: (os.getpid(), os.getppid()), executor="process", num_parallel_calls=1)
        return inner

    elements = list(Dataset.range(2).map(nested, num_parallel_calls=1, executor="process"))
    assert elements[0] == elements[1]
    assert all(has_ended(int(pid)) for pid in elements[0])
    assert len(members(family)) == 2


PROGRAM = """
import os, sys
from dataset import Dataset
dataset = Dataset.range(1).map(lambda x: (os.getpid(), os.getppid()), num_parallel_calls=1, executor="process")
print(*map(int, next(iter(dataset.batch(1).unbatch()))), flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("way", ["exit", "kill"])
def test_those_that_rest_end_with_the_program(family, way):
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", PROGRAM]
    process = subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-1, text=True)
    pids = list(map(int, process.stdout.readline().split()))
    assert len(pids) == 2
    if way == "kill":
        process.kill()
    _, errors = process.communicate("end\n" if way == "exit" else None, timeout=WAIT)
    assert (process.returncode, errors) == ((0, "") if way == "exit" else (-signal.SIGKILL, ""))
    assert all(map(has_ended, pids))


def test_an_iteration_that_is_left_ends_what_works_and_keeps_the_rest(family, gate):
    def start_another(x):
        if x:
            child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
            Path(gate).write_text(f"{os.getpid()} {child.pid}")
            signal.pause()
        return os.getppid()

    dataset = Dataset.range(2).map(start_another, num_parallel_calls=1, executor="process")
    with iter(dataset) as iterator:
        launcher = int(next(iterator))
        working = list(map(int, Path(gate).read_text().split()))
    assert all(map(has_ended, working))
    assert listed(dataset.take(1)) == [launcher]


@pytest.mark.parametrize("which", ["worker", "launcher", "worker of distribute"])
def test_one_that_was_killed_while_it_rested_is_replaced(family, which):
    if which == "worker of distribute":
        dataset = Dataset.range(1).map(lambda x: (os.getpid(), os.getppid())).distribute(1, max_restarts=0)
    else:
        dataset = Dataset.range(1).map(lambda x: (os.getpid(), os.getppid()), num_parallel_calls=1, executor="process")
    [(worker, launcher)] = dataset
    os.kill(int(launcher if which == "launcher" else worker), signal.SIGKILL)
    if which == "launcher":
        assert has_ended(int(worker))
    [(other_worker, other_launcher)] = dataset
    assert other_worker != worker
    assert (other_launcher == launcher) == (which != "launcher")


def test_a_forked_child_uses_none_of_the_parents_and_leaves_them_alone(family):
    holder = [pids()]
    before = kept_pid(holder[0])

    def in_child():
        assert resting_groups.resting_count() == 0
        other = kept_pid(holder[0])
        resting_groups.end_resting()
        return other != before

    assert exit_code_of(fork(in_child)) == 0
    assert exit_code_of(fork(holder.clear)) == 0
    assert kept_pid(holder[0]) == before


def test_no_leaks_ends_those_that_rest_and_finds_those_that_do_not(family, monkeypatch):
    dataset = pids(100)
    with no_leaks():
        pid = kept_pid(dataset)
    assert has_ended(pid)
    monkeypatch.setattr(leaks, "_JOIN_SECONDS", 0.1)
    with iter(dataset) as iterator, pytest.raises(AssertionError, match="still"), no_leaks():
        next(iterator)
