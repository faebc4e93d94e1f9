"""Have a map call its function from several threads.

    before:  map(decode)
    after:   map(decode), AUTOTUNE parallel calls

Only where a user asks for it: the function is then called in other threads than the consumer's, several times at once,
and for elements that nobody has asked for yet. Whether a Python function may be called so cannot be told by looking at
it. The order of the elements stays. ``map(..., synchronous=True)`` is left alone, and so is a function that runs on
whole columns: there, little is left to share.
"""

from __future__ import annotations

import dataclasses

from dataset.ops.map import Map
from dataset.ops.random_map import RandomMap
from dataset.optimize.rule import Miss
from dataset.options import AUTOTUNE
from dataset.plan.node import Node
from dataset.runtime.functions.vectorized import is_vectorized


def parallelize_map(node: Node) -> Node | Miss | None:
    """Return the same map, with as many calls at once as there are cores, in order."""
    if not isinstance(node, Map | RandomMap) or node.num_parallel_calls is not None:
        return None
    if isinstance(node, Map) and node.synchronous:
        return None
    if is_vectorized(node.function) or (isinstance(node, Map) and node.columnwise):
        return Miss("the function runs on whole columns, which is quick; num_parallel_calls= insists")
    return dataclasses.replace(node, num_parallel_calls=AUTOTUNE, deterministic=True)
