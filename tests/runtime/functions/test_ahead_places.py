"""Tests that states of prefetched elements are positions, not elements."""

import pickle

import numpy as np
import pytest

from dataset import Dataset
from support.resuming import check_every_place


def test_an_element_of_the_size_of_an_image_is_not_in_a_state():
    images = Dataset.from_tensor_slices(np.zeros((64, 32, 32), np.float32)).map(lambda x: x + 1)
    iterator = iter(images)
    for _ in range(5):
        next(iterator)
    assert len(pickle.dumps(iterator.state_dict())) < 4096


@pytest.mark.parametrize("calls", [None, 2])
def test_what_is_passed_over_behind_a_mark_leaves_nothing_out_and_nothing_in_another_place(calls):
    """A filter that needs one element may find two; then the second one is next, before later elements are read."""
    kept = Dataset.range(1500).filter(lambda x: x % 7 != 3)
    dataset = kept.map(lambda x: x * 2, num_parallel_calls=calls) if calls else kept
    check_every_place(lambda: dataset, range(0, 600, 37))
