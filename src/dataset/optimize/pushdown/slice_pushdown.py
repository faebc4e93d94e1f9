"""Merge take, skip and shard into the source whose elements they choose.

    before:  from_tensor_slices(x) -> shard(8, 3) -> take(100)
    after:   from_tensor_slices(x[3:803:8])

    before:  range(10) -> skip(4)
    after:   range(4, 10)

Legal for range, from_tensor_slices and list_files: they have random access, no element can fail, and no user code runs.
Records of a file with an index may fail, but skipped records are not read in any case (ops/sources/row_source.py). Ops
downstream, such as a shuffle, are then directly above the source. A ``map`` in between prevents the rewrite: its
function would no longer be called for the elements that are left out, which the user could observe.
``shard_by_process`` is not merged, because a saved state may be loaded by a different number of processes.
"""

from __future__ import annotations

import numpy as np

from dataset.ops.elementwise import Elementwise
from dataset.plan.node import Miss, Node, RowsNode, is_exact, share_of


def push_down_slice(node: Node) -> Node | Miss | None:
    """Return the source with fewer elements, for a take, skip or shard directly above it."""
    traits = node.traits
    if not traits.positional or traits.permutes or traits.passes != 1 or share_of(node) is not None:
        return None
    (source,) = node.inputs
    # Rows that are skipped are not read, even if they may fail. A take only counts those that do not fail.
    if isinstance(source, RowsNode) and ((source.traits.indexable and not traits.aligned) or is_exact(source)):
        start, second = map(int, node.input_positions(np.array([0, 1], object)))
        step = second - start
        return source.subrange(slice(start, start + node.cardinality() * step, step))
    return None if traits.aligned else _downstream_of_map(node)


def _downstream_of_map(node: Node) -> Miss | None:
    """Return a Miss if a user's function is called for elements that are then left out."""
    (below,) = node.inputs
    lowest = None
    while isinstance(below, Elementwise) and below.traits.aligned:
        lowest, below = below, below.source
    if lowest is None or not is_exact(below):
        return None
    return Miss(f"{lowest.label()} is also called for the elements that are left out; write {node.op}() before it")
