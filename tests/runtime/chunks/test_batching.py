"""Tests of batching components."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset.runtime.chunks.batching import ColumnMismatchError, pad_column, stack_column
from dataset.testing import assert_elements_equal

SHAPES = st.lists(st.integers(0, 3), max_size=2).map(tuple)
DTYPES = st.sampled_from([np.int64, np.uint8, np.float16, np.bool_, np.complex128, "M8[s]"])


@given(SHAPES, DTYPES, st.integers(1, 5))
def test_stacking_is_that_of_numpy(shape, dtype, count):
    arrays = [np.arange(int(np.prod(shape))).reshape(shape).astype("i8").astype(dtype) for _ in range(count)]
    values = [array[()] for array in arrays]
    assert_elements_equal([stack_column(values)], [np.stack(arrays)])


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=4))
def test_padding_matrices_keeps_each_in_its_corner(shapes):
    arrays = [np.full(shape, i + 1) for i, shape in enumerate(shapes)]
    padded = pad_column(arrays, [None, 4], 0)
    assert padded.shape == (len(shapes), max(a for a, _ in shapes), 4)
    for array, result in zip(arrays, padded, strict=True):
        assert np.array_equal(result[: array.shape[0], : array.shape[1]], array)
        assert result.sum() == array.sum()


@pytest.mark.parametrize("longest", [1, 5, 63, 64, 65, 700])
@pytest.mark.parametrize("room", [0, 3, None])
def test_vectors_of_every_length_are_filled_up(longest, room):
    rng = np.random.default_rng(0)
    rows = [rng.integers(1, 9, size) for size in [longest, 0, 1, *rng.integers(0, longest + 1, 20)]]
    wanted = None if room is None else longest + room
    width = longest if room is None else wanted
    for dtype, value in ((np.int16, -1), (np.float32, 0.5), (object, b"")):
        column = [row.astype(dtype) for row in rows]
        padded = pad_column(column, (wanted,), value)
        assert (padded.shape, padded.dtype) == ((len(rows), width), dtype)
        assert padded.tolist() == [[*row.tolist(), *[value] * (width - len(row))] for row in column]
    with pytest.raises(ColumnMismatchError) as error:
        pad_column([rows[1], rows[0]], (longest - 1,), 0)
    assert error.value.index == 1
