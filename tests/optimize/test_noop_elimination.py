"""noop_elimination: operations that pass on every element as it is are left out."""

import numpy as np
import pytest

from dataset import Dataset, Options
from dataset.optimize.driver import optimize
from dataset.testing import assert_elements_equal, check_rule
from support.pipelines import Pair, as_written, unoptimized


def fail(x):
    if x == 2:
        raise ValueError("two")
    return x


def both(x, y):
    return x, y


def odd(x):
    return x % 2 == 1


def pairs(kind=tuple):
    arrays = np.arange(3), np.arange(6).reshape(3, 2)
    return Dataset.from_tensor_slices(kind(arrays) if kind is tuple else kind(x=arrays[0], y=arrays[1]))


def check(make, plan):
    check_rule("noop_elimination", make, plan)


NOOPS = [
    lambda d: d.take(-1),
    lambda d: d.take(-7),
    lambda d: d.skip(0),
    lambda d: d.repeat(1),
    lambda d: d.shard(1, 0),
]
NOOPS += [
    lambda d: d.prefetch(0),
    lambda d: d.shuffle(1),
    lambda d: d.shuffle(1, seed=3, reshuffle_each_iteration=False),
]
NOOPS += [lambda d: d.with_options(Options()), lambda d: d.take(-1).skip(0).repeat(1).take(-1)]
NOOPS += [lambda d: d.concatenate(Dataset.range(0))]


@pytest.mark.parametrize("noop", NOOPS)
def test_fires(noop):
    check(lambda: noop(Dataset.range(5)), "range(5)")
    check(lambda: noop(Dataset.range(5).map(fail)).batch(2), "batch(2) <- map(fail) <- range(5)")
    check(lambda: noop(Dataset.range(5).repeat()).take(7), "take(7) <- repeat() <- range(5)")


STAY = [lambda d: d.take(0), lambda d: d.take(3), lambda d: d.skip(-1), lambda d: d.skip(1), lambda d: d.repeat(0)]
STAY += [lambda d: d.repeat(2), lambda d: d.repeat().take(3), lambda d: d.shard(2, 0), lambda d: d.prefetch(1)]
STAY += [lambda d: d.shuffle(2, seed=1), lambda d: d.batch(1), lambda d: d.concatenate(Dataset.range(1))]
STAY += [lambda d: d.map(fail).take(5), lambda d: d.filter(bool).take(5)]
STAY += [lambda d: d.skip(1).take(2), lambda d: d.take(2).skip(1)]
STAY += [lambda _: pairs().select(1, 0), lambda _: pairs().select(0), lambda _: pairs().map(both).select(0, 1)]
STAY += [lambda _: pairs(dict).select("x", "y"), lambda _: pairs(Pair).select("x", "y")]
# Without the empty dataset, the spec would be another.
STAY += [lambda _: pairs().concatenate(Dataset.from_tensor_slices((np.zeros(0, np.int64), np.zeros((0, 4), np.int64))))]


@pytest.mark.parametrize("transform", STAY)
def test_does_not_fire(transform):
    check(lambda: transform(Dataset.range(5)), as_written(transform(Dataset.range(5))))


def concatenated(*counts):
    first, *others = map(Dataset.range, counts)
    for other in others:
        first = first.concatenate(other)
    return first


@pytest.mark.parametrize(
    ("make", "plan"),
    [
        (lambda: Dataset.range(5).take(5), "range(5)"),
        (lambda: Dataset.range(5).take(99).batch(2), "batch(2) <- range(5)"),
        (lambda: pairs().batch(2).repeat(2).take(4), "repeat(2) <- batch(2) <- from_tensor_slices"),
        (lambda: Dataset.range(5).take(4).take(3), "take(3) <- range(5)"),
        (lambda: Dataset.range(9).filter(odd).take(2).take(3), "take(2) <- filter(odd) <- range(9)"),
        (lambda: Dataset.range(9).filter(odd).skip(1).skip(2), "skip(3) <- filter(odd) <- range(9)"),
        (lambda: Dataset.range(9).skip(-1).skip(2), "skip(-1) <- range(9)"),
        (lambda: Dataset.range(9).skip(2).skip(-1), "skip(-1) <- range(9)"),
        (lambda: Dataset.range(20).shard(3, 1).shard(2, 1), "shard(6, 4) <- range(20)"),
        (lambda: Dataset.range(40).shard(2, 1).shard(2, 0).shard(3, 2), "shard(12, 9) <- range(40)"),
        (lambda: pairs().select(0, 1), "from_tensor_slices"),
        (lambda: pairs().select(-2, np.int64(1)), "from_tensor_slices"),
        (lambda: Dataset.range(3).enumerate().select(0, 1).batch(2), "batch(2) <- enumerate <- range(3)"),
        (lambda: Dataset.from_tensors((1, None, (2, 3))).select(0, 1, 2), "from_tensors"),
        (lambda: concatenated(0, 2, 0, 0, 3), "concatenate <- range(2) <- range(3)"),
        (lambda: concatenated(0, 0, 4, 0), "range(4)"),
        (lambda: concatenated(0, 0, 0), "range(0)"),
    ],
)
def test_fires_on_what_does_nothing_to_this_input(make, plan):
    check(make, plan)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: Dataset.range(3).map(lambda x: x), "range(3)"),
        (lambda: Dataset.range(3).map(lambda x: x, num_parallel_calls=2).batch(2), "batch(2) <- range(3)"),
        (lambda: Dataset.range(3).enumerate().map(lambda i, x: (i, x)), "enumerate <- range(3)"),
    ],
)
def test_a_map_that_gives_back_numbers_is_left_out(make, expected):
    check(make, expected)
    for batch in make().padded_batch(2):
        first = batch[0] if isinstance(batch, tuple) else batch
        first[...] = 0  # may be written to, as before


NAMED = [lambda: pairs().map(lambda x, y: (x, y)), lambda: pairs().map(both), lambda: pairs(dict).map(lambda d: d)]
NAMED += [lambda: pairs(Pair).map(lambda pair: pair)]
NAMED += [lambda: Dataset.from_tensor_slices((np.arange(3),)).map(lambda x: (x,))]
NAMED += [lambda: Dataset.range(3).batch(2).map(lambda x: x)]  # a map's spec has the sizes of the first element
NAMED += [lambda: Dataset.from_tensor_slices(np.arange(3)).shuffle(2, seed=1).map(lambda x: x)]

CHANGING = [lambda: Dataset.range(3).map(lambda x: (x,)), lambda: Dataset.range(3).map(int)]
CHANGING += [lambda: pairs().map(lambda x, y: (y, x)), lambda: pairs().map(lambda x, y: x)]
CHANGING += [lambda: pairs().map(lambda x, y: [x, y]), lambda: pairs(Pair).map(tuple)]
CHANGING += [lambda: Dataset.from_tensor_slices((np.arange(3),)).map(lambda x: x)]  # a tuple becomes bare
CHANGING += [lambda: Dataset.from_generator(lambda: [1, 2]).map(lambda x: x)]  # what it is given only running tells


def missed(dataset):
    return [miss for miss in optimize(dataset.plan).missed if miss.rule == "noop_elimination"]


@pytest.mark.parametrize("make", NAMED)
def test_a_map_that_gives_back_its_element_stays_and_is_named(make):
    assert missed(make())
    assert optimize(make().plan).plan.op == "map"
    assert "it returns its argument unchanged; leave it out" in make().explain()
    assert_elements_equal(list(make()), list(unoptimized(make())))


@pytest.mark.parametrize("make", CHANGING)
def test_a_map_that_changes_the_structure_is_not_said_to_do_nothing(make):
    assert not missed(make())
