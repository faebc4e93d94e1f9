"""Tests that worker processes are kept between the iterations of a dataset, and end with it."""

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
from support.process_helpers import exit_code_of, fork, has_ended, members

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


def test_other_datasets_and_iterations_at_the_same_time_have_processes_of_their_own(family):
    dataset = pids()
    assert kept_pid(dataset) != kept_pid(pids())
    with iter(dataset) as ours, iter(dataset) as theirs:
        assert next(ours) != next(theirs)
    assert kept_pid(dataset) in members(family)


@pytest.mark.usefixtures("no_collector")
def test_dropping_the_dataset_ends_them_at_once(family):
    dataset = pids(10).batch(2).prefetch(1)
    listed(dataset.unbatch())
    assert members(family)
    del dataset
    assert not members(family)
    for _ in pids(3):  # a dataset without other references
        pass
    assert not members(family)


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
    monkeypatch.setattr(resting_groups, "GROUPS_MAX", 2)
    datasets = [pids() for _ in range(3)]
    rested = [kept_pid(dataset) for dataset in datasets]
    assert has_ended(rested[0])
    assert set(rested[1:]) < set(members(family))


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


@pytest.mark.parametrize("which", ["worker", "launcher"])
def test_one_that_was_killed_while_it_rested_is_replaced(family, which):
    dataset = Dataset.range(1).map(lambda x: (os.getpid(), os.getppid()), num_parallel_calls=1, executor="process")
    [(worker, launcher)] = dataset
    os.kill(int(worker if which == "worker" else launcher), signal.SIGKILL)
    if which == "launcher":
        assert has_ended(int(worker))
    [(other_worker, other_launcher)] = dataset
    assert other_worker != worker
    assert (other_launcher == launcher) == (which == "worker")


def test_a_forked_child_uses_none_of_the_parents_and_leaves_them_alone(family):
    holder = [pids()]
    before = kept_pid(holder[0])

    def in_child():
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
