"""The driver of the optimizer: rules until none fires, a record of what fired, switches."""

import numpy as np
import pytest

from dataset import Dataset, Options, TensorSpec
from dataset.optimize import driver
from dataset.optimize.driver import LAST, RULES, optimize, optimize_subdataset
from dataset.options import OptimizationOptions
from dataset.plan.node import walk
from dataset.testing import assert_elements_equal
from support.pipelines import only, unoptimized


def ops(dataset_or_plan):
    return [node.label() for node in walk(getattr(dataset_or_plan, "plan", dataset_or_plan))]


def make():
    return Dataset.from_tensor_slices(np.arange(6)).skip(0).shuffle(3, seed=1).map(lambda x: x + 1).batch(2)


def test_every_rule_has_a_switch_of_its_name_and_every_switch_a_rule():
    assert {*RULES, *LAST} == set(OptimizationOptions().names()) - {"enabled", "shuffle_and_repeat_fusion"}


def test_rules_are_applied_until_none_fires():
    plan = optimize(Dataset.range(3).skip(0).take(-1).repeat(1).shard(1, 0).batch(2).take(-1).plan).plan
    assert ops(plan) == ["batch(2)", "range(3)"]

    plan = optimize(Dataset.from_tensor_slices(np.arange(5)).take(-1).shuffle(3, seed=1).plan).plan
    assert ops(plan) == ["gather(from_tensor_slices)", "shuffle(3, seed=1)", "range(5)"]


def test_the_record_names_rule_op_and_line_in_order():
    optimized = optimize(Dataset.range(3).skip(0).map(lambda x: x + 1).take(-1).plan)
    assert [(fired.rule, fired.label) for fired in optimized.fired] == [
        ("noop_elimination", "skip(0)"),
        ("map_vectorization", "map(<lambda>)"),
        ("noop_elimination", "take(-1)"),
    ]
    for fired in optimized.fired:
        assert "test_driver.py:" in str(fired)
        assert fired.rule in str(fired)


def test_a_plan_that_no_rule_changes_stays_the_very_same():
    plan = Dataset.range(3).map(str).take(2).plan
    optimized = optimize(plan)
    assert optimized.plan is plan
    assert optimized.fired == ()


def test_rewrites_inside_every_input():
    first, second, third = (Dataset.range(3).skip(0) for _ in range(3))
    plan = optimize(Dataset.zip(first, second.concatenate(third)).plan).plan
    assert ops(plan) == ["zip", "range(3)", "concatenate", "range(3)", "range(3)"]


def test_what_is_read_twice_is_rewritten_once_and_still_one():
    shared = Dataset.range(3).skip(0).map(lambda x: x + 1)
    optimized = optimize(Dataset.zip(shared, shared.take(2)).plan)
    first, second = optimized.plan.inputs
    assert second.inputs[0] is first
    assert [fired.label for fired in optimized.fired] == ["skip(0)", "map(<lambda>)"]


def test_a_chain_of_thousands_is_rewritten():
    dataset = Dataset.range(3)
    for _ in range(3000):
        dataset = dataset.skip(0)
    assert ops(optimize(dataset.plan).plan) == ["range(3)"]


def made_by(dataset):
    """The ops of the plan as it runs that some rules have made, with these."""
    rules = only("noop_elimination", "shuffle_before_gather", "map_vectorization", "map_and_batch_fusion")
    optimized = optimize(dataset.plan, rules.optimization)
    assert set(optimized.rules_of) <= set(walk(optimized.plan))
    return {node.label(): rules for node, rules in optimized.rules_of.items()}


def test_the_record_says_which_rules_made_a_node():
    dataset = Dataset.range(9).take(-1).map(lambda x: x + 1).batch(2).prefetch(1)
    assert made_by(dataset) == {
        "map(<lambda>)": ("map_vectorization", "map_and_batch_fusion"),
        "batch(2)": ("map_and_batch_fusion",),
    }


def test_nodes_that_a_rule_leaves_or_moves_are_not_of_its_making():
    assert made_by(Dataset.range(9).skip(0).batch(2).take(-1).shuffle(3)) == {}
    dataset = Dataset.from_tensor_slices(np.arange(5)).shuffle(3, seed=1).take(-1).batch(2)
    assert set(made_by(dataset)) == {"gather(from_tensor_slices)", "shuffle(3, seed=1)", "range(5)"}


def test_enabled_false_anywhere_in_the_chain_switches_all_rules_off():
    for dataset in (unoptimized(make()), unoptimized(Dataset.range(3)).skip(0).take(-1)):
        assert optimize(dataset.plan).fired == ()


@pytest.mark.parametrize("rule", [*RULES, *LAST])
def test_each_rule_can_be_switched_off_alone_and_works_alone(rule):
    options = Options()
    setattr(options.optimization, rule, False)
    assert rule not in {f.rule for f in optimize(make().with_options(options).plan).fired}
    assert {f.rule for f in optimize(make().plan, only(rule).optimization).fired} <= {rule}


def test_two_rules_that_undo_each_other_are_an_error_not_a_hang(monkeypatch):
    def flip(node):
        return Dataset.range(4).plan if node.label() == "range(3)" else None

    def flop(node):
        return Dataset.range(3).plan if node.label() == "range(4)" else None

    monkeypatch.setattr(driver, "RULES", {"noop_elimination": flip, "map_vectorization": flop})
    with pytest.raises(RuntimeError, match="optimizer"):
        optimize(Dataset.range(3).plan)


def increment(x):
    return x + 1


def allows(rule):
    return True


def columnwise_ops(plan):
    return [node.label() for node in walk(plan) if getattr(node, "columnwise", None) is not None]


def test_functions_in_a_subdataset_run_on_columns_if_it_may_have_many_elements():
    assert columnwise_ops(optimize_subdataset(Dataset.range(5000).map(increment).plan, allows)) == ["map(increment)"]
    batches = Dataset.range(5000).map(increment).batch(1000).plan
    assert columnwise_ops(optimize_subdataset(batches, allows)) == ["map(increment)"]
    few = Dataset.range(100).map(increment).plan
    assert optimize_subdataset(few, allows) is few
    unproven = Dataset.range(5000).map(str).plan
    assert optimize_subdataset(unproven, allows) is unproven
    disabled = Dataset.range(5000).map(increment).plan
    assert optimize_subdataset(disabled, lambda rule: False) is disabled


def test_a_subdataset_with_a_cache_that_is_returned_again_is_read_from_the_cache():
    made = []

    def generate():
        made.append(1)
        yield from range(3000)

    spec = TensorSpec((), np.int64)
    cached = Dataset.from_generator(generate, output_signature=spec).map(increment).cache()
    found = list(Dataset.range(3).flat_map(lambda _: cached).batch(1000))
    assert_elements_equal(np.concatenate(found), np.tile(np.arange(1, 3001), 3))
    assert made == [1]
