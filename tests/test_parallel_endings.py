"""Tests that endings of worker processes, exits and forks leave nothing, however busy the workers.

Other endings in one process are in test_endings.py.
"""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import uuid
from pathlib import Path

import pytest

from dataset import Dataset
from support import overlap
from support.overlap import block_for_ever, double, nothing_left

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


# Worker processes


def test_dropping_while_functions_in_worker_processes_are_blocked_for_ever():
    in_processes = {"num_parallel_calls": 2, "executor": "process"}
    list(Dataset.range(2).map(double, **in_processes))  # starts permanent helpers, such as a fork server
    with nothing_left():
        iterator = iter(Dataset.range(9).map(block_for_ever, **in_processes))
        assert next(iterator) == 0
        del iterator


# Separate programs


def run(code):
    """Run a program in a separate session; it must end, and leave no process and no shared memory."""
    mark = str(uuid.uuid4())
    before = overlap.shared_memory()
    path = os.pathsep.join([str(Path(overlap.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    program = subprocess.Popen(
        [sys.executable, "-W", "error", "-X", "faulthandler", "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": path, "DATASET_PROGRAM_MARK": mark},
    )
    try:
        output, errors = program.communicate(timeout=250)
    except subprocess.TimeoutExpired:
        pytest.fail("the program did not end")
    finally:
        left = overlap.remaining(lambda: overlap.processes_of(mark) | (overlap.shared_memory() - before))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        program.communicate()
    assert not left, f"left behind: {sorted(left)}"
    return program.returncode, output, errors


GENERATED = "Dataset.from_generator(lambda: map(block, range(9)))"
EXITS = {
    "a map without order": "Dataset.range(9).map(block, num_parallel_calls=2, deterministic=False)",
    "all": (
        f"{GENERATED}.map(double, num_parallel_calls=2).interleave(Dataset.from_tensors, 2, num_parallel_calls=2)"
        ".batch(1, num_parallel_calls=2).prefetch(2).unbatch()"
    ),
    "a generator below processes": f"{GENERATED}.map(double, num_parallel_calls=2, executor='process')",
    "processes": "Dataset.range(9).map(block_for_ever, num_parallel_calls=2, executor='process')",
}


@pytest.mark.parametrize(("pipeline", "blocked"), [*((name, "event") for name in EXITS), ("all", "busy")])
def test_the_interpreter_exits_while_user_code_is_blocked_for_ever(pipeline, blocked):
    """One iterator is still there, and another one was dropped."""
    program = f"""
        import threading
        from dataset import Dataset
        from support.overlap import be_impatient, block_for_ever, double
        def block(x):
            while x > 0:
                {"threading.Event().wait()" if blocked == "event" else "pass"}
            return x
        {"be_impatient()" if blocked == "event" else ""}
        dropped, it = (iter({EXITS[pipeline]}) for _ in range(2))
        print(next(dropped), next(it))
        del dropped
        print("done")
    """
    assert run(program) == (0, "0 0\ndone\n", "")


def test_the_interpreter_exits_with_busy_iterators_and_with_the_status_of_the_user():
    program = """
        from dataset import Dataset
        def make():
            numbers = Dataset.range(10**9).map(lambda x: x * 2, num_parallel_calls=2)
            return numbers.batch(10, num_parallel_calls=2).prefetch(100).prefetch(4)
        kept = [iter(make()) for _ in range(3)]
        for iterator in kept:
            next(iterator)
        for x in kept[0]:
            raise SystemExit(7)
    """
    assert run(program) == (7, "", "")


def test_the_interpreter_exits_while_an_iterator_outlives_the_modules_of_the_library():
    """Such as one in a module that torch keeps until the end."""
    program = """
        import builtins
        from dataset import Dataset
        builtins.kept = [iter(Dataset.range(100)), iter(Dataset.range(100).map(abs, num_parallel_calls=2).prefetch(2))]
        print(*map(next, builtins.kept))
    """
    assert run(program) == (0, "0 0\n", "")


@needs_fork
def test_many_forks_while_workers_are_busy_never_leave_a_lock_taken_in_the_child():
    program = """
        import os, signal
        from dataset import Dataset
        def make():
            return Dataset.range(2000).map(lambda x: x + 0, num_parallel_calls=3).prefetch(2)
        iterator = iter(make())
        assert next(iterator) == 0
        for _ in range(30):
            child = os.fork()
            if child == 0:
                signal.alarm(20)  # a child that hangs is killed
                os._exit([int(x) for x in make().take(20)] != list(range(20)))
            assert os.waitpid(child, 0)[1] == 0
        assert [int(x) for x in iterator] == list(range(1, 2000))
    """
    code, output, errors = run(program)
    assert (code, output) == (0, ""), errors


@needs_fork
def test_a_fork_while_another_thread_waits_for_an_element_does_not_hang_the_child():
    program = """
        import os, signal, threading
        from dataset import ClosedError, Dataset
        inside, gate = threading.Event(), threading.Event()
        def generate():
            inside.set()
            gate.wait(60)
            yield 1
        iterator = iter(Dataset.from_generator(generate))
        consumer = threading.Thread(target=lambda: next(iterator))
        consumer.start()
        inside.wait(60)  # the consumer holds the iterator's lock
        child = os.fork()
        if child == 0:
            signal.alarm(10)  # a child that hangs is killed
            code = 0
            for use in (lambda: next(iterator), iterator.state_dict):
                try:
                    use()
                    code = 1
                except ClosedError:
                    pass
            iterator.close()
            os._exit(code)
        _, status = os.waitpid(child, 0)
        gate.set()
        consumer.join()
        print(os.waitstatus_to_exitcode(status))
    """
    code, output, errors = run(program)
    assert (code, output) == (0, "0\n"), errors
