"""Run maps one after another as one: each element goes through all functions at once.

    before:  map(crop), map(scale)             all elements of a chunk are cropped, then all are scaled
    after:   map(crop), map(scale) together    each is cropped and scaled while it is in the processor's cache

Parallel maps are handed over once instead of twice. Each function gets as many calls at once as before, and in the same
order where it was called in order.

Legal for maps whose settings are equal: num_parallel_calls, deterministic and executor. Not for worker processes, where
the error for one that dies names the function that it was in. Functions marked as vectorized take whole columns, not
elements.
"""

from __future__ import annotations

from dataset.ops.map import Map
from dataset.optimize.joining import joined, takes_columns
from dataset.optimize.rule import Miss
from dataset.plan.node import Node


def fuse_maps(node: Node) -> Node | Miss | None:
    """Return the same map, run together with the one below."""
    match node:
        case Map(source=Map(), joined=False) if not takes_columns(node) and not takes_columns(node.source):
            return joined(node)
    return None
