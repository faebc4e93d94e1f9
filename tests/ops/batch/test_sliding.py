"""SlidingBuffer: the buffer that windows are cut from."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dataset.ops.batch.sliding import SlidingBuffer
from dataset.plan.structure import LEAF
from dataset.runtime.chunks.chunk import Chunk

COLUMNS = st.sampled_from(
    [
        np.array,
        lambda values: np.repeat(np.array(values)[:, None], 3, 1),
        lambda values: np.array(values, np.float32),
        lambda values: [np.full(value % 3, value) for value in values],
        lambda values: [b"%d" % value for value in values],
    ]
)


def as_lists(column):
    return [np.asarray(value).tolist() for value in column]


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 12)), max_size=12), COLUMNS, st.booleans(), st.data())
def test_is_a_queue_whose_pieces_never_change(steps, column, changing, data):
    buffer, model, given_out, number = SlidingBuffer(), [], [], 0
    for count, dropped in steps:
        values = list(range(number, number + count))
        number += count
        added = data.draw(COLUMNS)(values) if changing else column(values)
        buffer.append(Chunk(LEAF, count, [added]))
        model += as_lists(added)
        start = data.draw(st.integers(0, len(model) - 1))
        stop, step = data.draw(st.integers(start + 1, len(model))), data.draw(st.integers(1, 4))
        (piece,) = buffer.columns(start, stop, step)
        given_out.append((piece, model[start:stop:step]))
        (picked,) = buffer.columns_at(np.array([start, stop - 1]))
        given_out.append((picked, [model[start], model[stop - 1]]))
        buffer.drop(min(dropped, len(model)))
        model = model[dropped:]
        assert buffer.length == len(model)
    assert [as_lists(piece) for piece, _ in given_out] == [expected for _, expected in given_out]
    for piece, _ in given_out:
        arrays = [piece] if isinstance(piece, np.ndarray) else piece
        assert not any(isinstance(array, np.ndarray) and array.flags.writeable for array in arrays)
