"""Call the function of a map in several threads.

    before:  map(decode)
    after:   map(decode), AUTOTUNE parallel calls

Opt-in: the function is then called concurrently, in other threads than the consumer's, and for elements that have not
been requested yet. Whether a Python function supports this cannot be determined automatically. The order of the
elements does not change. ``map(..., synchronous=True)`` is left alone, and so is a function that runs on whole columns,
which would gain little.
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
    """Return the map, set to make as many calls at once as there are cores, in order."""
    if not isinstance(node, Map | RandomMap) or node.num_parallel_calls is not None:
        return None
    if isinstance(node, Map) and node.synchronous:
        return None
    if is_vectorized(node.function) or (isinstance(node, Map) and node.columnwise):
        return Miss("the function runs on whole columns, which is fast; set num_parallel_calls= for parallel calls")
    return dataclasses.replace(node, num_parallel_calls=AUTOTUNE, deterministic=True)
