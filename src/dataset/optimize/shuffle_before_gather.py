"""Shuffle the indices of in-memory arrays instead of their rows, and take the rows afterwards.

    before:  from_tensor_slices(x) -> shuffle(n)
    after:   range(len(x)) -> shuffle(n) -> gather(x)

The buffer then holds 8 bytes per element, and a batch is one take. Legal always: the draws do not depend on what is
shuffled, so the order is the same; and no user code stands between the arrays and the shuffle that could notice.
"""

from __future__ import annotations

import dataclasses

from dataset.ops.gather import Gather
from dataset.ops.range import Range
from dataset.ops.shuffle import Shuffle
from dataset.ops.tensor_slices import TensorSlices
from dataset.plan.node import Node


def shuffle_before_gather(node: Node) -> Node | None:
    """Gather over shuffled indices, for a shuffle directly over slices."""
    if not isinstance(node, Shuffle) or not isinstance(node.source, TensorSlices):
        return None
    slices = node.source
    indices = Range(0, slices.cardinality(), origin=slices.origin)
    shuffled = dataclasses.replace(node, source=indices)
    return Gather(shuffled, slices, name=slices.name, origin=slices.origin)
