"""Tests of distribute() with workers that die, hang or raise: every element still comes once and in its place."""

import os
import signal
import tempfile
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset import Dataset, WorkerDiedError
from dataset.ops.distribute import engine
from dataset.runtime.processes import launcher, resting_groups
from dataset.testing import no_leaks
from support.distribute_cases import Faulty, check_case, draw_case, outcomes
from support.process_helpers import has_ended
from support.states import rest_of, state_after

SIZE = 30


@pytest.fixture(autouse=True)
def _short_deadline(monkeypatch):
    monkeypatch.setattr(engine, "HEARTBEAT_SECONDS", 2.0)
    yield
    resting_groups.end_resting()


@settings(max_examples=8)
@given(st.integers(0, 2**32))
def test_the_stream_is_that_of_the_pipeline_without_faults(seed):
    """``python -c`` with ``check_case(draw_case(seed), folder)`` repeats an example."""
    with tempfile.TemporaryDirectory() as folder, no_leaks():
        check_case(draw_case(seed, ("kill", "exit", "raise")), folder)
        resting_groups.end_resting()


@pytest.mark.parametrize("kind", ["kill", "stop", "exit"])
def test_a_worker_that_is_lost_is_replaced(kind, tmp_path):
    with no_leaks():
        iterator = iter(Dataset.range(SIZE).map(Faulty({7: kind}, str(tmp_path))).distribute(2))
        assert outcomes(iterator) == list(range(SIZE))
        assert [worker.restarts for worker in iterator.stats().operators[0].workers] == [0, 1]


def test_a_worker_that_dies_while_no_element_is_requested_is_replaced():
    iterator = iter(Dataset.range(100_000).map(lambda x: os.getpid()).distribute(1))
    first = next(iterator)
    os.kill(int(first), signal.SIGKILL)
    while (pid := next(iterator)) == first:
        pass
    assert pid != first


def test_an_exception_has_its_place_and_the_traceback_of_the_worker(tmp_path):
    iterator = iter(Dataset.range(6).map(Faulty({3: "raise"}, str(tmp_path))).distribute(2))
    assert outcomes(iterator, 3) == [0, 1, 2]
    with pytest.raises(ValueError, match="element 3") as caught:
        next(iterator)
    notes = caught.value.__notes__
    assert any("In the worker process:" in note and "__call__" in note for note in notes)
    assert notes[-1].startswith("in distribute(2) ")
    assert notes[-1].endswith(", element 3")
    assert outcomes(iterator) == [4, 5]


INTERRUPTED = {
    "map": lambda numbers: numbers,
    "parallel map": lambda numbers: numbers.map(lambda x: x + 1, num_parallel_calls=2).map(lambda x: x - 1),
    "batch": lambda numbers: numbers.batch(4),
    "prefetch": lambda numbers: numbers.filter(lambda x: True).prefetch(3),
    "shuffle": lambda numbers: numbers.filter(lambda x: True).shuffle(8, seed=1),
}


@pytest.mark.parametrize("interrupt", [SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("calls", [None, 2])
@pytest.mark.parametrize("build", INTERRUPTED.values(), ids=INTERRUPTED)
def test_an_interrupt_of_a_function_loses_and_moves_no_element(build, calls, interrupt, tmp_path):
    def numbers(faults):
        return build(Dataset.range(SIZE).map(Faulty(faults, str(tmp_path)), num_parallel_calls=calls))

    expected = outcomes(iter(numbers({})))
    iterator = iter(numbers(dict.fromkeys([0, 7, 8], interrupt)).distribute(2))
    found, interrupts = [], 0
    while len(found) < len(expected):
        try:
            found += outcomes(iterator, 1)
        except interrupt:
            interrupts += 1
            resumed = iter(numbers({}).distribute(2))
            resumed.load_state_dict(iterator.state_dict())
            assert found + outcomes(resumed) == expected
    assert found == expected
    assert 1 <= interrupts <= 3  # the share is computed again from there, and with it an interrupt that was read ahead


def deadly(x):
    if x == 5:
        os._exit(3)
    return x


def test_a_worker_that_keeps_dying_is_an_error_after_the_elements_before_it():
    with no_leaks():
        iterator = iter(Dataset.range(SIZE).map(deadly).distribute(2, max_restarts=1))
        assert outcomes(iterator, 5) == [0, 1, 2, 3, 4]
        with pytest.raises(
            WorkerDiedError, match=r"worker 1 of 2 ended with exit code 3 .*element 5.*1 times"
        ) as caught:
            next(iterator)
        assert caught.value.exit_code == 3
        with pytest.raises(Exception, match="cannot continue"):
            next(iterator)


def test_a_death_before_the_first_element_is_an_error_too():
    with pytest.raises(WorkerDiedError, match=r"worker 0 of 1 .* on element 0"):
        list(Dataset.range(3).map(lambda x: os._exit(1)).distribute(1, max_restarts=0))


def test_a_state_saved_after_a_death_is_exact(tmp_path):
    state = state_after(Dataset.range(SIZE).map(Faulty({4: "kill"}, str(tmp_path))).distribute(3), 10)
    assert rest_of(Dataset.range(SIZE).map(Faulty({}, str(tmp_path))).distribute(2), state) == list(range(10, SIZE))


def test_the_launcher_may_die():
    iterator = iter(Dataset.range(2000).map(lambda x: (x, os.getppid())).distribute(2))
    number, launcher = next(iterator)
    os.kill(int(launcher), signal.SIGKILL)
    assert [int(number), *(int(x) for x, _ in iterator)] == list(range(2000))


@pytest.mark.parametrize("is_needed", [True, False])
def test_the_launcher_may_hang(is_needed, tmp_path, monkeypatch):
    """It is needed to replace a worker, and to end the processes."""
    monkeypatch.setattr(launcher, "_REPLY_SECONDS", 2.0)
    stopped = tmp_path / "stopped"
    fault = Faulty({40: "kill"} if is_needed else {}, str(tmp_path))

    def numbered(x):
        while x >= 30 and not stopped.exists():
            time.sleep(0.01)
        return fault(x), os.getppid()

    with no_leaks():
        iterator = iter(Dataset.range(60).map(numbered).distribute(2, max_restarts=20))
        number, process = next(iterator)
        os.kill(int(process), signal.SIGSTOP)
        stopped.touch()
        assert [int(number), *(int(x) for x, _ in iterator)] == list(range(60))
        iterator.close()
        resting_groups.end_resting()
        assert has_ended(int(process))
