"""Pass over the elements that skip leaves out, instead of making them.

    before:  from_tensor_slices(x) -> batch(100) -> skip(1000)     a thousand batches are made for nothing
    after:   from_tensor_slices(x) -> batch(100) -> skip(1000)     goes to row 100,000 at once

Legal where all below is certain (``Node.is_certain``): no element can fail, which skip would not count, and none takes
user code to make. Directly over a source, slice_pushdown leaves no skip at all.
"""

from __future__ import annotations

import dataclasses

from dataset.ops.skip import Skip
from dataset.plan.node import Node


def skip_by_seeking(node: Node) -> Node | None:
    """Return the same skip, marked to seek."""
    if isinstance(node, Skip) and node.count > 0 and not node.by_seeking and node.source.is_certain:
        return dataclasses.replace(node, by_seeking=True)
    return None
