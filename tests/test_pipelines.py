"""Tests of random pipelines against a model in plain Python: with and without optimizations, batched, in parallel."""

import dataclasses
import itertools
from typing import Any

from hypothesis import HealthCheck, assume, given, reject, settings
from hypothesis import strategies as st

from chains.chain import Chain
from chains.draw import pipelines, shuffles
from chains.model import EndlessError, Failure, plain
from dataset import INFINITE_CARDINALITY, Dataset
from dataset.plan.node import Node
from dataset.testing import no_leaks, outcomes
from support.libraries import Ours
from support.pipelines import unoptimized

OURS = Ours()
LIMIT = 100  # maximum outcomes of a prefix, which may be infinite
QUICK = settings(max_examples=100, suppress_health_check=list(HealthCheck))


def found(dataset: Dataset[Any]) -> list[Any]:
    return [plain(outcome) for outcome in outcomes(iter(dataset))]


def in_parallel(dataset: Dataset[Any], calls: int, *, where: int) -> Dataset[Any]:
    """Return the pipeline with parallel versions of the ops with their bit set in ``where``."""
    bits = itertools.count()

    def rewritten(node: Node) -> Node:
        node = node.with_inputs([rewritten(source) for source in node.inputs])
        if not hasattr(node, "num_parallel_calls") or not where >> next(bits) % 8 & 1:
            return node
        return dataclasses.replace(node, num_parallel_calls=calls)

    return Dataset(rewritten(dataset.plan))


@QUICK
@given(pipelines(), st.integers(1, 9))
def test_a_pipeline_gives_what_its_model_gives_optimized_or_not_and_many_at_once(pipeline: Chain, demand: int):
    expected = pipeline.model()
    assert found(pipeline.make(OURS)) == expected
    assert found(unoptimized(pipeline.make(OURS))) == expected
    together = pipeline.make(OURS).map(lambda *parts: {"parts": parts}).prefetch(demand)
    assert [
        plain(outcome["parts"] if isinstance(outcome, dict) else outcome) for outcome in outcomes(iter(together))
    ] == [outcome if isinstance(outcome, Failure | tuple) else (outcome,) for outcome in expected]


@QUICK
@given(pipelines(), st.integers(1, 4), st.integers(1, 255))
def test_a_pipeline_gives_the_same_in_parallel(pipeline: Chain, calls: int, where: int):
    with no_leaks():
        assert found(in_parallel(pipeline.make(OURS), calls, where=where)) == pipeline.model()


@QUICK
@given(pipelines(length_max=4), shuffles())
def test_a_shuffle_loses_and_adds_nothing(pipeline: Chain, shuffle):
    made = pipeline.make(OURS)
    # As in tf.data, repeat() of an unknown number of elements counts as infinite: a shuffle of all refuses it.
    assume(made.cardinality() != INFINITE_CARDINALITY)
    got = found(shuffle.apply(OURS, made))
    assert sorted(map(repr, got)) == sorted(map(repr, pipeline.model()))


@QUICK
@given(pipelines())
def test_cardinality_is_right_where_it_is_a_number_and_nothing_fails(pipeline: Chain):
    prefixes = pipeline.prefixes()
    try:
        assume(not any(isinstance(one, Failure) for prefix in prefixes for one in prefix.model(LIMIT)))
    except EndlessError:
        reject()  # an end after the limit
    for prefix, step in zip(prefixes, pipeline.steps[1:], strict=False):
        # As in tf.data, repeat() of an unknown number of elements counts as infinite, even if there are none.
        assume(step.text != ".repeat()" or prefix.model(1))
        # So do choosing from infinite datasets with any choices, and skipping all elements of one.
        assume("choose_from_datasets" not in step.text and step.text != ".skip(-1)")
    assert pipeline.make(OURS).cardinality() in {len(pipeline.model()), -2}
