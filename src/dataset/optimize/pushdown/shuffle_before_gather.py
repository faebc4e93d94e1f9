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

from dataset.plan.node import Node, RowsNode, walk


def shuffle_before_gather(node: Node) -> Node | None:
    """Return a gather of the op on indices, for a shuffle of slices or an op on the elements of a gather."""
    if not node.traits.positional:
        return None
    (gather,) = node.inputs
    if gather.traits.gathers:
        begins_passes = node.traits.permutes and any(below.traits.passes != 1 for below in walk(gather))
        return None if begins_passes else _moved(node, gather)
    return _gathered(node) if node.traits.permutes else None


def _gathered(node: Node) -> Node | None:
    """Return a gather of the rows, with ``node`` on their indices; None if there are other ops upstream."""
    if node.traits.positional:
        below = _gathered(node.inputs[0])
        return None if below is None else _moved(node, below)
    return node.gathered() if isinstance(node, RowsNode) else None


def _moved(node: Node, gather: Node) -> Node | None:
    """Return the gather above the op, which then selects row numbers.

    None for a take of rows that may fail: it would count them, while it must count only those that do not.
    """
    if node.traits.aligned and not gather.traits.infallible:
        return None
    return gather.with_inputs([node.with_inputs(gather.inputs)])
