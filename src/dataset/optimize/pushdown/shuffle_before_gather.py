"""Shuffle the indices of in-memory arrays instead of their rows, and gather the rows as late as possible.

    before:  from_tensor_slices(x) -> shuffle(n) -> repeat(3)
    after:   range(len(x)) -> shuffle(n) -> repeat(3) -> gather(x)

    before:  zip(from_tensor_slices(x), from_tensor_slices(y)) -> repeat(3) -> shuffle(n)
    after:   range(len(x)) -> repeat(3) -> shuffle(n) -> gather((x, y))

The buffer then holds 8 bytes per element, a batch is a single gather, and rows that skip and shard leave out are not
read. Legal because shuffle, repeat, take, skip, shard and shard_by_process do not depend on the elements, so the order
is the same, and no user code between the arrays and the shuffle could observe the change. One case is excluded: a
shuffle of a repeat of a shuffle. On indices it would read further ahead, into later passes. A shuffle that occurs twice
in the plan numbers its epochs in the order in which passes begin, so its orders would change.
"""

from __future__ import annotations

import dataclasses

from dataset.ops.gather import Gather
from dataset.ops.sources.range import Range
from dataset.ops.sources.row_source import RowSource
from dataset.ops.sources.tensor_slices import TensorSlices
from dataset.ops.take import Take
from dataset.ops.zip import Zip
from dataset.plan.node import Node, is_exact, walk


def shuffle_before_gather(node: Node) -> Node | None:
    """Return a gather of the op on indices, for a shuffle of slices or an op on the elements of a gather."""
    if not node.traits.positional:
        return None
    (gather,) = node.inputs
    if isinstance(gather, Gather):
        begins_passes = node.traits.permutes and any(below.traits.passes != 1 for below in walk(gather))
        return None if begins_passes else _moved(node, gather)
    return _gathered(node) if node.traits.permutes else None


def _gathered(node: Node) -> Gather | None:
    """Return a gather of the rows, with ``node`` on their indices; None if there are other ops upstream."""
    if node.traits.positional:
        below = _gathered(node.inputs[0])
        return None if below is None else _moved(node, below)
    rows = _as_rows(node)
    if rows is None:
        return None
    taken = rows.places
    numbers = Range(taken.start, taken.stop, taken.step, origin=rows.origin)
    return Gather(numbers, rows.with_rows(rows.all_rows), name=rows.name, origin=rows.origin)


def _moved(node: Node, gather: Gather) -> Gather | None:
    """Return the gather above the op, which then selects row numbers.

    None for a take of rows that may fail: it would count them, while it must count only those that do not.
    """
    if isinstance(node, Take) and not is_exact(gather.rows):
        return None
    return dataclasses.replace(gather, source=node.with_inputs(gather.inputs))


def _as_rows(node: Node) -> RowSource | None:
    """Return a source of rows, or a zip of arrays with the same number of rows, as one node."""
    if isinstance(node, RowSource):
        return node
    if not isinstance(node, Zip):
        return None
    parts = [part for part in node.sources if isinstance(part, TensorSlices)]
    if len(parts) < len(node.sources) or len({(part.all_rows, part.places) for part in parts}) > 1:
        return None
    tensors = node.structure.unflatten([part.tensors for part in parts])
    return TensorSlices(tensors, rows=parts[0].rows, name=node.name, origin=node.origin)
