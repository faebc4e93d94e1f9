"""Elements by number, together: the plan that makes them gives what looking them up one by one does."""

from __future__ import annotations

import numpy as np
import pytest

from dataset import Dataset
from dataset.dataset import columns_at
from dataset.optimize.choosing import chosen
from dataset.testing import assert_elements_equal

ROWS = Dataset.from_tensor_slices({"a": np.arange(20), "b": np.arange(40.0).reshape(20, 2)})


@pytest.mark.parametrize(
    "dataset",
    [
        ROWS,
        ROWS.skip(2).shard(3, 2).map(lambda e: e["a"] + 1),
        ROWS.take(7).repeat(3).skip(4),
        Dataset.zip(ROWS.skip(3), ROWS.select("a").map(lambda a: -a)).prefetch(2),
    ],
)
def test_chosen_elements_are_those_at_the_places(dataset):
    places = np.array([3, 0, 3, len(dataset) - 1])
    assert_elements_equal(list(Dataset(chosen(dataset.plan, places))), [dataset[int(place)] for place in places])


@pytest.mark.parametrize(
    "dataset", [ROWS.batch(2), ROWS.enumerate(), Dataset.range(9), ROWS.map(len).concatenate(ROWS)]
)
def test_others_have_to_be_looked_up_one_by_one(dataset):
    assert chosen(dataset.plan, np.array([0, 1])) is None
    assert columns_at(dataset, [0, 1]) is None
