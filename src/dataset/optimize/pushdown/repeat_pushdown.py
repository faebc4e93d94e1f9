"""Repeat a short source without reopening it for each pass.

    before:  range(10) -> repeat(100)     opens a hundred ranges of ten numbers each
    after:   range(10) -> cycle(100)      holds ten numbers and returns them a hundred times

Legal directly above range, from_tensor_slices and from_tensors: they have the same elements in each pass, cannot fail
and call no user code. The elements of one pass are held in memory, so there may be at most PASS_MAX of them; for longer
passes, the cost of reopening is negligible.
"""

from __future__ import annotations

from dataset.ops.cache.repeat_in_memory import PASS_MAX, RepeatInMemory
from dataset.ops.repeat import Repeat
from dataset.ops.sources.range import Range
from dataset.ops.sources.tensor_slices import TensorSlices
from dataset.ops.sources.tensors import Tensors
from dataset.plan.node import Node


def push_down_repeat(node: Node) -> Node | None:
    """Return a cycle that replaces a repeat of a short source."""
    if type(node) is not Repeat or node.times == 0 or not isinstance(node.source, Range | TensorSlices | Tensors):
        return None
    if not node.source.is_exact or not 0 < node.source.cardinality() <= PASS_MAX:
        return None
    return RepeatInMemory(node.source, node.count, name=node.name, origin=node.origin)
