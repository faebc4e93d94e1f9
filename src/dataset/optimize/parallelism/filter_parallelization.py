"""Call predicates in several threads.

    before:  filter(is_sharp)
    after:   filter(is_sharp), AUTOTUNE parallel calls

Opt-in: the predicate is then called concurrently, in other threads than the consumer's, and for elements that have not
been requested yet. The order of the elements does not change. A filter directly above a parallel map gets the map's
settings, so that both can be fused. A predicate that runs on whole columns is left alone.
"""

from __future__ import annotations

import dataclasses

from dataset.ops.filter import Filter
from dataset.ops.map import Map
from dataset.optimize.rule import Miss
from dataset.options import AUTOTUNE
from dataset.plan.node import Node
from dataset.runtime.functions.vectorized import is_vectorized


def parallelize_filter(node: Node) -> Node | Miss | None:
    """Return the filter, set to make as many calls at once as there are cores, or as the map below it makes."""
    if not isinstance(node, Filter) or node.num_parallel_calls is not None:
        return None
    if node.columnwise or is_vectorized(node.predicate):
        return Miss("the predicate runs on whole columns, which is fast")
    below = node.source
    if isinstance(below, Map) and below.num_parallel_calls is not None and below.executor == "thread":
        calls, deterministic = below.num_parallel_calls, below.deterministic
    else:
        calls, deterministic = AUTOTUNE, True
    return dataclasses.replace(node, num_parallel_calls=calls, deterministic=deterministic, fused=False)
