"""Tests of from_tensors against tf.data's."""

import numpy as np
import pytest
from cases import ELEMENTS, NUMBERS
from compare import assert_both_refuse, assert_same


@pytest.mark.parametrize("element", ELEMENTS)
def test_elements(element):
    assert_same(lambda lib: lib.Dataset.from_tensors(ELEMENTS[element](lib)))


@pytest.mark.parametrize("shape", [(), (2,), (0,), (2, 0, 1)])
@pytest.mark.parametrize("dtype", NUMBERS)
def test_dtypes(dtype, shape):
    assert_same(lambda lib: lib.Dataset.from_tensors(np.ones(shape, dtype)))
    assert_same(lambda lib: lib.Dataset.from_tensors(lib.const(np.ones(shape), dtype)))


def test_extreme_values():
    for value in (np.float64("nan"), np.float32("-inf"), np.uint64(2**64 - 1), np.int64(-(2**63)), np.float64(-0.0)):
        assert_same(lambda lib, value=value: lib.Dataset.from_tensors(value))


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3)[:, ::-1],
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.array(["a", "bc"], "S"),
        np.array([b"a\x00", b"bc"], "S4"),
        np.array(3.5),
        [np.array([1, 2]), np.array([3, 4])],
        np.str_("ü"),
        np.bytes_(b"x"),
    ],
    ids=repr,
)
def test_arrays_of_every_layout(array):
    assert_same(lambda lib: lib.Dataset.from_tensors(array))


@pytest.mark.parametrize("rows", [[[1, 2], [3]], ["a", ["b"]], [np.zeros(2), np.zeros(3)]], ids=repr)
def test_what_is_no_array(rows):
    assert_both_refuse(lambda lib: lib.Dataset.from_tensors(rows), (TypeError, ValueError))


@pytest.mark.parametrize("element", [None, (), {}, (None,), {"a": None}, ((), None)], ids=repr)
def test_what_has_no_component(element):
    assert_both_refuse(lambda lib: lib.Dataset.from_tensors(element), ValueError)


@pytest.mark.parametrize("name", [None, "label"])
def test_a_name(name):
    assert_same(lambda lib: lib.Dataset.from_tensors(np.int64(1), name=name))
    assert_same(lambda lib: lib.Dataset.from_tensors(tensors=np.int64(1), name=name))
