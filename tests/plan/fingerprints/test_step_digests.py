"""Digests that tell whether a pipeline filled a cache: alike for pipelines built alike, before and after they ran."""

import itertools

import numpy as np
import pytest
from test_content import ALIKE, DIFFERENT

from dataset import Dataset
from dataset.plan.fingerprints.step_digests import difference, stable_digests, step_digests

ENDLESS = {"unseeded shuffle"}


@pytest.mark.parametrize("plan", ALIKE)
def test_what_is_built_alike_is_alike_and_like_nothing_else_also_after_it_ran(plan):
    ran, fresh = ALIKE[plan](), ALIKE[plan]()
    before = step_digests(ran.plan)
    assert all(digest for _, digest in before)
    try:
        list(itertools.islice(ran, 9))
        _ = ran.element_spec
    except Exception:  # noqa: S110  # some of the functions take no such elements
        pass
    stored = stable_digests(ran.plan, before)
    assert stored == before
    assert difference(stored, step_digests(fresh.plan)) == ""
    assert sum(not difference(stored, step_digests(make().plan)) for make in ALIKE.values()) == 1


@pytest.mark.parametrize("plan", DIFFERENT)
def test_what_may_give_something_else_differs(plan):
    stored, other = (step_digests(DIFFERENT[plan](n).plan) for n in range(2))
    assert difference(stored, stored) == ""
    assert difference(stored, other)


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
