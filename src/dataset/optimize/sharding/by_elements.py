"""Sharding by elements: each process produces its own elements, and as few as possible of the others'.

    before:  from_tensor_slices(x) -> map(decode) -> batch(32)          for process 1 of 4
    after:   from_tensor_slices(x) -> shard_by_process(1 of 4, 32 at a time) -> map(decode) -> batch(32)

An op's ``shard_below`` returns the shard of its input from which it produces a shard of its elements. If it returns
None, every process runs the whole op. The plans of all processes have the same form for any number of processes, so a
state can be loaded in another process.
"""

from __future__ import annotations

from dataset.ops.shard.shard_by_process import PadMissing, ShardByProcess
from dataset.optimize.sharding.agreement import Agreement, in_order
from dataset.plan.block_cyclic_shard import BlockCyclicShard
from dataset.plan.node import Node


def deal_elements(plan: Node, deal: BlockCyclicShard, agreement: Agreement, name: str | None) -> Node:
    """Return the plan of this process's elements of ``plan``."""
    dealing = _Dealing(agreement, name)
    share = dealing.share(plan, deal)
    return PadMissing(share, name=name) if dealing.lacks_elements else share


class _Dealing:
    """Traversal of a plan that deals out elements."""

    def __init__(self, agreement: Agreement, name: str | None) -> None:
        self.agreement = agreement
        self.name = name
        self.lacks_elements = False  # if so, missing elements must be padded with zeros

    def share(self, node: Node, deal: BlockCyclicShard) -> Node:
        """Return the shard ``deal`` of the elements of a node, dealt out as far upstream as the ops allow."""
        below = node.shard_below(deal) if node.inputs else None
        if below is None:
            return self._dealt(self.agreement.on_all(node), deal)
        shares = [self.share(source, below) for source in node.inputs]
        found = self.agreement.on(node.over_shard(shares, deal), node)
        return in_order(found) if deal.remainder == "pad" else found  # the zeros must come last

    def _dealt(self, node: Node, deal: BlockCyclicShard) -> Node:
        self.lacks_elements |= deal.remainder == "pad"
        return ShardByProcess(node, deal, name=self.name)
