"""Tests of get_next and get_next_as_optional of iterators against tf.data's."""

from compare import attempt, in_both

import dataset


def test_elements_the_end_and_after_it():
    def check(lib):
        iterator = iter(lib.range(2))
        assert [int(iterator.get_next()) for _ in range(2)] == [0, 1]
        end = dataset.OutOfRangeError if lib.name == "dataset" else lib.tf.errors.OutOfRangeError
        assert [type(attempt(lambda _: iterator.get_next(), lib)) for _ in range(2)] == [end, end]

    in_both(check)


def test_optionals():
    def check(lib):
        iterator = iter(lib.failing(1, size=3))
        found = [attempt(lambda _: iterator.get_next_as_optional(), lib) for _ in range(4)]
        assert isinstance(found.pop(1), Exception)
        assert [bool(optional.has_value()) for optional in found] == [True, True, False]
        assert [int(optional.get_value()) for optional in found[:2]] == [0, 2]
        error = ValueError if lib.name == "dataset" else lib.tf.errors.InvalidArgumentError
        assert isinstance(attempt(lambda _: found[2].get_value(), lib), error)

    in_both(check)
