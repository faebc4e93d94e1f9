"""Run consecutive maps and filters as one: each element is passed through all functions in one step.

    before:  map(crop), map(scale)             all elements of a chunk are cropped, then all are scaled
    after:   map(crop), map(scale) together    each is cropped and scaled while it is in the processor's cache

With parallel maps, elements are passed between threads once instead of twice. The number of concurrent calls of each
function does not change, nor does the order of calls if it was defined.

Legal for ops with equal settings: num_parallel_calls, deterministic and executor. Not for worker processes, because
the error for a process that dies names the function that was running. Not for functions that take whole columns. Not
for parallel filters of a filter: the index of an element, which errors name, depends on the first one. A predicate that
is not declared parallel must not be called by several threads at once, so a filter of a parallel map is left alone
unless ``filter_parallelization`` is on.
"""

from __future__ import annotations

import dataclasses

from dataset.ops.elementwise import Elementwise
from dataset.optimize.rule import Rule
from dataset.plan.node import Miss, Node


def fusion(*, gives_results: bool, takes_results: bool) -> Rule:
    """Return the rule that fuses maps or filters with the maps or filters upstream.

    Args:
        gives_results: whether the rule is for maps, whose elements are the results of the function.
        takes_results: whether it fuses them with maps.
    """

    def rule(node: Node) -> Node | Miss | None:
        if not isinstance(node, Elementwise) or not isinstance(node.source, Elementwise) or node.fused:
            return None
        below = node.source
        if (node.traits.aligned, below.traits.aligned) != (gives_results, takes_results):
            return None
        are_filters = not gives_results and not takes_results
        is_parallel = node.num_parallel_calls is not None or below.num_parallel_calls is not None
        if node.takes_columns or below.takes_columns or (are_filters and is_parallel):
            return None
        return _fused(node, below)

    return rule


def _fused(node: Elementwise, below: Elementwise) -> Node | Miss:
    """Return the op marked to run together with its input, or the reason why it cannot."""
    if node.parallel_settings() != below.parallel_settings():
        return Miss(
            f"{below.label()} below it has different parallel settings ({_settings(below)}; here {_settings(node)})"
        )
    if node.executor != "thread":
        return Miss(
            "the functions may run in worker processes; call both in one function to send each element only once"
        )
    return dataclasses.replace(node, fused=True)


def _settings(node: Elementwise) -> str:
    return node.parallelism() or "one call at a time"
