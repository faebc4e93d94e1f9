"""Run a filter together with the map below it: what the map makes is looked at, and perhaps dropped, at once.

    before:  map(decode), filter(is_large)             a chunk is decoded, then looked through
    after:   map(decode), filter(is_large) together    each is decoded and looked at; what is dropped is never held

Legal where the two have equal parallel settings. A predicate that has not been declared parallel is not called by
several threads at once, so a filter over a parallel map is left alone unless ``filter_parallelization`` is on.
"""

from __future__ import annotations

from dataset.ops.filter import Filter
from dataset.ops.map import Map
from dataset.optimize.joining import joined, takes_columns
from dataset.optimize.rule import Miss
from dataset.plan.node import Node


def fuse_map_and_filter(node: Node) -> Node | Miss | None:
    """Return the same filter, run together with the map below."""
    match node:
        case Filter(source=Map(), joined=False) if not takes_columns(node) and not takes_columns(node.source):
            return joined(node)
    return None
