"""noop_elimination: operations that pass on every element as it is are left out."""

import numpy as np
import pytest

from dataset import Dataset, Options
from dataset.testing import check_rule


def fail(x):
    if x == 2:
        raise ValueError("two")
    return x


@pytest.mark.parametrize(
    "noop",
    [
        lambda d: d.take(-1),
        lambda d: d.take(-7),
        lambda d: d.skip(0),
        lambda d: d.repeat(1),
        lambda d: d.shard(1, 0),
        lambda d: d.prefetch(0),
        lambda d: d.shuffle(1),
        lambda d: d.shuffle(1, seed=3, reshuffle_each_iteration=False),
        lambda d: d.with_options(Options()),
        lambda d: d.take(-1).skip(0).repeat(1),
        lambda d: d.concatenate(Dataset.range(0)),
    ],
)
def test_fires(noop):
    check_rule("noop_elimination", lambda: noop(Dataset.range(5)), "range(5)")
    check_rule("noop_elimination", lambda: noop(Dataset.range(5)).batch(2), "batch(2) <- range(5)")
    check_rule("noop_elimination", lambda: noop(Dataset.range(5).map(fail)), "map(fail) <- range(5)")
    check_rule("noop_elimination", lambda: noop(Dataset.range(5).repeat()).take(7), "take(7) <- repeat() <- range(5)")


@pytest.mark.parametrize(
    ("make", "plan"),
    [
        (lambda: Dataset.range(5).take(0), "take(0) <- range(5)"),
        (lambda: Dataset.range(5).take(3), "take(3) <- range(5)"),
        (lambda: Dataset.range(5).skip(-1), "skip(-1) <- range(5)"),
        (lambda: Dataset.range(5).skip(1), "skip(1) <- range(5)"),
        (lambda: Dataset.range(5).repeat(0), "repeat(0) <- range(5)"),
        (lambda: Dataset.range(5).repeat(2), "repeat(2) <- range(5)"),
        (lambda: Dataset.range(5).repeat().take(3), "take(3) <- repeat() <- range(5)"),
        (lambda: Dataset.range(5).shard(2, 0), "shard(2, 0) <- range(5)"),
        (lambda: Dataset.range(5).prefetch(1), "prefetch(1) <- range(5)"),
        (lambda: Dataset.range(5).shuffle(2, seed=1), "shuffle(2, seed=1) <- range(5)"),
        (lambda: Dataset.range(5).batch(1), "batch(1) <- range(5)"),
        (lambda: Dataset.range(5).concatenate(Dataset.range(1)), "concatenate <- range(5) <- range(1)"),
    ],
)
def test_does_not_fire(make, plan):
    check_rule("noop_elimination", make, plan)


def test_does_not_fire_where_leaving_out_nothing_would_change_the_spec():
    def make():
        return Dataset.from_tensor_slices(np.zeros((2, 3))).concatenate(Dataset.from_tensor_slices(np.zeros((0, 4))))

    check_rule("noop_elimination", make, "concatenate <- from_tensor_slices <- from_tensor_slices")


def test_fires_in_every_branch():
    def branch():
        return Dataset.range(3).skip(0)

    check_rule("noop_elimination", lambda: Dataset.zip(branch(), branch().take(-1)), "zip <- range(3) <- range(3)")
