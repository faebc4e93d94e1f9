"""Repeat a short source without reopening it for each pass.

    before:  range(10) -> repeat(100)     opens a hundred ranges of ten numbers each
    after:   range(10) -> cycle(100)      holds ten numbers and returns them a hundred times

Legal directly above sources that are exact: they have the same elements in each pass, cannot fail and call no user
code. The elements of one pass are held in memory. So they must be numbers, views or a single element, and at most
PASS_MAX; for longer passes, the cost of reopening is negligible.
"""

from __future__ import annotations

from dataset.ops.cache.repeat_in_memory import PASS_MAX, RepeatInMemory
from dataset.ops.repeat import Repeat
from dataset.plan.node import Node, is_exact


def push_down_repeat(node: Node) -> Node | None:
    """Return a cycle that replaces a repeat of a short source."""
    if type(node) is not Repeat or node.times == 0 or node.source.inputs:
        return None
    source, traits = node.source, node.source.traits
    if not (traits.generated or traits.views or source.cardinality() == 1):
        return None
    if not is_exact(source) or not 0 < source.cardinality() <= PASS_MAX:
        return None
    return RepeatInMemory(source, node.count, name=node.name, origin=node.origin)
