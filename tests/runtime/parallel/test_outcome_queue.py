"""OutcomeQueue: the queue of chunks and exceptions, and the bytes that it counts."""

import numpy as np
import pytest

from dataset.plan.structure import LEAF
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.parallel.outcome_queue import OutcomeQueue


def chunk(*numbers):
    return Chunk(LEAF, len(numbers), [np.array(numbers)])


def test_a_chunk_counts_until_its_last_piece_is_given():
    pending = OutcomeQueue()
    pending.put(chunk(1, 2, 3), 24)
    pending.put(chunk(4), 8)
    counted = []
    while pending:
        pending.give(2)
        counted.append(pending.counted_bytes)
    assert counted == [32, 8, 0]


def test_what_is_put_first_comes_first_and_the_bytes_stay():
    pending = OutcomeQueue()
    pending.put(chunk(1, 2, 3), 24)
    assert pending.give(1).rows() == [1]
    pending.put_first(ValueError("bad"), 0)
    pending.put_first(chunk(0), 8)
    assert (len(pending), pending.counted_bytes, pending.holds_failure) == (4, 32, True)
    assert pending.give(5).rows() == [0]
    with pytest.raises(ValueError, match="bad"):
        pending.give(5)
    assert pending.give_joined(5).rows() == [2, 3]
    assert (len(pending), pending.counted_bytes, pending.holds_failure) == (0, 0, False)


def test_one_queue_takes_over_another_with_its_bytes():
    pending, other = OutcomeQueue(), OutcomeQueue()
    other.put(chunk(1, 2), 16)
    other.give(1)
    other.put(chunk(3), 8)
    pending.take_from(other)
    assert (pending.counted_bytes, other.counted_bytes, len(other)) == (24, 0, 0)
    assert pending.give_joined(9).rows() == [2, 3]
    assert pending.counted_bytes == 0
