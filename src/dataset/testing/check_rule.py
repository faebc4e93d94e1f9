"""Check of an optimizer rule: it must not change the elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dataset.dataset import Dataset
from dataset.optimize.driver import optimize
from dataset.options import Options
from dataset.plan.node import Node
from dataset.testing.elements import assert_elements_equal, outcomes


def check_rule(rule: str, make: Callable[[], Dataset[Any]], expected_plan: str) -> None:
    """Check that a rule, applied alone, produces a given plan and does not change the elements or the spec.

    Applying the rule again must not change the plan.

    Args:
        rule: the name of its switch in ``Options().optimization``.
        make: builds the pipeline. Random ops need seeds.
        expected_plan: the labels of the ops after the rule, the last one first, separated by `` <- ``. If the rule must
            not fire, the labels of the original plan.

    Raises:
        AssertionError: one of these statements is false.

    >>> check_rule("noop_elimination", lambda: Dataset.range(3).take(-1).batch(2), "batch(2) <- range(3)")
    """
    dataset = make()
    options = Options()
    for name in options.optimization.names():
        setattr(options.optimization, name, name in {"enabled", rule})
    once = optimize(dataset.plan, options.optimization)
    described = " <- ".join(_chain(once.plan))
    if described != expected_plan:
        raise AssertionError(f"the plan became {described!r}, expected {expected_plan!r}")
    if optimize(once.plan, options.optimization).fired:
        raise AssertionError(f"{rule} fires again on its own result {described!r}")
    if repr(once.plan.element_spec) != repr(dataset.element_spec):
        raise AssertionError(f"{rule} changed the spec to {once.plan.element_spec!r} from {dataset.element_spec!r}")
    off = Options()
    off.optimization.enabled = False
    plain = outcomes(iter(make().with_options(off)))
    assert_elements_equal(outcomes(iter(make().with_options(options))), plain)


def _chain(node: Node) -> list[str]:
    return [node.label(), *(part for source in node.inputs for part in _chain(source))]
