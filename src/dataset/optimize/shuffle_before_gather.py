"""Shuffle the indices of in-memory arrays instead of their rows, and take the rows as late as possible.

    before:  from_tensor_slices(x) -> shuffle(n) -> repeat(3)
    after:   range(len(x)) -> shuffle(n) -> repeat(3) -> gather(x)

    before:  zip(from_tensor_slices(x), from_tensor_slices(y)) -> repeat(3) -> shuffle(n)
    after:   range(len(x)) -> repeat(3) -> shuffle(n) -> gather((x, y))

The buffer then holds 8 bytes per element, a batch is one take, and of rows that skip and shard leave out nothing is
read. Legal because shuffle, repeat, take, skip, shard and shard_by_process do not look at what they move, so the order
is the same; and no user code stands between the arrays and the shuffle that could notice. One case is left alone: a
shuffle of what a repeat has shuffled in each pass. On indices it would read further ahead, into other passes. A shuffle
that stands in the plan twice numbers its epochs in the order in which passes begin, and would come to other orders.
"""

from __future__ import annotations

import dataclasses

from dataset.ops.gather import Gather
from dataset.ops.range import Range
from dataset.ops.repeat import Repeat
from dataset.ops.row_source import RowSource
from dataset.ops.shard.shard import Shard
from dataset.ops.shard.shard_by_process import ShardByProcess
from dataset.ops.shuffle.shuffle import Shuffle
from dataset.ops.skip import Skip
from dataset.ops.take import Take
from dataset.ops.tensor_slices import TensorSlices
from dataset.ops.zip import Zip
from dataset.plan.node import Node, walk

_Moving = Shuffle | Repeat | Take | Skip | Shard | ShardByProcess
"""The ops that only choose and order elements."""


def shuffle_before_gather(node: Node) -> Node | None:
    """Gather over the op on indices, for a shuffle over slices, and for what moves the elements of a gather."""
    if not isinstance(node, _Moving) or _makes_up_elements(node):
        return None
    if isinstance(node.source, Gather):
        if _counts_failures(node, node.source):
            return None
        moved = node.source.source
        begins_passes = isinstance(node, Shuffle) and any(isinstance(below, Repeat) for below in walk(moved))
        return None if begins_passes else _with_source(node.source, dataclasses.replace(node, source=moved))
    return _gathered(node) if isinstance(node, Shuffle) else None


def _gathered(node: Node) -> Gather | None:
    """Return the rows at what ``node`` makes of their numbers; None where there is anything else below."""
    if isinstance(node, _Moving) and not _makes_up_elements(node):
        below = _gathered(node.source)
        return (
            None
            if below is None or _counts_failures(node, below)
            else _with_source(below, dataclasses.replace(node, source=below.source))
        )
    rows = _as_rows(node)
    if rows is None:
        return None
    taken = rows.places
    numbers = Range(taken.start, taken.stop, taken.step, origin=rows.origin)
    return Gather(numbers, rows.with_rows(rows.all_rows), name=rows.name, origin=rows.origin)


def _makes_up_elements(node: Node) -> bool:
    """Return whether the op may say that an element is missing, of which there is no number."""
    return isinstance(node, ShardByProcess) and node.deal.remainder == "pad"


def _counts_failures(node: Node, gather: Gather) -> bool:
    """Return whether the op would count rows that fail, where it has to count only those that did not."""
    return isinstance(node, Take) and not gather.rows.is_certain


def _with_source(gather: Gather, source: Node) -> Gather:
    return dataclasses.replace(gather, source=source)


def _as_rows(node: Node) -> RowSource | None:
    """Return a source of rows, or several arrays of equally many rows side by side, as one node."""
    if isinstance(node, RowSource):
        return node
    if not isinstance(node, Zip):
        return None
    parts = [part for part in node.sources if isinstance(part, TensorSlices)]
    if len(parts) < len(node.sources) or len({(part.all_rows, part.places) for part in parts}) > 1:
        return None
    tensors = node.structure.unflatten([part.tensors for part in parts])
    return TensorSlices(tensors, rows=parts[0].rows, name=node.name, origin=node.origin)
