"""elements_at: one plan of the elements at given positions returns what looking them up one by one does."""

from __future__ import annotations

import numpy as np
import pytest

from dataset import Dataset
from dataset.dataset import columns_at
from dataset.ops.sources.select_positions import elements_at
from dataset.testing import assert_elements_equal

ROWS = Dataset.from_tensor_slices({"a": np.arange(20), "b": np.arange(40.0).reshape(20, 2)})


@pytest.mark.parametrize(
    "dataset",
    [
        ROWS,
        Dataset.range(9),
        ROWS.skip(2).shard(3, 2).map(lambda e: e["a"] + 1),
        ROWS.take(7).repeat(3).skip(4),
        Dataset.zip(ROWS.skip(3), ROWS.select("a").map(lambda a: -a)).prefetch(2),
        ROWS.batch(3).skip(1),
    ],
)
def test_elements_at_positions_are_those_looked_up_one_by_one(dataset):
    places = np.array([3, 0, 3, len(dataset) - 1])
    assert_elements_equal(list(Dataset(elements_at(dataset.plan, places))), [dataset[int(place)] for place in places])


@pytest.mark.parametrize("dataset", [ROWS.enumerate(), ROWS.map(len).concatenate(ROWS), ROWS.shuffle(3)])
def test_others_have_to_be_looked_up_one_by_one(dataset):
    assert elements_at(dataset.plan, np.array([0, 1])) is None
    assert columns_at(dataset, [0, 1]) is None


def test_a_batch_with_fewer_elements_can_only_be_the_last():
    batches = ROWS.batch(8)
    assert elements_at(batches.plan, np.array([2, 0])) is None
    assert_elements_equal(list(Dataset(elements_at(batches.plan, np.array([0, 2])))), [batches[0], batches[2]])
