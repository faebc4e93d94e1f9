"""Tests of batching components."""

import numpy as np
import pytest

from dataset.runtime.chunks.batching import ColumnMismatchError, pad_column


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
