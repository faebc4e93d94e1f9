"""ignore_errors: leave out the elements that fail. tests/oracle compares pipelines with tf.data's."""

import logging

import pytest

import dataset.ops.ignore_errors as module
from dataset import ClosedError, Dataset
from dataset.runtime.context import open_plan
from dataset.testing import check_laziness, check_operator, outcomes
from support.op_cases import fail_at, ints


@pytest.mark.parametrize("bad", [(), (0,), (2, 3), (0, 5), range(6)])
def test_leaves_out_what_fails(bad):
    expected = ints(*(x for x in range(6) if x not in bad))
    check_operator(lambda: Dataset.range(6).map(fail_at(*bad)).ignore_errors(), expected)


def test_takes_what_it_gives_and_what_failed_before():
    check_laziness(lambda numbers: numbers.ignore_errors(), lambda k: k)
    check_laziness(lambda numbers: numbers.map(fail_at(0, 3)).ignore_errors(), lambda k: k + (k > 0) + (k > 2))


def broken():
    yield 1
    raise OSError("gone")


def test_logs_each_error_with_its_place_if_told_to(caplog):
    numbers = Dataset.range(5).map(fail_at(1, 4), name="decode")
    with caplog.at_level(logging.DEBUG):
        assert len(list(numbers.ignore_errors())) == 3
        assert not caplog.records
        assert len(list(numbers.ignore_errors(log_warning=True))) == 3
        assert list(Dataset.from_generator(broken).ignore_errors(log_warning=True)) == [1]
    first, second, third = caplog.records
    assert (first.name, first.levelno) == ("dataset", logging.WARNING)
    text = first.getMessage()
    assert text.startswith("ignore_errors from test_ignore_errors.py:")
    assert " dropped element 1: ValueError: bad 1 (in map(" in text
    assert "named 'decode' from test_ignore_errors.py:" in text
    assert "dropped element 4: ValueError: bad 4" in second.getMessage()
    assert "gone" in third.getMessage()
    assert "this exception ended the generator" in third.getMessage()
    assert not any(isinstance(value, Exception) for record in caplog.records for value in record.args)


def test_an_input_that_fails_for_ever_is_an_error_not_a_hang(monkeypatch):
    monkeypatch.setattr(module, "FAILURES_MAX", 50)

    def fail(x):
        raise ValueError(f"bad {x}")

    iterator = iter(Dataset.range(3).repeat().map(fail).ignore_errors())
    for text in ("bad 1", "bad 0", "bad 2"):  # the next request continues after it, for as long again
        with pytest.raises(ValueError, match=text) as caught:
            next(iterator)
        note = caught.value.__notes__[-1]
        assert note.startswith("in ignore_errors from test_ignore_errors.py:")
        assert "the last of 50 consecutive errors" in note


def test_failures_with_elements_between_them_may_be_many(monkeypatch):
    monkeypatch.setattr(module, "FAILURES_MAX", 3)
    numbers = Dataset.range(3).map(fail_at(0, 1)).repeat(100).ignore_errors()
    assert len(outcomes(iter(numbers))) == 100
    check_operator(lambda: Dataset.range(8).map(fail_at(1, 2, 3, 4, 5, 6)).ignore_errors())


def test_closing_ends_a_long_run_of_failures():
    calls = []

    def fail(x):
        calls.append(x)
        if len(calls) == 10:
            coordinator.shut_down(operator.close, wait=True)
        raise ValueError("bad")

    coordinator, operator = open_plan(Dataset.range(1000).map(fail).ignore_errors().plan)
    with pytest.raises(ClosedError):
        operator.pull(1)
    assert len(calls) == 10
