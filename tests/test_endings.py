"""Tests that every way of ending an iteration in this process leaves no thread, descriptor or reference.

Worker processes, and programs that exit or fork, are in test_parallel_endings.py.
"""

import contextlib
import gc
import re
import threading
import weakref
from functools import partial

import numpy as np
import pytest

from dataset import ClosedError, Dataset, vectorized
from dataset.testing import outcomes
from support.overlap import WAIT, Gate, Work, fail_at_two, nothing_left
from support.process_helpers import in_thread
from support.resume_cases import CASES

ENDING = 5  # seconds for threads that were told to end


def taken(dataset, count):
    """Return an iterator that has given elements; failures count."""
    iterator = iter(dataset)
    for _ in range(count):
        with contextlib.suppress(Exception):
            next(iterator)
    return iterator


BACKGROUND = [name for name, chain in CASES.items() if re.search(r"num_parallel|prefetch\(", str(chain))]
FAILURES = [name for name, chain in CASES.items() if "failing(" in str(chain)]


@pytest.mark.parametrize("name", BACKGROUND)
@pytest.mark.usefixtures("switch_interval")
def test_every_ending_leaves_nothing(name, built):
    make = partial(built, CASES[name])
    make()  # libraries imported for it keep files open
    with nothing_left():
        assert outcomes(iter(make()))
        for count in (0, 1, 4):
            iterator = taken(make(), count)
            iterator.close()
            iterator.close()
            with pytest.raises(ClosedError):
                next(iterator)
        with contextlib.suppress(KeyboardInterrupt, Exception):
            for _ in make():  # which may fail itself
                raise KeyboardInterrupt
        assert make().element_spec
        iterator = taken(make(), 1)
        state = iterator.state_dict()
        for _ in range(5):
            with contextlib.suppress(Exception):
                next(iterator)
            iterator.load_state_dict(state)
        iterator.close()


FAILING = {
    "inner function": lambda: Dataset.range(9).flat_map(lambda x: (fail_at_two(x), Dataset.range(2).prefetch(1))[1]),
    "structure": lambda: Dataset.range(9).map(lambda x: (x, x) if x == 2 else x).prefetch(4),
    "stacking": lambda: Dataset.range(9).map(lambda x: [0] * int(x)).batch(2, num_parallel_calls=2).prefetch(2),
    "vectorized": lambda: Dataset.range(9).map(vectorized(lambda x: x if max(x) < 2 else fail_at_two(2))).prefetch(3),
    "parallel map without order": lambda: Dataset.range(9).map(fail_at_two, 3, deterministic=False),
}
"""Failures that no case has."""


@contextlib.contextmanager
def threads_end():
    before = set(threading.enumerate())
    yield
    started = set(threading.enumerate()) - before
    for thread in started:
        thread.join(ENDING)
    assert not any(thread.is_alive() for thread in started)


@pytest.mark.parametrize("name", [*sorted({*BACKGROUND, *FAILURES}), *FAILING])
@pytest.mark.usefixtures("no_collector", "switch_interval")
def test_dropping_the_last_reference_without_the_garbage_collector(name, built):
    """Also after failures, whose tracebacks refer to frames."""
    for count in (0, 4, 40):
        with threads_end():
            iterator = taken(FAILING[name]() if name in FAILING else built(CASES[name]), count)
            gone = weakref.ref(iterator)
            del iterator
            assert gone() is None


# Failing


@pytest.mark.usefixtures("no_collector")
def test_an_exception_that_is_kept_keeps_no_thread_once_it_is_let_go():
    with threads_end():
        iterator = iter(Dataset.range(9).map(fail_at_two).skip(2).prefetch(4))
        with pytest.raises(ValueError, match="failed") as kept:
            next(iterator)
        del iterator
        assert str(kept.value) == "failed"
        del kept


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("how", [{}, {"num_parallel_calls": 3}, {"num_parallel_calls": 3, "deterministic": False}])
def test_an_interrupt_in_a_function_comes_out(error, how):
    def interrupt(x):
        if x == 3:
            raise error
        return x

    with nothing_left(), pytest.raises(error):
        list(Dataset.range(50).map(interrupt, **how).batch(2).prefetch(1))


@pytest.mark.parametrize("threads", [0, 1, 2, 3])
def test_where_the_system_gives_no_more_threads_it_works_with_those_there_are_or_says_so(monkeypatch, threads):
    start, started, lock = threading.Thread.start, [], threading.Lock()

    def limited(thread):
        with lock:
            if thread.name.startswith("dataset-") and len(started) >= threads:
                raise RuntimeError("can't start new thread")
            started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    dataset = Dataset.range(30).map(Work((0.001,)), num_parallel_calls=4).batch(5)
    with nothing_left(), iter(dataset) as iterator:
        try:
            found = list(iterator)
        except RuntimeError as error:
            assert "thread" in str(error)  # noqa: PT017  # both are correct
        else:
            assert np.concatenate(found).tolist() == list(range(30))


# Blocked


BLOCKED = {
    "map": lambda gate: Dataset.range(9).map(gate, num_parallel_calls=2),
    "interleave": lambda gate: Dataset.range(9).interleave(
        lambda x: Dataset.range(x, 9, 3).map(gate), 3, num_parallel_calls=3
    ),
    "a generator below a prefetch": lambda gate: Dataset.from_generator(lambda: map(gate, range(9))).prefetch(1),
    "a generator below an interleave": lambda gate: Dataset.from_generator(lambda: map(gate, range(9))).interleave(
        Dataset.from_tensors, 2, num_parallel_calls=2
    ),
    "all of them": lambda gate: (
        Dataset.range(9)
        .interleave(lambda x: Dataset.from_tensors(x).map(gate, num_parallel_calls=2), 2, num_parallel_calls=2)
        .batch(1, num_parallel_calls=2)
        .prefetch(1)
        .unbatch()
    ),
}


each_blocked = pytest.mark.parametrize("make", list(BLOCKED.values()), ids=list(BLOCKED))


@each_blocked
@pytest.mark.usefixtures("no_collector")
def test_dropping_it_while_user_code_is_blocked_comes_back_at_once(make):
    gate = Gate(1)
    with threads_end():
        iterator = iter(make(gate))
        assert next(iterator) == 0
        assert gate.entered.wait(WAIT)
        gone = weakref.ref(iterator)
        del iterator
        assert gone() is None
        gate.opened.set()


def test_a_generator_is_closed_by_the_thread_that_ends_last():
    gate, inside, closed = threading.Event(), threading.Event(), threading.Event()

    def generate():
        try:
            yield 0
            inside.set()
            gate.wait(WAIT)
            yield 1
        finally:
            closed.set()

    iterator = iter(Dataset.from_generator(generate).prefetch(1))
    next(iterator)
    assert inside.wait(WAIT)
    del iterator
    gate.set()
    assert closed.wait(WAIT)


@each_blocked
def test_closing_it_waits_for_user_code_and_sends_home_who_waits_for_an_element(make):
    gate = Gate(1)
    with nothing_left():
        iterator = iter(make(gate))
        assert next(iterator) == 0
        consumer = in_thread(lambda: list(iterator))
        assert gate.entered.wait(WAIT)
        closer = in_thread(iterator.close)
        try:
            outcome = consumer.result()
        finally:
            gate.opened.set()
        assert closer.result() is None
        assert isinstance(outcome, ClosedError)


@each_blocked
def test_the_end_of_the_data_comes_although_user_code_that_nobody_needs_is_blocked(make, monkeypatch):
    monkeypatch.setattr("dataset.runtime.iteration.cursor.PATIENCE_SECONDS", 0.2)
    gate = Gate(1)
    with nothing_left():
        try:
            assert list(make(gate).take(1)) == [0]
        finally:
            gate.opened.set()


# References to the iterator


@pytest.mark.parametrize("make", [lambda d: d.prefetch(2), lambda d: d.batch(2, num_parallel_calls=2).prefetch(2)])
def test_a_cycle_with_the_iterator_in_it_is_collected(make):
    with nothing_left():
        iterator = iter(make(Dataset.range(50)))
        next(iterator)
        holder = {"iterator": iterator}
        holder["self"] = holder
        del iterator, holder


def test_closing_an_iterator_that_a_function_of_its_own_refers_to_lets_go_of_everything():
    """Running threads refer to their functions, and so to this iterator: dropping it is not enough."""

    def use():
        holder = []
        iterator = iter(Dataset.range(50).map(lambda x: x + 0 * len(holder), num_parallel_calls=2))
        holder.append(iterator)
        next(iterator)
        iterator.close()
        return weakref.ref(iterator)

    with nothing_left():
        gone = use()
        gc.collect()
        assert gone() is None


@pytest.mark.parametrize("how", [{}, {"num_parallel_calls": 2}], ids=str)
def test_the_iterator_may_be_dropped_by_a_function_of_its_own(how):
    with nothing_left():
        holder, taken, dropped = [], threading.Event(), threading.Event()

        def drop(x):
            if x == 3:
                taken.wait(WAIT)
                holder.clear()
                dropped.set()
            return x

        holder.append(iter(Dataset.range(50).map(drop, **how).prefetch(1)))
        assert next(holder[0]) == 0
        taken.set()
        with contextlib.suppress(IndexError):
            while True:
                next(holder[0])
        assert dropped.wait(WAIT)
