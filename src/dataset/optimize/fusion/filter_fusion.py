"""Run consecutive filters as one: an element is passed to the second predicate immediately.

    before:  filter(is_large), filter(is_sharp)             one pass over a chunk for each
    after:   filter(is_large), filter(is_sharp) together    one pass for both

Legal if neither is parallel: the index of an element in the second filter, which errors name, depends on the first.
"""

from __future__ import annotations

from dataset.ops.filter import Filter
from dataset.optimize.fusion.fuse import fuse, takes_columns
from dataset.optimize.rule import Miss
from dataset.plan.node import Node


def fuse_filters(node: Node) -> Node | Miss | None:
    """Return the filter, marked to run together with the one below."""
    match node:
        case Filter(source=Filter(num_parallel_calls=None), fused=False, num_parallel_calls=None):
            return None if takes_columns(node) or takes_columns(node.source) else fuse(node)
    return None
