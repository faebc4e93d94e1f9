"""Digests that tell whether a pipeline filled a cache. test_content.py compares those of many pipelines."""

import numpy as np

from dataset import Dataset
from dataset.plan.fingerprints.step_digests import difference, step_digests


def test_the_words_name_the_operation_that_differs():
    def make(n):
        return Dataset.range(9).map(lambda x: x + n).batch(2)

    one, two = step_digests(make(1).plan), step_digests(make(2).plan)
    assert difference(one, two) == "map(<lambda>) has changed"
    assert "range(9) -> map(<lambda>) -> batch(2)" in difference(one, step_digests(make(1).skip(1).plan))
    assert difference(one, step_digests(Dataset.range(8).map(lambda x: x).batch(2).plan)) == (
        "it was filled by range(9) where this pipeline has range(8)"
    )


def test_of_a_large_array_some_values_count_and_it_is_not_copied():
    large = np.zeros((3, 1 << 24), np.uint16)
    ran = Dataset.from_tensor_slices(large)
    before = step_digests(ran.plan)
    large[1, 12345] = 1
    assert step_digests(ran.plan) == before  # this value is not among them
    large[:, ::2] = 7
    assert difference(before, step_digests(ran.plan))
    turned = Dataset.from_tensor_slices(large.T)
    assert difference(before, step_digests(turned.plan))
