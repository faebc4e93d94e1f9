"""ignore_errors: leave out the elements that fail."""

import logging

import numpy as np
import pytest

import dataset.ops.ignore_errors as module
from dataset import ClosedError, Dataset, vectorized
from dataset.runtime.context import open_plan
from dataset.testing import check_laziness, check_operator, outcomes
from support.op_cases import fail_at, ints


@pytest.mark.parametrize("bad", [(), (0,), (2, 3), (5,), (0, 5), (0, 1, 2, 3, 4, 5)])
def test_leaves_out_what_fails(bad):
    expected = ints(*(x for x in range(6) if x not in bad))
    check_operator(lambda: Dataset.range(6).map(fail_at(*bad)).ignore_errors(), expected)
    check_operator(lambda: Dataset.range(6).map(fail_at(*bad)).ignore_errors(log_warning=False), expected)


def test_of_nothing_is_nothing():
    check_operator(lambda: Dataset.range(0).ignore_errors(), [])


def test_takes_what_it_gives_and_what_failed_before():
    check_laziness(lambda numbers: numbers.ignore_errors(), lambda k: k)
    check_laziness(lambda numbers: numbers.map(fail_at(0, 3)).ignore_errors(), lambda k: k + (k > 0) + (k > 2))


def test_leaves_out_failures_of_every_op_as_in_tf_data():
    numbers = Dataset.range(7).map(fail_at(2))
    check_operator(lambda: numbers.batch(3).ignore_errors(), [np.array([3, 4, 5]), np.array([6])])
    check_operator(lambda: numbers.ignore_errors().batch(3), [np.array([0, 1, 3]), np.array([4, 5, 6])])
    check_operator(lambda: Dataset.range(3).flat_map(lambda x: numbers.take(3)).ignore_errors(), ints(0, 1, 3) * 3)
    check_operator(lambda: Dataset.range(4).filter(lambda x: "yes" if x == 1 else True).ignore_errors(), ints(0, 2, 3))
    check_operator(lambda: numbers.ignore_errors().take(3), ints(0, 1, 3))
    check_operator(lambda: numbers.enumerate().ignore_errors().skip(5), [tuple(ints(6, 6))])
    check_operator(lambda: numbers.ignore_errors().shuffle(2, seed=1).repeat(2))
    check_operator(lambda: numbers.prefetch(2).ignore_errors(), ints(0, 1, 3, 4, 5, 6))


def test_a_generator_that_raises_is_over():
    def generate():
        yield 1
        raise OSError("gone")

    check_operator(lambda: Dataset.from_generator(generate).ignore_errors(), ints(1))


def test_passes_structures_on():
    element = {"a": (np.int64(1), None), "b": b"x"}
    source = Dataset.from_tensors({"a": (1, None), "b": "x"}).repeat(3)
    check_operator(source.ignore_errors, [element] * 3)
    assert source.ignore_errors().element_spec == source.element_spec


def test_lets_interrupts_through_and_loses_nothing():
    armed = [True]

    def interrupt(x):
        if x == 2 and armed:
            armed.clear()
            raise KeyboardInterrupt
        return fail_at(1)(x)

    iterator = iter(Dataset.range(5).map(interrupt).ignore_errors().batch(5))
    with pytest.raises(KeyboardInterrupt):
        next(iterator)
    assert next(iterator).tolist() == [0, 2, 3, 4]


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_swallows_nothing_that_is_no_exception_of_an_element(interrupt):
    def raises(x):
        raise interrupt

    with pytest.raises(interrupt):
        next(iter(Dataset.range(3).map(raises).ignore_errors()))


def test_logs_each_error_with_its_place(caplog):
    numbers = Dataset.range(5).map(fail_at(1, 4), name="decode").ignore_errors(log_warning=True)
    with caplog.at_level(logging.WARNING, logger="dataset"):
        assert len(list(numbers)) == 3
    first, second = caplog.records
    assert (first.name, first.levelno) == ("dataset", logging.WARNING)
    text = first.getMessage()
    assert text.startswith("ignore_errors from test_ignore_errors.py:")
    assert " dropped element 1: ValueError: bad 1 (in map(" in text
    assert "named 'decode' from test_ignore_errors.py:" in text
    assert "dropped element 4: ValueError: bad 4" in second.getMessage()
    assert not any(isinstance(value, Exception) for record in caplog.records for value in record.args)


def test_logs_nothing_unless_told_to(caplog):
    with caplog.at_level(logging.DEBUG):
        assert len(list(Dataset.range(5).map(fail_at(1)).ignore_errors())) == 4
    assert not caplog.records


def open_operator(numbers):
    coordinator, operator = open_plan(numbers.plan)
    return operator, lambda: coordinator.shut_down(operator.close, wait=True)


def test_counts_what_it_drops_across_a_resume():
    numbers = Dataset.range(6).map(fail_at(0, 2, 5)).ignore_errors()
    operator, close = open_operator(numbers)
    assert operator.pull(2).rows() == [1]
    assert operator.pull(2).rows() == [3]
    assert (operator.passed, operator.dropped) == (2, 2)
    state = operator.state_dict()
    close()
    operator, close = open_operator(numbers)
    operator.load_state_dict(state)
    assert operator.pull(2).rows() == [4]
    assert operator.pull(2) is None
    assert (operator.passed, operator.dropped) == (3, 3)
    close()


def test_an_input_that_fails_for_ever_is_an_error_not_a_hang(monkeypatch):
    monkeypatch.setattr(module, "_FAILURES_IN_A_ROW_MAX", 50)

    def fail(x):
        raise ValueError(f"bad {x}")

    iterator = iter(Dataset.range(3).repeat().map(fail).ignore_errors())
    for text in ("bad 1", "bad 0", "bad 2"):  # asking again goes on behind it, for as long again
        with pytest.raises(ValueError, match=text) as caught:
            next(iterator)
        note = caught.value.__notes__[-1]
        assert note.startswith("in ignore_errors from test_ignore_errors.py:")
        assert "the last of 50 consecutive errors" in note


def test_a_closed_iterator_is_no_failure_of_an_element():
    operator, close = open_operator(Dataset.range(3).map(fail_at(0, 1, 2)).prefetch(1).ignore_errors())
    close()
    with pytest.raises(ClosedError):
        operator.pull(1)
    assert operator.dropped == 0


def test_closing_ends_a_long_run_of_failures():
    calls = []

    def fail(x):
        calls.append(x)
        if len(calls) == 10:
            close()
        raise ValueError("bad")

    operator, close = open_operator(Dataset.range(1000).map(fail).ignore_errors())
    with pytest.raises(ClosedError):
        operator.pull(1)
    assert len(calls) == 10


def test_failures_with_elements_between_them_may_be_many(monkeypatch):
    monkeypatch.setattr(module, "_FAILURES_IN_A_ROW_MAX", 3)
    numbers = Dataset.range(3).map(fail_at(0, 1)).repeat(100).ignore_errors()
    assert len(outcomes(iter(numbers))) == 100
    check_operator(lambda: Dataset.range(8).map(fail_at(1, 2, 3, 4, 5, 6)).ignore_errors())


def test_the_length_is_unknown():
    for source in (Dataset.range(5), Dataset.range(5).repeat(), Dataset.range(0)):
        assert source.ignore_errors().cardinality() == -2


@pytest.mark.parametrize("value", ["yes", 1, 0, None])
def test_refuses_a_log_warning_that_is_no_bool(value):
    with pytest.raises(TypeError, match=r"ignore_errors\(\): log_warning must be True or False, got"):
        Dataset.range(3).ignore_errors(value)


@pytest.mark.parametrize("vectorize", [False, True])
@pytest.mark.parametrize("error", [StopIteration, GeneratorExit])
@pytest.mark.parametrize("calls", [None, 2])
def test_what_would_end_a_loop_is_an_error_of_its_element(error, calls, vectorize):
    def fail(x):
        if np.any(x == 3):
            raise error
        return x + 1

    function = vectorized(fail) if vectorize else fail
    pipelines = [
        Dataset.range(6).map(function, num_parallel_calls=calls),
        Dataset.range(6).map(function, num_parallel_calls=calls).map(lambda x: x, num_parallel_calls=calls),
        Dataset.range(6).interleave(lambda x: Dataset.range(fail(x), x + 2), num_parallel_calls=calls),
    ]
    for dataset in pipelines:
        assert [int(x) for x in dataset.ignore_errors()] == [1, 2, 3, 5, 6]
        iterator = iter(dataset)
        found = [int(next(iterator)) for _ in range(3)]
        with pytest.raises(RuntimeError, match=f"raised {error.__name__}"):
            next(iterator)
        assert [*found, *map(int, iterator)] == [1, 2, 3, 5, 6]


def test_the_log_says_that_a_generator_that_raised_has_ended(caplog):
    def numbers():
        yield 1
        raise ValueError("broken")

    assert list(Dataset.from_generator(numbers).ignore_errors(log_warning=True)) == [1]
    [record] = caplog.records
    assert "broken" in record.getMessage()
    assert "this exception ended the generator" in record.getMessage()
