"""Tests of random pipelines in this library, in tf.data, and in a model in plain Python.

The pipelines are the same in each run, so that a failure is caused by a change and not by chance. To try new ones, set
their number:

    CHAINS=3000 python -m pytest tests/oracle/test_tf_chains.py
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from compare import FAILED, assert_outcomes_equal, attempt, compare_specs, oracle, outcomes, to_numpy
from compare import plain as by_value
from hypothesis import HealthCheck, Phase, given, settings

from chains.model import Failure, Pipeline, differences, plain
from support.libraries import Ours
from support.strategies import pipelines

LIMIT = 100
CHAINS = os.environ.get("CHAINS")
THOROUGH = settings(
    max_examples=int(CHAINS or 200),
    derandomize=CHAINS is None,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)


def outcomes_in_tf(dataset: Any) -> list[Any]:
    """Return the outcomes of a tf.data.Dataset without its optimizations, because some of them move failures."""
    lib = oracle()
    options = lib.Options()
    options.experimental_optimization.apply_default_optimizations = False
    options.autotune.enabled = False
    return outcomes(iter(dataset.with_options(options)), lambda value: to_numpy(lib.tf, value), LIMIT)


def as_modelled(outcome: Any) -> Any:
    return FAILED if outcome is FAILED or isinstance(outcome, Failure) else plain(outcome)


def assert_modelled(modelled: list[Any], found: list[Any]) -> None:
    found = [as_modelled(outcome) for outcome in found]
    modelled = [as_modelled(outcome) for outcome in modelled]
    assert found == modelled, f"not as modelled\nfound:    {found!r}\nmodelled: {modelled!r}"


@pytest.mark.timeout(1800)  # after a failure, Hypothesis shrinks examples for up to five minutes
@THOROUGH
@given(pipelines())
def test_a_chain_is_the_same_in_all_three(pipeline: Pipeline):
    with differences() as known:
        modelled = pipeline.model()
    ours = pipeline.stages(Ours())
    found = outcomes(iter(ours[-1]), by_value, LIMIT)
    assert_modelled(modelled, found)
    lib = oracle()
    theirs = pipeline.stages(lib)
    if not known:
        expected = outcomes_in_tf(theirs[-1])
        assert_modelled(modelled, expected)
        assert_outcomes_equal(found, expected)
    for step, mine, other in zip(pipeline.steps, ours, theirs, strict=True):
        size, expected_size = mine.cardinality(), int(other.cardinality())
        if expected_size == lib.UNKNOWN and "sparse" in repr(pipeline):
            continue  # tf.data does not know the number of rows for unbatch() of sparse batches
        assert size == expected_size, f"cardinality {size} after {step.name}, in tf.data {expected_size}"
    spec = attempt(lambda dataset: dataset.element_spec, ours[-1])
    if isinstance(
        spec, Exception
    ):  # a part with a spec that is known only at run time is empty, or all its elements fail
        assert isinstance(spec, ValueError)
    else:
        compare_specs(spec, lib.spec(theirs[-1].element_spec), "compatible")
