"""Leave it to a source which of its elements are taken: take, skip and shard become part of it.

    before:  from_tensor_slices(x) -> shard(8, 3) -> take(100)
    after:   from_tensor_slices(x[3:803:8])

    before:  range(10) -> skip(4)
    after:   range(4, 10)

Legal for range, from_tensor_slices and list_files: they know where each element is, none can fail, and no user code
makes them. Records of a file with an index may fail; but what is left out of them is not read in any case (see
ops/row_source.py). What is above, such as a shuffle, then stands directly on the source. Of a ``map`` in between, the
function would no longer be called for the elements that are left out, which its author may notice; so it stays where it
is. ``shard_by_process`` is no part of a source: a saved state may go to as many processes as there are then.
"""

from __future__ import annotations

from dataset.ops.map import Map
from dataset.ops.range import Range
from dataset.ops.row_source import RowSource
from dataset.ops.shard.shard import Shard
from dataset.ops.skip import Skip
from dataset.ops.take import Take
from dataset.optimize.rule import Miss
from dataset.plan.node import Node, UnaryNode


def push_down_slice(node: Node) -> Node | Miss | None:
    """Return the source of fewer elements, for a take, skip or shard directly over it."""
    match node:
        case Take(count=count) if count >= 0:
            places = slice(count)
        case Skip(count=count):
            places = slice(count if count >= 0 else node.source.cardinality(), None)
        case Shard():
            places = slice(node.index, None, node.num_shards)
        case _:
            return None
    if isinstance(node.source, Range | RowSource) and (node.source.is_certain or _leaves_unread(node)):
        return node.source.at(places)
    return _behind_map(node) if isinstance(node, Skip | Shard) else None


def _leaves_unread(node: UnaryNode) -> bool:
    """Return whether the op passes over rows that may fail. Not so take, which counts those only that did not."""
    return isinstance(node.source, RowSource) and not isinstance(node, Take)


def _behind_map(node: Skip | Shard) -> Miss | None:
    """Return a user function is called for elements that are then left out."""
    below = node.source
    lowest = None
    while isinstance(below, Map):
        lowest, below = below, below.source
    if lowest is None or not below.is_certain:
        return None
    return Miss(f"{lowest.described()} is called for the elements that are left out, too; write {node.op}() before it")
