"""Dealing out elements: each process makes its own, and as little as possible of what is others'.

    before:  from_tensor_slices(x) -> map(decode) -> batch(32)          for process 1 of 4
    after:   from_tensor_slices(x) -> shard_by_process(1 of 4, 32 at a time) -> map(decode) -> batch(32)

An op says in its ``deal_below`` whether its share of the elements is made of a share of its input, and of which.
"""

from __future__ import annotations

from dataset.ops.shard_by_process import ShardByProcess, StandIn
from dataset.optimize.sharding.agreement import Agreement, in_order
from dataset.plan.deal import Deal
from dataset.plan.node import Node


def deal_elements(plan: Node, deal: Deal, agreement: Agreement, name: str | None) -> Node:
    """The plan that gives the elements of ``plan`` that are this process's."""
    share = _Dealing(agreement, deal, name).share(plan, deal)
    return StandIn(share, name=name) if deal.remainder == "pad" else share


class _Dealing:
    def __init__(self, agreement: Agreement, deal: Deal, name: str | None) -> None:
        self.agreement = agreement
        self.name = name
        self.pads = deal.remainder == "pad"

    def share(self, node: Node, deal: Deal) -> Node:
        """What ``deal`` gives of the elements of a node, dealt out as far below it as its ops allow."""
        below = node.deal_below(deal)
        if below is None or not node.inputs:
            return ShardByProcess(self.agreement.below(node), deal, name=self.name)
        over = node.over_share([self.share(source, below) for source in node.inputs], deal)
        over = self.agreement.above(over, node)
        return in_order(over) if self.pads else over  # a stand-in must stay the last
