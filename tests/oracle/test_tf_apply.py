"""Tests of apply against tf.data's."""

import pytest
from cases import SOURCES
from compare import assert_both_refuse, assert_same


@pytest.mark.parametrize("source", SOURCES)
def test_sources(source):
    assert_same(lambda lib: SOURCES[source](lib).apply(lambda ds: ds.take(3)), limit=12)
    assert_same(lambda lib: SOURCES[source](lib).apply(lambda ds: ds), limit=12)
    assert_same(
        lambda lib: SOURCES[source](lib).apply(lambda ds: lib.Dataset.zip((ds, ds)).filter(lambda x, y: x > 1)), limit=3
    )


def test_functions_of_other_kinds():
    def halves(size):
        return lambda ds: ds.filter(lambda x: x < size).map(lambda x: x * 2)

    assert_same(lambda lib: lib.Dataset.range(9).apply(halves(4)).apply(halves(5)))
    assert_same(lambda lib: lib.Dataset.range(9).apply(transformation_func=halves(4)))
    assert_same(lambda lib: lib.Dataset.range(9).apply(lib.Dataset.cache))


@pytest.mark.parametrize(
    "function", [lambda ds: None, lambda ds: 3, lambda ds: [ds], lambda ds: (ds,), None, 3, "take"]
)
def test_what_makes_no_dataset(function):
    assert_both_refuse(lambda lib: lib.Dataset.range(3).apply(function), TypeError)


def test_an_exception_of_the_function_is_the_users_own():
    class OwnError(Exception):
        pass

    def fail(dataset):
        raise OwnError

    assert_both_refuse(lambda lib: lib.Dataset.range(3).apply(fail), OwnError)
