"""Tests of check_operator and check_laziness: they find and locate faults of operators."""

import sys
import threading
import time
import types

import pytest

from dataset import Dataset
from dataset.ops.take import TakeOperator
from dataset.testing import check_laziness, check_operator, no_leaks

_pull, _state, _advance = TakeOperator.pull, TakeOperator.save, TakeOperator.advance


@pytest.mark.parametrize(
    ("method", "wrong", "words"),
    [
        ("pull", lambda self, n: _pull(self, n + 1), r"pull\(1\) returned 2 elements"),
        ("pull", lambda self, n: self.source.pull(1), r"cardinality\(\) is 3, but there are 5 elements"),
        ("save", lambda self: _state(self).after(0, remaining=3), "got 2 elements, expected 1"),
        (
            "advance",
            lambda self, state, n: _advance(self, state, 1),
            r"element 2.*: got int64 1, expected int64 2",
        ),
    ],
)
def test_a_faulty_operator_is_found(monkeypatch, method, wrong, words):
    monkeypatch.setattr(TakeOperator, method, wrong)
    with pytest.raises(AssertionError, match=words):
        check_operator(lambda: Dataset.range(5).enumerate().take(3))


def test_a_leak_is_found_where_it_begins(monkeypatch):
    monkeypatch.setattr("dataset.testing.leaks._JOIN_SECONDS", 0.01)
    kept = []

    def numbers():
        for number in range(5):
            if number == 2:
                kept.append(open(__file__))  # noqa: PTH123, SIM115
            yield number

    with pytest.raises(AssertionError, match="stopped after 3 elements: files still open"):
        check_operator(lambda: Dataset.from_generator(numbers))
    for file in kept:
        file.close()


def test_a_file_that_a_thread_of_pyarrow_is_closing_is_no_leak(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", types.ModuleType("pyarrow"))
    with no_leaks():
        file = open(__file__)  # noqa: PTH123, SIM115
        closing = types.SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: file.close())
        monkeypatch.setattr("dataset.testing.leaks.time", closing)


def test_a_thread_that_stays_is_found(monkeypatch):
    monkeypatch.setattr("dataset.testing.leaks._JOIN_SECONDS", 0.01)
    stop = threading.Event()

    def numbers():
        threading.Thread(target=stop.wait, name="stays").start()
        yield 0

    with pytest.raises(AssertionError, match=r"stopped after 1 elements: threads still alive: \['stays'"):
        check_operator(lambda: Dataset.from_generator(numbers))
    stop.set()


def test_reading_too_much_is_found():
    with pytest.raises(AssertionError, match="0 elements took 1 elements of the input, expected 0"):
        check_laziness(lambda numbers: (next(iter(numbers)), numbers)[1], lambda k: k)
    with pytest.raises(AssertionError, match="1 elements took 2 elements of the input, expected 1"):
        check_laziness(lambda numbers: numbers.batch(2), lambda k: k)
