"""Tests of apply against tf.data's."""

from cases import SOURCES
from compare import assert_both_refuse, refused, same


def halves(size):
    return lambda ds: ds.filter(lambda x: x < size).map(lambda x: x * 2)


test_sources = same(
    {
        "take": lambda lib, source: source(lib).apply(lambda ds: ds.take(3)),
        "nothing": lambda lib, source: source(lib).apply(lambda ds: ds),
        "zip": lambda lib, source: source(lib).apply(lambda ds: lib.zip((ds, ds)).filter(lambda x, y: x > 1)),
    },
    SOURCES,
    limit=lambda source, use: 3 if use == "zip" else 12,
)
test_functions_of_other_kinds = same(
    {
        "twice": lambda lib: lib.range(9).apply(halves(4)).apply(halves(5)),
        "keyword": lambda lib: lib.range(9).apply(transformation_func=halves(4)),
        "method": lambda lib: lib.range(9).apply(lib.Dataset.cache),
    }
)
test_what_makes_no_dataset = refused(
    {TypeError: [lambda ds: None, lambda ds: 3, lambda ds: [ds], lambda ds: (ds,), None, 3, "take"]},
    lambda lib, function: lib.range(3).apply(function),
)


def test_an_exception_of_the_function_is_the_users_own():
    class OwnError(Exception):
        pass

    def fail(dataset):
        raise OwnError

    assert_both_refuse(lambda lib: lib.range(3).apply(fail), OwnError)
