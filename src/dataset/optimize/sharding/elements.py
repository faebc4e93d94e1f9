"""Dealing out elements: each process makes its own, and as little as possible of what is others'.

    before:  from_tensor_slices(x) -> map(decode) -> batch(32)          for process 1 of 4
    after:   from_tensor_slices(x) -> shard_by_process(1 of 4, 32 at a time) -> map(decode) -> batch(32)

An op says in its ``deal_below`` whether its share of the elements is made of a share of its input, and of which. One
that says nothing is run whole in every process. The plans of all processes look the same, however many there are, so
that a state can go from one to another.
"""

from __future__ import annotations

from dataset.ops.shard.shard_by_process import PadMissing, ShardByProcess
from dataset.optimize.sharding.agreement import Agreement, in_order
from dataset.plan.block_cyclic_shard import BlockCyclicShard
from dataset.plan.node import Node


def deal_elements(plan: Node, deal: BlockCyclicShard, agreement: Agreement, name: str | None) -> Node:
    """Return the plan that gives the elements of ``plan`` that are this process's."""
    dealing = _Dealing(agreement, name)
    share = dealing.share(plan, deal)
    return PadMissing(share, name=name) if dealing.lacks_elements else share


class _Dealing:
    """One way down a plan."""

    def __init__(self, agreement: Agreement, name: str | None) -> None:
        self.agreement = agreement
        self.name = name
        self.lacks_elements = False  # so that there have to be zeros for some

    def share(self, node: Node, deal: BlockCyclicShard) -> Node:
        """Return what ``deal`` gives of the elements of a node, dealt out as far below it as its ops allow."""
        below = node.deal_below(deal) if node.inputs else None
        if below is None:
            return self._dealt(self.agreement.on_all(node), deal)
        shares = [self.share(source, below) for source in node.inputs]
        found = self.agreement.on(node.over_share(shares, deal), node)
        return in_order(found) if deal.remainder == "pad" else found  # zeros are the last, whoever is ready first

    def _dealt(self, node: Node, deal: BlockCyclicShard) -> Node:
        self.lacks_elements |= deal.remainder == "pad"
        return ShardByProcess(node, deal, name=self.name)
