"""Tests of ``private``: what is handed over without a copy, what is copied, and that copies are aligned."""

import ml_dtypes
import numpy as np
import pytest

from dataset.adapters.arrays import aligned_copy, private
from dataset.amounts import ALIGNMENT


def fresh():
    return np.arange(100.0)


def is_handed_over(components):
    addresses = [array.ctypes.data for array in components]
    return [array.ctypes.data for array in private(components)] == addresses


def test_an_array_without_other_references_is_handed_over():
    assert is_handed_over([fresh()])
    assert is_handed_over([fresh(), fresh().astype(np.int32)])
    assert is_handed_over([fresh().reshape(10, 10)])


def test_an_array_in_the_list_twice_is_copied():
    array = fresh()
    components = [array, array]
    del array
    first, second = private(components)
    assert first is not second


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x,
        lambda x: x[:50],
        lambda x: x.reshape(10, 10)[2:4],
        lambda x: np.frombuffer(memoryview(x)),
    ],
)
def test_an_array_with_other_references_and_views_of_any_memory_are_copied(view):
    held = fresh()
    (copy,) = private([view(held)])
    held[:] = -1
    assert copy.tolist() == view(fresh()).tolist()


def test_a_read_only_array_is_copied():
    array = fresh()
    array.flags.writeable = False
    components = [array]
    del array
    assert not is_handed_over(components)


def test_other_values_are_unchanged():
    components = [np.float32(3), b"text", np.array([b"a", b"b"], object)]
    assert all(one is other for one, other in zip(private(components), components, strict=True))


@pytest.mark.parametrize("dtype", [np.uint8, np.float64, ml_dtypes.bfloat16, np.complex64])
@pytest.mark.parametrize("shape", [(7,), (3, 5), (0, 4), (1,)])
def test_a_copy_is_aligned_and_equal(dtype, shape):
    array = np.arange(int(np.prod(shape))).astype(dtype).reshape(shape)
    for source in (array, array.T):
        copy = aligned_copy(source)
        assert copy.ctypes.data % ALIGNMENT == 0 or not copy.size
        assert copy.dtype == dtype
        assert copy.flags.c_contiguous
        assert np.array_equal(copy, source)
