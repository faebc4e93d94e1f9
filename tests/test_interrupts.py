"""Tests of Ctrl-C at any moment: it is raised once, and the pipeline continues, resumes and closes as without it.

``INTERRUPTS=500 pytest tests/test_interrupts.py`` interrupts each pipeline 500 times.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dataset import AUTOTUNE, ClosedError, Dataset
from dataset.testing import assert_elements_equal, no_leaks, outcomes
from dataset.world import interrupts
from support.interrupting import ENDINGS, AtMoment, AtRandom, RefusedError, collect, interrupt, watched
from support.overlap import Gate
from support.resume_cases import BY_PROCESSES, CASES
from support.seeds import rng
from support.states import rest_of

COUNT = int(os.environ.get("INTERRUPTS", "1"))
SECONDS_MAX = 60.0

TRIED = [name for name, chain in CASES.items() if chain.is_repeatable or chain.by_chance]
CANNOT_BE_SAVED = {"window: itself"}
"""Elements that are datasets: taking a state while one is being returned raises an error."""


@pytest.fixture(autouse=True)
def _handler_is_given_back():
    gc.collect()  # iterators left over from other tests
    callbacks, gc.callbacks[:] = gc.callbacks[:], []  # Hypothesis has one; an interrupt that is raised in it is lost
    former = signal.signal(signal.SIGINT, signal.default_int_handler)  # restored later
    others = set(interrupts.Finalizer.alive)
    yield
    if not others:
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, former)
    gc.callbacks[:] = callbacks


@pytest.mark.parametrize("name", TRIED)
def test_loses_nothing(name, built):
    make, chance = partial(built, CASES[name]), rng("interrupts", name)
    started = time.perf_counter()
    expected = outcomes(iter(make()))
    seconds = time.perf_counter() - started
    moments = moments_of(make)
    before = set(threading.enumerate())
    for number in range(COUNT):
        at_random = chance.random() < 0.25
        how = AtRandom(1.2 * seconds, chance) if at_random else AtMoment(chance.choice(chance.choice(moments)))
        ending = chance.choice(ENDINGS) if number == 0 else ENDINGS[number % len(ENDINGS)]
        check(make, how, ending, expected, not CASES[name].by_chance, name)
    left = [thread for thread in threading.enumerate() if thread not in before and thread.name.startswith("dataset-")]
    for thread in left:  # threads of iterators that were only dropped
        thread.join(SECONDS_MAX)
    assert not any(thread.is_alive() for thread in left)


def moments_of(make: Callable[[], Dataset[Any]]) -> list[list[int]]:
    """Return all moments of a run, and those at which the handler runs immediately."""
    counted, found, made = AtMoment(), list[Any](), make()
    with counted:
        iterator = iter(made)
        collect(iterator, found)
    iterator.close()
    return [list(range(counted.moments)), *([counted.interruptible] if counted.interruptible else [])]


def check(make: Any, how: Any, ending: str, expected: list[Any], in_order: bool, name: str) -> None:
    what = f"{how}, then {ending}"
    try:
        with watched(SECONDS_MAX):
            came_out, found = interrupt(make, how, ending)
        assert came_out == how.fired, f"{what}: the interrupt was swallowed"
        if ending == "close" and came_out:
            return
        if not in_order:
            found, expected = sorted(found, key=repr), sorted(expected, key=repr)
        assert_elements_equal(found, expected)
    except RefusedError:
        assert name in CANNOT_BE_SAVED, what
    except Exception as error:
        error.add_note(what)
        raise


@pytest.mark.parametrize("name", BY_PROCESSES)
def test_worker_processes_lose_nothing(name, built):
    make, chance = partial(built, BY_PROCESSES[name]), rng("interrupts", name)
    expected, moments = outcomes(iter(make())), moments_of(make)
    with no_leaks():
        for _ in range(max(1, COUNT // 50)):
            how = AtMoment(chance.choice(chance.choice(moments)))
            check(make, how, chance.choice(ENDINGS), expected, True, name)


def test_every_moment_of_a_parallel_map():
    """A pipeline whose threads start and stop continuously."""

    def make() -> Dataset[Any]:
        return Dataset.range(3).filter(lambda x: x >= 0).map(lambda x: x + 1, num_parallel_calls=2).prefetch(1)

    expected = outcomes(iter(make()))
    moments = moments_of(make)[0]
    with no_leaks():
        for number in moments[:: max(1, 600 // COUNT)]:
            check(make, AtMoment(number), ENDINGS[number % len(ENDINGS)], expected, True, "")


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.opened.set()


@contextmanager
def interrupted_once(called: threading.Event) -> Iterator[None]:
    """Send SIGINT to this thread when ``called`` is set and the thread sleeps, other than for the interpreter's lock.

    The block raises KeyboardInterrupt. CPython handles a signal that arrives just before a sleeping system call only
    after that call.
    """
    main = threading.get_ident()
    stat = Path(f"/proc/self/task/{threading.get_native_id()}/stat")

    def send() -> None:
        called.wait(SECONDS_MAX)
        asleep = 0
        while asleep < 30:
            asleep = asleep + 1 if stat.read_text().rpartition(")")[2].split()[0] == "S" else 0
            time.sleep(5e-3)
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=send)
    thread.start()
    with watched(SECONDS_MAX / 2), pytest.raises(KeyboardInterrupt):
        yield
    thread.join()


WAITS: dict[str, Callable[[Gate], Dataset[Any]]] = {
    "inline": lambda gate: Dataset.range(3).map(gate),
    "prefetch": lambda gate: Dataset.range(3).map(gate).prefetch(2),
    "map that starts": lambda gate: Dataset.range(3).map(gate, num_parallel_calls=AUTOTUNE),
    "map by threads": lambda gate: Dataset.range(3).map(gate, num_parallel_calls=2),
    "batch by threads": lambda gate: Dataset.range(3).map(gate).batch(2, num_parallel_calls=2).unbatch(),
    "interleave by threads": lambda gate: Dataset.range(3).interleave(
        lambda x: Dataset.from_tensors(x).map(gate), cycle_length=1, num_parallel_calls=2
    ),
}


linux_only = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the system does not show who sleeps")


@linux_only
@pytest.mark.parametrize("name", WAITS)
def test_a_wait_ends_at_once(name, gate):
    with no_leaks():
        iterator = iter(WAITS[name](gate))
        with interrupted_once(gate.entered):
            next(iterator)
        gate.opened.set()
        assert [int(x) for x in iterator] == [0, 1, 2]


@linux_only
def test_close_can_be_interrupted_while_it_waits(gate):
    with no_leaks():
        iterator = iter(Dataset.range(3).map(lambda x: x).prefetch(1).map(gate, num_parallel_calls=2).prefetch(1))
        with interrupted_once(gate.entered):
            next(iterator)
        closing = threading.Event()
        iterator._coordinator.register(closing, closing.set)
        with interrupted_once(closing):
            iterator.close()
        gate.opened.set()
        iterator.close()


def test_a_handler_that_does_not_raise_changes_nothing():
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda signum, frame: seen.append(signum))
    try:
        for number in range(0, 3000, 100):
            found: list[Any] = []
            how = AtMoment(number, signal.SIGUSR1)
            made = Dataset.range(5).map(lambda x: x).shuffle(3, seed=1).batch(2)
            with how:
                collect(iter(made), found)
            assert [len(batch) for batch in found] == [2, 2, 1]
            assert seen == [signal.SIGUSR1] * how.fired
            seen.clear()
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_handler_that_a_program_installs_later_stays():
    iterator = iter(Dataset.range(3))
    signal.signal(signal.SIGINT, lambda signum, frame: None)
    try:
        mine = signal.getsignal(signal.SIGINT)
        iterator.close()
        assert signal.getsignal(signal.SIGINT) is mine
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def test_an_iterator_that_was_interrupted_in_the_middle_says_so():
    """Interrupted by an exception that no handler of the library has seen."""
    iterator = iter(Dataset.range(50).map(lambda x: x).shuffle(5, seed=1).prefetch(2))
    state = iterator.state_dict()

    def stray(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code.co_name == "pull":
            signal.default_int_handler(signal.SIGINT, None)
        return stray

    sys.settrace(stray)
    try:
        with pytest.raises(KeyboardInterrupt):
            next(iterator)
    finally:
        sys.settrace(None)
    for ask in (lambda: next(iterator), iterator.state_dict, lambda: iterator.skip(1)):
        with pytest.raises(ClosedError, match="interrupted in the middle of a step"):
            ask()
    with watched(SECONDS_MAX):
        iterator.close()
    assert len(rest_of(Dataset.range(50).map(lambda x: x).shuffle(5, seed=1).prefetch(2), state)) == 50


def test_a_signal_while_an_iterator_is_dropped_is_not_lost():
    for number in range(0, 400, 7):
        iterator = iter(Dataset.range(5).map(lambda x: x, num_parallel_calls=2).prefetch(1))
        next(iterator)
        how, came_out = AtMoment(number), False
        try:
            with how:
                del iterator
        except KeyboardInterrupt:
            came_out = True
        assert came_out == how.fired, number
    iter(Dataset.range(1)).close()


def test_condition_that_is_interrupted_passes_on_that_it_was_told(monkeypatch):
    """Otherwise another thread would wait forever."""
    condition = interrupts.Condition(threading.RLock())
    told: list[bool] = []
    first_waits = threading.Event()

    def told_and_interrupted(waiter: Any, timeout: float) -> bool:
        waiter.acquire(True, timeout)
        raise KeyboardInterrupt

    def wait_and_fail() -> None:
        with condition, pytest.raises(KeyboardInterrupt):
            first_waits.set()
            condition.wait()

    def wait() -> None:
        with condition:
            told.append(condition.wait(SECONDS_MAX))

    monkeypatch.setattr(interrupts, "_acquire", told_and_interrupted)
    first, second = threading.Thread(target=wait_and_fail), threading.Thread(target=wait)
    first.start()
    first_waits.wait(SECONDS_MAX)
    with condition:  # it waits now and has released the lock
        monkeypatch.undo()
    second.start()
    while True:
        with condition:
            if len(condition._waiters) == 2:  # there is no other way to detect that both wait
                condition.notify()
                break
    first.join(SECONDS_MAX)
    second.join(SECONDS_MAX)
    assert told == [True]


def test_skip_can_be_interrupted():
    called = threading.Event()
    dataset = Dataset.range(10**9).filter(lambda x: bool(called.set() or x >= 0))
    iterator = iter(dataset)
    main = threading.get_ident()
    sender = threading.Thread(target=lambda: (called.wait(), signal.pthread_kill(main, signal.SIGINT)))
    sender.start()
    with watched(SECONDS_MAX), pytest.raises(KeyboardInterrupt):
        iterator.skip(10**9)
    sender.join()
    state = iterator.state_dict()
    following = next(iterator)
    iterator.close()
    with iter(dataset) as other:
        other.load_state_dict(state)
        assert next(other) == following
