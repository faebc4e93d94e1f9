"""Run a filter together with the map below it: each result of the map is filtered immediately.

    before:  map(decode), filter(is_large)             a chunk is decoded, then filtered
    after:   map(decode), filter(is_large) together    each element is decoded and filtered; dropped ones are not kept

Legal if both have equal parallel settings. A predicate that is not declared parallel must not be called by several
threads at once, so a filter of a parallel map is left alone unless ``filter_parallelization`` is on.
"""

from __future__ import annotations

from dataset.ops.filter import Filter
from dataset.ops.map import Map
from dataset.optimize.fusion.fuse import fuse, takes_columns
from dataset.optimize.rule import Miss
from dataset.plan.node import Node


def fuse_map_and_filter(node: Node) -> Node | Miss | None:
    """Return the filter, marked to run together with the map below."""
    match node:
        case Filter(source=Map(), fused=False) if not takes_columns(node) and not takes_columns(node.source):
            return fuse(node)
    return None
