"""Tests of copying rows of different lengths: the kernel does the same as NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset import RaggedTensor
from dataset.native.ragged_rows import copy_by_numpy, copy_rows

DTYPES = ["u1", "<i4", ">i4", "f8", "c16", "S3", "M8[s]", "O"]


def rows_of(draw, longest):
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    inner = draw(st.sampled_from([(), (2,), (0,)]))
    lengths = draw(st.lists(st.integers(0, longest), max_size=8))
    splits = np.cumsum([draw(st.integers(0, 3)), *lengths])
    shape = (int(splits[-1]) + 2, *inner)
    values = np.arange(1, np.prod(shape) + 1).astype(dtype).reshape(shape)
    if draw(st.booleans()):
        values = np.repeat(values, 2, axis=0)[::2]  # not contiguous
    values.flags.writeable = draw(st.booleans())
    return values, splits.astype(draw(st.sampled_from([np.int32, np.int64])))


def both(values, splits, shape, indices=None):
    found, expected = np.zeros(shape, values.dtype), np.zeros(shape, values.dtype)
    copy_rows(values, splits, found, indices)
    copy_by_numpy(values, splits, expected, indices)
    assert found.tolist() == expected.tolist()
    return found


@given(st.data())
def test_rows_are_padded(data):
    values, splits = rows_of(data.draw, data.draw(st.sampled_from([4, 100])))
    width = int(np.diff(splits).max(initial=0)) + data.draw(st.integers(0, 2))
    padded = both(values, splits, (len(splits) - 1, width, *values.shape[1:]))
    for row, a, b in zip(padded, splits, splits[1:], strict=False):
        assert row[: b - a].tolist() == values[a:b].tolist()
        assert not row[b - a :].any() or values.dtype == object


@given(st.data())
def test_rows_are_gathered(data):
    values, splits = rows_of(data.draw, data.draw(st.sampled_from([4, 100])))
    places = range(len(splits) - 1)
    indices = np.array(data.draw(st.lists(st.sampled_from(places), max_size=12)) if places else [], np.intp)
    gathered = both(values, splits, (np.diff(splits)[indices].sum(), *values.shape[1:]), indices)
    assert gathered.tolist() == [item for i in indices for item in values[splits[i] : splits[i + 1]].tolist()]


@pytest.mark.parametrize("damage", [-1, 7, 2**40, -(2**63), 2**63 - 1])
@pytest.mark.parametrize("place", [0, 1, 3])
def test_splits_that_were_overwritten_read_nothing_outside_of_the_values(place, damage):
    ragged = RaggedTensor(np.arange(6), [0, 2, 4, 6])
    dense = np.full((3, 4), -9)
    splits = np.array(ragged.row_splits)
    splits[place] = damage
    try:
        copy_rows(ragged.values, splits, dense)
    except ValueError:
        return  # the number of values does not match
    assert {*dense.ravel().tolist()} <= {-9, *range(6)}
