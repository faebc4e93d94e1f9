"""Tests of as_numpy_iterator against tf.data's: values are compared without conversion."""

import collections.abc

from cases import DENSE, NUMBERS, SOURCES
from compare import assert_outcomes_equal, in_both, outcomes, same


def values(build, limit=100):
    assert_outcomes_equal(*in_both(lambda lib: outcomes(build(lib).as_numpy_iterator(), lambda value: value, limit)))


test_sources = same("source.map(lambda x: {'b': x, 'a': (x, x > 1)})", source=SOURCES, by=values, limit=12)
test_elements = same("from_tensors(element).repeat(2)", element=DENSE, by=values)
test_dtypes = same("from_tensor_slices(np.ones(shape, dtype))", dtype=NUMBERS, shape=[(2,), (2, 3)], by=values)


def test_each_is_one_pass_that_stays_at_its_end():
    def check(lib):
        dataset = lib.range(3)
        first, second = dataset.as_numpy_iterator(), dataset.as_numpy_iterator()
        assert isinstance(first, collections.abc.Iterator)
        assert iter(first) is first
        assert [next(first), next(first), next(second), next(first)] == [0, 1, 0, 2]
        assert [*second, *second, next(first, None)] == [1, 2, None]

    in_both(check)
