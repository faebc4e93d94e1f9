"""Tests of get_next and get_next_as_optional of iterators against tf.data's."""

import numpy as np
from compare import attempt, in_both

import dataset
from support.libraries import fail_at


def test_elements_the_end_and_after_it():
    def check(lib):
        iterator = iter(lib.range(2))
        assert [int(iterator.get_next()) for _ in range(2)] == [0, 1]
        end = dataset.OutOfRangeError if lib.name == "dataset" else lib.tf.errors.OutOfRangeError
        assert [type(attempt(lambda _: iterator.get_next(), lib)) for _ in range(2)] == [end, end]

    in_both(check)


def test_optionals():
    def check(lib):
        iterator = iter(lib.range(1))
        full, empty = iterator.get_next_as_optional(), iterator.get_next_as_optional()
        assert (bool(full.has_value()), int(full.get_value()), bool(empty.has_value())) == (True, 0, False)
        error = ValueError if lib.name == "dataset" else lib.tf.errors.InvalidArgumentError
        assert isinstance(attempt(lambda _: empty.get_value(), lib), error)

    in_both(check)


def test_an_element_that_fails():
    def outcomes(lib):
        check = lib.call(fail_at(1), dataset.TensorSpec((), np.int64))
        iterator = iter(lib.unfused(lib.range(3).map(check)))
        return [outcome(iterator.get_next_as_optional) for _ in range(4)]

    assert in_both(outcomes) == ([0, "failed", 2, None],) * 2


def outcome(ask):
    try:
        optional = ask()
    except Exception:
        return "failed"
    return int(optional.get_value()) if optional.has_value() else None
