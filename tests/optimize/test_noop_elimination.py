"""noop_elimination: operations that pass on every element as it is are left out."""

import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest

from dataset import Dataset, Options, TensorSpec
from dataset.optimize.driver import optimize
from dataset.testing import assert_elements_equal, check_rule, outcomes


class Pair(NamedTuple):
    x: Any
    y: Any


def fail(x):
    if x == 2:
        raise ValueError("two")
    return x


def both(x, y):
    return x, y


def pairs(kind=tuple):
    arrays = np.arange(3), np.arange(6).reshape(3, 2)
    return Dataset.from_tensor_slices(kind(arrays) if kind is tuple else kind(x=arrays[0], y=arrays[1]))


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
        lambda d: d.take(-1).take(-1),
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
        (lambda: Dataset.range(5).map(fail).take(5), "take(5) <- map(fail) <- range(5)"),
        (lambda: Dataset.range(5).filter(bool).take(5), "take(5) <- filter(bool) <- range(5)"),
        (lambda: Dataset.range(5).skip(1).take(2), "take(2) <- skip(1) <- range(5)"),
        (lambda: Dataset.range(5).take(2).skip(1), "skip(1) <- take(2) <- range(5)"),
        (lambda: pairs().select(1, 0), "select(1, 0) <- from_tensor_slices"),
        (lambda: pairs().select(0), "select(0) <- from_tensor_slices"),
        (lambda: pairs(dict).select("x", "y"), "select('x', 'y') <- from_tensor_slices"),
        (lambda: pairs(Pair).select("x", "y"), "select('x', 'y') <- from_tensor_slices"),
        (lambda: pairs().map(both).select(0, 1), "select(0, 1) <- map(both) <- from_tensor_slices"),
    ],
)
def test_does_not_fire(make, plan):
    check_rule("noop_elimination", make, plan)


def test_does_not_fire_where_leaving_out_nothing_would_change_the_spec():
    def make():
        return Dataset.from_tensor_slices(np.zeros((2, 3))).concatenate(Dataset.from_tensor_slices(np.zeros((0, 4))))

    check_rule("noop_elimination", make, "concatenate <- from_tensor_slices <- from_tensor_slices")


def test_leaves_out_the_empty_ones_of_many():
    def make(*counts):
        first, *others = map(Dataset.range, counts)
        for other in others:
            first = first.concatenate(other)
        return first

    check_rule("noop_elimination", lambda: make(0, 2, 0, 0, 3), "concatenate <- range(2) <- range(3)")
    check_rule("noop_elimination", lambda: make(0, 0, 4, 0), "range(4)")
    check_rule("noop_elimination", lambda: make(0, 0, 0), "range(0)")


def test_fires_in_every_branch():
    def branch():
        return Dataset.range(3).skip(0)

    check_rule("noop_elimination", lambda: Dataset.zip(branch(), branch().take(-1)), "zip <- range(3) <- range(3)")


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
    ],
)
def test_fires_on_what_does_nothing_to_this_input(make, plan):
    check_rule("noop_elimination", make, plan)


def odd(x):
    return x % 2 == 1


FAILING = [{0}, {3}, {1, 2, 4}, {8}, {7, 8}, set(range(9))]


@pytest.mark.parametrize("bad", FAILING)
@pytest.mark.parametrize("first", ["take", "skip", "shard"])
def test_what_fails_counts_in_one_as_in_two(bad, first):
    def check(x):
        if int(x) in bad:
            raise ValueError(f"bad {x}")
        return x

    off = Options()
    off.optimization.enabled = False
    for one, two in itertools.product([0, 1, 2, 3, 5], repeat=2):
        arguments = [(one + 1, one), (two + 1, two // 2)] if first == "shard" else [(one,), (two,)]
        seen = []
        dataset = Dataset.range(9).map(lambda x: seen.append(int(x)) or check(x))
        for given in arguments:
            dataset = getattr(dataset, first)(*given)
        fast, called = outcomes(iter(dataset)), list(seen)
        seen.clear()
        assert_elements_equal(fast, outcomes(iter(dataset.with_options(off))))
        assert called == seen


def test_take_stops_a_source_with_user_code_at_the_last_element():
    def numbers():
        yield from range(3)
        raise ValueError("went too far")

    signature = TensorSpec((), np.int64)
    for count in (3, 2):
        dataset = Dataset.from_generator(numbers, output_signature=signature).take(count)
        assert [int(x) for x in dataset] == list(range(count))


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: Dataset.range(3).map(lambda x: x), "range(3)"),
        (lambda: Dataset.range(3).map(lambda x: x, num_parallel_calls=2).batch(2), "batch(2) <- range(3)"),
        (lambda: Dataset.range(3).enumerate().map(lambda i, x: (i, x)), "enumerate <- range(3)"),
    ],
)
def test_a_map_that_gives_back_numbers_is_left_out(make, expected):
    check_rule("noop_elimination", make, expected)
    for batch in make().padded_batch(2):
        first = batch[0] if isinstance(batch, tuple) else batch
        first[...] = 0  # may be written to, as before


@pytest.mark.parametrize(
    "make",
    [
        lambda: Dataset.range(3).batch(2).map(lambda x: x),  # a map's spec has the sizes of the first element
        lambda: Dataset.from_tensor_slices(np.arange(3)).shuffle(2, seed=1).map(lambda x: x),
        lambda: pairs().map(lambda x, y: (x, y)),
        lambda: pairs().map(both),
        lambda: pairs(dict).map(lambda d: d),
        lambda: pairs(Pair).map(lambda pair: pair),
        lambda: Dataset.from_tensor_slices((np.arange(3),)).map(lambda x: (x,)),
    ],
)
def test_a_map_that_gives_back_its_element_stays_and_is_named(make):
    optimized = optimize(make().plan)
    assert [node for node in optimized.missed if node.rule == "noop_elimination"]
    assert optimized.plan.op == "map"
    assert "it returns its argument unchanged; leave it out" in make().explain()
    off = Options()
    off.optimization.enabled = False
    assert_elements_equal(list(make()), list(make().with_options(off)))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Dataset.range(3).map(lambda x: (x,)),
        lambda: Dataset.range(3).map(lambda x: -x),
        lambda: Dataset.range(3).map(int),
        lambda: Dataset.from_tensor_slices((np.arange(3),)).map(lambda x: x),  # a tuple becomes bare
        lambda: pairs().map(lambda x, y: (y, x)),
        lambda: pairs().map(lambda x, y: x),
        lambda: pairs().map(lambda x, y: [x, y]),
        lambda: pairs(Pair).map(tuple),
        lambda: Dataset.from_generator(lambda: [1, 2]).map(lambda x: x),  # what it is given only running tells
    ],
)
def test_a_map_that_changes_the_structure_is_not_said_to_do_nothing(make):
    assert not [node for node in optimize(make().plan).missed if node.rule == "noop_elimination"]


def test_a_batch_of_what_a_map_gives_back_may_be_written_to():
    for batch in Dataset.from_tensor_slices(np.arange(6).reshape(3, 2)).map(lambda x: x).batch(2):
        batch[:] = 1
