"""Have predicates called by several threads at once.

    before:  filter(is_sharp)
    after:   filter(is_sharp), AUTOTUNE parallel calls

Only where a user asks for it: the predicate is then called in other threads than the consumer's, several times at once,
and for elements that nobody has asked for yet. The order of the elements stays. Directly over a parallel map the filter
gets the settings of that, so that the two can be one. A predicate that runs on whole columns is left alone.
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
    """Return the same filter, with as many calls at once as there are cores or as the map below has."""
    if not isinstance(node, Filter) or node.num_parallel_calls is not None:
        return None
    if node.columnwise or is_vectorized(node.predicate):
        return Miss("the predicate runs on whole columns, which is quick")
    below = node.source
    if isinstance(below, Map) and below.num_parallel_calls is not None and not below.runs_in_processes:
        calls, deterministic = below.num_parallel_calls, below.deterministic
    else:
        calls, deterministic = AUTOTUNE, True
    return dataclasses.replace(node, num_parallel_calls=calls, deterministic=deterministic, joined=False)
