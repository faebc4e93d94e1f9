"""Tests of as_numpy_iterator against tf.data's: values are compared without conversion."""

import collections.abc

import numpy as np
from cases import ELEMENTS, NUMBERS, SOURCES
from compare import assert_outcomes_equal, in_both, outcomes, same

DENSE = {name: make for name, make in ELEMENTS.items() if "ragged" not in name and "sparse" not in name}


def values(build, limit=100):
    assert_outcomes_equal(*in_both(lambda lib: outcomes(build(lib).as_numpy_iterator(), lambda value: value, limit)))


test_sources = same(
    [lambda lib, source: source(lib), lambda lib, source: source(lib).map(lambda x: {"b": x, "a": (x, x > 1)})],
    SOURCES,
    by=values,
    limit=12,
)
test_elements = same(lambda lib, element: lib.from_tensors(element(lib)).repeat(2), DENSE, by=values)
test_dtypes = same(
    lambda lib, dtype, shape: lib.from_tensor_slices(np.ones(shape, dtype)), NUMBERS, [(2,), (2, 3)], by=values
)
test_text = same(
    [
        lambda lib: lib.from_tensor_slices(np.array([b"a\x00", "ü".encode(), b""], object)),
        lambda lib: lib.from_tensors([b"a\x00", b"bc"]),
    ],
    by=values,
)


def test_each_is_one_pass_that_stays_at_its_end():
    def check(lib):
        dataset = lib.range(3)
        first, second = dataset.as_numpy_iterator(), dataset.as_numpy_iterator()
        assert isinstance(first, collections.abc.Iterator)
        assert iter(first) is first
        assert [next(first), next(first), next(second), next(first)] == [0, 1, 0, 2]
        assert list(second) == [1, 2]
        assert list(second) == []
        assert next(first, None) is None

    in_both(check)
