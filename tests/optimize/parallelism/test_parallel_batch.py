"""parallel_batch: where a user asks for it, batches are stacked by several threads."""

from functools import partial

import pytest

from dataset import AUTOTUNE, Dataset
from dataset.ops.batch.batch import Batch
from dataset.optimize.driver import optimize
from dataset.plan.node import walk
from dataset.testing import check_operator, check_rule
from support.pipelines import switched_on

asked_for = partial(switched_on, "parallel_batch")


FIRES = {
    "batch": (lambda: Dataset.range(20).batch(3), "batch(3) <- range(20)"),
    "of batches": (lambda: Dataset.range(24).batch(3).batch(2), "batch(2) <- batch(3) <- range(24)"),
    "of a function": (lambda: Dataset.range(20).map(str).batch(3), "batch(3) <- map(str) <- range(20)"),
}


@pytest.mark.parametrize(("make", "plan"), FIRES.values(), ids=FIRES)
def test_fires_where_it_is_asked_for(make, plan):
    check_rule("parallel_batch", make, plan)
    batches = [n for n in walk(optimize(make().with_options(asked_for()).plan).plan) if isinstance(n, Batch)]
    assert [node.num_parallel_calls for node in batches] == [AUTOTUNE] * len(batches)
    assert "AUTOTUNE parallel calls" in make().with_options(asked_for()).explain()
    check_operator(lambda: make().with_options(asked_for()))


NEVER = {
    "is off by default": (lambda: Dataset.range(20).batch(3), False, None),
    "has a number": (lambda: Dataset.range(20).batch(3, num_parallel_calls=2), True, 2),
    "pads": (lambda: Dataset.range(20).padded_batch(3), True, None),
    "is ragged": (lambda: Dataset.range(20).ragged_batch(3), True, None),
}


@pytest.mark.parametrize(("make", "asked", "calls"), NEVER.values(), ids=NEVER)
def test_does_not_fire(make, asked, calls):
    optimized = optimize(make().with_options(asked_for()).plan if asked else make().plan)
    assert "parallel_batch" not in {fired.rule for fired in optimized.fired}
    assert [node.num_parallel_calls for node in walk(optimized.plan) if isinstance(node, Batch)] == [calls]


def test_the_map_below_still_writes_into_its_arrays():
    plan = optimize(Dataset.range(20).map(str).batch(3).with_options(asked_for()).plan).plan
    assert (plan.num_parallel_calls, plan.source.write_into_batch) == (AUTOTUNE, True)


def test_the_order_stays_even_where_the_options_let_it_go():
    options = asked_for()
    options.deterministic = False
    assert optimize(Dataset.range(20).batch(3).with_options(options).plan).plan.deterministic is True
