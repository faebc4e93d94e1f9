"""Tests that computed states equal those that an iterator reaches, for random pipelines and positions."""

import contextlib

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from chains.chain import Chain
from chains.draw import pipelines, rewritable_pipelines, shuffled_pipelines
from chains.model import plain
from dataset.plan.node import walk
from dataset.runtime.context import open_plan
from support.libraries import Ours

OURS = Ours()
QUICK = settings(max_examples=100, suppress_health_check=list(HealthCheck))


def outcomes_of(root, limit=200):
    """Return the outcomes, one by one."""
    found = []
    while len(found) < limit:
        try:
            chunk = root.pull(1)
        except Exception as error:
            found.append(plain(error))
        else:
            if chunk is None:
                return found
            found.append(plain(chunk.only()))
    raise AssertionError("no end")


def check(pipeline, start, count, *, optimized):
    """Check the computed state ``count`` elements after ``start``; return whether there is one."""
    dataset = pipeline.make(OURS)
    plan = dataset._optimized.plan if optimized else dataset.plan
    coordinator, root = open_plan(plan)
    for _ in range(start):
        with contextlib.suppress(ValueError):
            root.pull(1)
    state = root.save()
    after = root.advance(state, count)
    rest = outcomes_of(root)
    coordinator.shut_down(root.close, wait=True)
    if after is None:
        return False
    assert count <= len(rest)
    coordinator, root = open_plan(plan)
    root.load(after)
    found = outcomes_of(root)
    coordinator.shut_down(root.close, wait=True)
    assert found == rest[count:]
    return True


@QUICK
@given(st.one_of(pipelines(), rewritable_pipelines()), st.integers(0, 12), st.integers(1, 12), st.booleans())
def test_of_any_pipeline(pipeline: Chain, start: int, count: int, optimized: bool):
    check(pipeline, start, count, optimized=optimized)


@QUICK
@given(shuffled_pipelines(), st.integers(0, 12), st.integers(1, 12), st.booleans())
def test_of_any_shuffled_pipeline(pipeline: Chain, start: int, count: int, optimized: bool):
    # Otherwise the second iteration has another order.
    assume(not any(getattr(node, "reshuffle_each_iteration", False) for node in walk(pipeline.make(OURS).plan)))
    check(pipeline, start, count, optimized=optimized)
