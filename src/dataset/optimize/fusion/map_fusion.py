"""Run consecutive maps as one: each element is passed through all functions in one step.

    before:  map(crop), map(scale)             all elements of a chunk are cropped, then all are scaled
    after:   map(crop), map(scale) together    each is cropped and scaled while it is in the processor's cache

With parallel maps, elements are passed between threads once instead of twice. The number of concurrent calls of each
function does not change, nor does the order of calls if it was defined.

Legal for maps with equal settings: num_parallel_calls, deterministic and executor. Not for worker processes, because
the error for a process that dies names the function that was running. Not for functions marked as vectorized, which
take whole columns.
"""

from __future__ import annotations

from dataset.ops.map import Map
from dataset.optimize.fusion.fuse import fuse, takes_columns
from dataset.optimize.rule import Miss
from dataset.plan.node import Node


def fuse_maps(node: Node) -> Node | Miss | None:
    """Return the map, marked to run together with the one below."""
    match node:
        case Map(source=Map(), fused=False) if not takes_columns(node) and not takes_columns(node.source):
            return fuse(node)
    return None
