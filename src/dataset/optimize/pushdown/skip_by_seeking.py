"""Seek past the elements that skip leaves out, instead of producing them.

    before:  from_tensor_slices(x) -> batch(100) -> skip(1000)     produces and drops a thousand batches
    after:   from_tensor_slices(x) -> batch(100) -> skip(1000)     seeks to row 100,000

Legal if everything upstream is exact (``is_exact``): no element can fail, which skip would not count, and no user
code runs. A skip directly above a source has already been merged into it by slice_pushdown.
"""

from __future__ import annotations

import dataclasses

from dataset.ops.skip import Skip
from dataset.plan.node import Node, is_exact


def skip_by_seeking(node: Node) -> Node | None:
    """Return the skip, marked to seek."""
    if isinstance(node, Skip) and node.count > 0 and not node.by_seeking and is_exact(node.source):
        return dataclasses.replace(node, by_seeking=True)
    return None
