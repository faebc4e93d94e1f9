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

from dataset.ops.map import Map
from dataset.ops.shard.shard import Shard
from dataset.ops.skip import Skip
from dataset.ops.sources.range import Range
from dataset.ops.sources.row_source import RowSource
from dataset.ops.take import Take
from dataset.optimize.rule import Miss
from dataset.plan.node import Node, is_exact


def push_down_slice(node: Node) -> Node | Miss | None:
    """Return the source with fewer elements, for a take, skip or shard directly above it."""
    match node:
        case Take(count=count) if count >= 0:
            places = slice(count)
        case Skip(count=count):
            places = slice(count if count >= 0 else node.source.cardinality(), None)
        case Shard():
            places = slice(node.index, None, node.num_shards)
        case _:
            return None
    # Rows that are skipped are not read, even if they may fail. A take only counts those that do not fail.
    skips_rows = node.source.traits.indexable and not isinstance(node, Take)
    if isinstance(node.source, Range | RowSource) and (skips_rows or is_exact(node.source)):
        return node.source.subrange(places)
    return _behind_map(node) if isinstance(node, Skip | Shard) else None


def _behind_map(node: Skip | Shard) -> Miss | None:
    """Return a Miss if a user's function is called for elements that are then left out."""
    below = node.source
    lowest = None
    while isinstance(below, Map):
        lowest, below = below, below.source
    if lowest is None or not is_exact(below):
        return None
    return Miss(f"{lowest.label()} is also called for the elements that are left out; write {node.op}() before it")
