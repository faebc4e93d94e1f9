"""Tests that every way of ending leaves no worker process, zombie, descriptor or thread."""

import gc
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dataset import ClosedError, Dataset
from dataset.runtime.processes import WorkerProcesses
from dataset.testing import no_leaks
from support.process_helpers import (
    BIG,
    LABEL,
    WAIT,
    elementwise,
    exit_code_of,
    fork,
    has_ended,
    in_thread,
    members,
    numbers,
    plain,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def test_closing_before_anything_was_done_twice_and_after_stopping(start):
    with no_leaks():
        WorkerProcesses(elementwise(abs), 4, LABEL).close()
    processes = start(abs)
    processes.run(numbers(1), 0)
    with no_leaks():
        others = [in_thread(processes.close) for _ in range(3)]
        assert [other.result() for other in others] == [None] * 3
        processes.stop()
        processes.close()
    with pytest.raises(ClosedError, match=r"map\(f\)"):
        processes.run(numbers(1), 0)


@pytest.mark.parametrize("way", ["stop", "close"])
def test_ending_wakes_those_who_wait_for_workers(start, gate, way):
    def blocked(x):
        os.close(os.open(gate, os.O_WRONLY))
        signal.pause()

    processes = start(blocked, 1)
    busy = in_thread(lambda: processes.run(numbers(1), 0))
    os.close(os.open(gate, os.O_RDONLY))
    waiting = in_thread(lambda: processes.run(numbers(1), 0))  # there is no second worker
    getattr(processes, way)()
    assert isinstance(busy.result(), ClosedError)
    assert isinstance(waiting.result(), ClosedError)


def test_the_garbage_collector_may_stop_it_in_the_middle_of_anything(start):
    processes = start(abs)
    processes.run(numbers(1), 0)
    with processes._changed:
        processes.stop()  # as a finalizer that runs in this thread would
    with pytest.raises(ClosedError):
        processes.run(numbers(1), 0)


def test_stopping_while_workers_start(start):
    processes = start(abs, 2)
    others = [in_thread(lambda: processes.run(numbers(1), 0)) for _ in range(2)]
    processes.stop()
    assert all(isinstance(other.result(), ClosedError | list) for other in others)
    processes.close()
    assert not processes._running


@pytest.mark.usefixtures("no_collector")
def test_dropping_it_ends_it_at_once_and_in_a_cycle_when_it_is_collected(start):
    family = os.environ["DATASET_TEST_FAMILY"]
    processes = WorkerProcesses(elementwise(abs), 1, LABEL)
    processes.run(numbers(1), 0)
    assert members(family)
    del processes
    assert not members(family)
    with no_leaks():
        processes = WorkerProcesses(elementwise(abs), 1, LABEL)
        processes.run(numbers(1), 0)
        holder = [processes]
        holder.append(holder)
        del processes, holder


def test_a_forked_child_leaves_the_processes_alone(start):
    processes = start(lambda x: x + 1)
    processes.run(numbers(1), 0)

    def in_child():
        with pytest.raises(ClosedError, match="parent"):
            processes.run(numbers(1), 0)
        processes.stop()
        processes.close()
        processes.__del__()
        gc.collect()

    assert exit_code_of(fork(in_child)) == 0
    assert plain(processes.run(numbers(2), 0)) == [1, 2]


def test_shared_memory_has_no_name(start):
    def mapped():
        """Return the shared memory of this process; others, such as torch's workers, have other names in /dev/shm."""
        return {line.split(maxsplit=5)[-1] for line in Path("/proc/self/maps").read_text().splitlines()}

    before = mapped()
    held = start(lambda x: np.zeros(BIG)).run(numbers(2), 0)
    new = mapped() - before
    assert any(name.startswith("/memfd:dataset") for name in new)
    assert not any(name.startswith("/dev/shm/") for name in new)  # noqa: S108
    assert len(held) == 2


PROGRAM = """\
import os, signal, sys, threading
from dataset import ClosedError
from dataset.plan.structure import LEAF
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.processes import WorkerProcesses

def stay(inputs, position, context, started):
    started()  # first: a task that has not begun is given to another worker
    print(os.getpid(), flush=True)
    signal.pause()

def run():
    try:
        return processes.run(Chunk(LEAF, 1, rows=[5]), 0)
    except ClosedError:
        pass

processes = WorkerProcesses(stay, 2, "map(stay) from program.py:1")
print(processes._group._launcher._process.pid, flush=True)
thread = threading.Thread(target=lambda: print(run()), daemon=True)
thread.start()
"""


def staying(tmp_path, ending):
    """Start a program whose worker never returns; return it with the process ids of the launcher and the worker."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM + ending)
    command = [sys.executable, "-X", "dev", "-W", "error", path]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = subprocess.Popen(command, **pipes, text=True, start_new_session=True)
    return process, [int(process.stdout.readline()) for _ in range(2)]


@pytest.mark.parametrize("way", ["exit", "kill"])
def test_the_end_of_the_parent_in_the_middle_of_work_ends_the_workers(tmp_path, way):
    process, pids = staying(tmp_path, "sys.stdin.readline()")
    if way == "kill":
        process.kill()
        assert all(map(has_ended, pids))
    _, errors = process.communicate("go on\n", timeout=WAIT)
    assert (process.returncode, errors) == ((0, "") if way == "exit" else (-signal.SIGKILL, ""))
    assert all(map(has_ended, pids))


def test_killing_the_launcher_ends_the_workers_and_is_an_error(tmp_path):
    process, (launcher, worker) = staying(tmp_path, "thread.join()")
    os.kill(launcher, signal.SIGKILL)
    output, _ = process.communicate(timeout=WAIT)
    assert "map(stay) from program.py:1: the process that starts the workers was killed by SIGKILL" in output
    assert has_ended(worker)


def test_an_interrupt_from_the_terminal_prints_one_traceback(tmp_path):
    process, pids = staying(tmp_path, "threading.Event().wait()")
    for pid in pids:
        ignored = re.search(r"SigIgn:\s*(\w+)", Path(f"/proc/{pid}/status").read_text()).group(1)
        assert int(ignored, 16) >> (signal.SIGINT - 1) & 1
        os.kill(pid, signal.SIGINT)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, errors = process.communicate(timeout=WAIT)
    assert errors.count("Traceback") == 1
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert all(map(has_ended, pids))


class Unloadable:
    def __reduce__(self):
        return __import__, ("a_module_that_is_absent",)

    def __call__(self, x):
        return int(str(x))  # or it would run on columns


def test_a_pool_that_cannot_start_ends_the_iteration_in_spite_of_ignore_errors():
    with no_leaks():
        dataset = Dataset.range(20).map(Unloadable(), num_parallel_calls=2, executor="process").ignore_errors()
        with iter(dataset) as iterator:
            with pytest.raises(ModuleNotFoundError, match="a_module_that_is_absent") as caught:
                list(iterator)
            assert any(note.endswith("the iteration cannot continue") for note in caught.value.__notes__)
            with pytest.raises(ClosedError, match="cannot continue"):
                next(iterator)
