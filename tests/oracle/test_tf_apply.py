"""Tests of apply against tf.data's."""

from cases import FINITE
from compare import assert_both_refuse, refused, same


def halves(size):
    return lambda ds: ds.filter(lambda x: x < size).map(lambda x: x * 2)


test_sources = same("source.apply(lambda ds: zip((ds, ds)).filter(lambda x, y: x > 1))", source=FINITE)
test_functions_of_other_kinds = same(
    [
        "range(9).apply(halves(4)).apply(halves(5))",
        "range(9).apply(transformation_func=halves(4))",
        "range(9).apply(Dataset.cache)",
        "range(3).repeat().apply(lambda ds: ds)",
    ],
    limit=12,
)
NO_DATASETS = [lambda ds: None, lambda ds: 3, lambda ds: [ds], lambda ds: (ds,), None, 3, "take"]
test_what_makes_no_dataset = refused({TypeError: NO_DATASETS}, "range(3).apply(case)")


def test_an_exception_of_the_function_is_the_users_own():
    def fail(dataset):
        raise KeyError

    assert_both_refuse(lambda lib: lib.range(3).apply(fail), KeyError)
