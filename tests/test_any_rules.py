"""Tests of random pipelines with any rules of the optimizer: only the cost changes. New rules are always included.

Rules that are disabled by default are also tested, so their effects are also bounded here.
"""

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chains.chain import Chain
from chains.draw import pipelines, rewritable_pipelines, shuffled_pipelines
from chains.model import plain
from dataset import Dataset, Options
from dataset.ops.prefetch import Prefetch
from dataset.optimize.driver import optimize
from dataset.options import OptimizationOptions
from dataset.plan.node import Node, inputs_first, walk
from dataset.testing import assert_elements_equal, outcomes
from support.libraries import Ours
from support.pipelines import only, unoptimized
from support.resuming import advanced

OURS = Ours()
THOROUGH = settings(max_examples=150, suppress_health_check=list(HealthCheck))
ANY = st.one_of(shuffled_pipelines(), rewritable_pipelines(), rewritable_pipelines(), pipelines())


RULES = frozenset(OptimizationOptions().names()) - {"enabled"}


NAMES = st.sets(st.sampled_from(sorted(RULES)), max_size=3)
SOME_RULES = st.one_of(NAMES.map(RULES.difference), NAMES).map(lambda rules: only(*rules))


def works_in_background(node: Node) -> bool:
    """Return whether the node prefetches, so that calls are made early and in any order."""
    return node.op == "prefetch" or getattr(node, "num_parallel_calls", None) is not None


Calls = dict[int, list[Any]]
"""The arguments of the calls of each function of a plan, by its number."""


def watched(dataset: Dataset[Any], where: int) -> tuple[Dataset[Any], Calls]:
    """Return the pipeline without prefetches, and the calls of those functions with their bit set in ``where``.

    The other functions are unchanged, because a rule may inspect a function.
    """
    calls: Calls = defaultdict(list)
    rewritten: dict[Node, Node] = {}
    for number, node in enumerate(inputs_first(dataset.plan)):
        moved = node.with_inputs([rewritten[source] for source in node.inputs])
        if isinstance(moved, Prefetch):
            moved = moved.source
        elif where >> number % 8 & 1:
            moved = dataclasses.replace(moved, **_watching(moved, calls[number]))
        rewritten[node] = moved
    return Dataset(rewritten[dataset.plan]), calls


def _watching(node: Node, calls: list[Any]) -> dict[str, Callable[..., Any]]:
    """Return the fields of a node that are functions, each wrapped by one that records its calls."""
    functions = {f.name: getattr(node, f.name) for f in dataclasses.fields(node) if f.repr}
    watch = _watching_iterations if node.op == "from_generator" else _watching_calls
    return {name: watch(value, calls) for name, value in functions.items() if callable(value) and not node.traits.pure}


def _watching_calls(function: Callable[..., Any], calls: list[Any]) -> Callable[..., Any]:
    def called(*args: Any) -> Any:
        calls.append([repr(arg) if isinstance(arg, Dataset) else plain(arg) for arg in args])
        return function(*args)

    return called


def _watching_iterations(function: Callable[..., Any], calls: list[Any]) -> Callable[..., Any]:
    def generate() -> Iterator[Any]:
        calls.append("started")
        for element in function():
            calls.append("asked")
            yield element
        calls.append("ended")

    return generate


def take(dataset: Dataset[Any], count: int) -> bool:
    """Read the first outcomes one by one; return whether all of them are elements."""
    with iter(dataset) as iterator:
        return not any(isinstance(outcome, Exception) for outcome in advanced(iterator, count))


def notes(found: list[Any]) -> list[list[str] | None]:
    return [getattr(outcome, "__notes__", None) for outcome in found]


def spec_of(plan: Node) -> str:
    """Return the spec, or the reason why there is none."""
    try:
        return repr(plan.element_spec)
    except Exception as error:  # the first element, which is computed to find the spec, may fail
        return f"{type(error).__name__}: {error}"


@THOROUGH
@given(ANY, SOME_RULES)
def test_elements_dtypes_failures_notes_cardinality_and_spec_are_the_same(pipeline: Chain, options: Options):
    expected = outcomes(iter(unoptimized(pipeline.make(OURS))))
    got = outcomes(iter(pipeline.make(OURS).with_options(options)))
    assert_elements_equal(got, expected)
    assert notes(got) == notes(expected)
    plan = pipeline.make(OURS).plan
    rewritten = optimize(plan, options.optimization).plan
    assert rewritten.cardinality() == plan.cardinality()
    assert spec_of(rewritten) == spec_of(plan)


@THOROUGH
@given(ANY, SOME_RULES, st.integers(1, 255), st.integers(0, 30))
def test_each_function_has_been_called_for_the_same_after_so_many_elements(pipeline, options, where, count):
    untouched, expected = watched(pipeline.make(OURS), where)
    dataset, calls = watched(pipeline.make(OURS), where)
    all_sound = take(unoptimized(untouched), count)
    take(dataset.with_options(options), count)
    if any(map(works_in_background, walk(optimize(dataset.plan, options.optimization).plan))):
        # Without background work, a failure may be found before all elements of a chunk are requested.
        for number, wanted in expected.items() if all_sound else ():
            assert Counter(map(repr, wanted)) <= Counter(map(repr, calls[number]))
    else:
        assert calls == expected
