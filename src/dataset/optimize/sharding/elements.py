"""Dealing out elements: each process makes its own, and as little as possible of what is others'.

    before:  from_tensor_slices(x) -> map(decode) -> batch(32)          for process 1 of 4
    after:   from_tensor_slices(x) -> shard_by_process(1 of 4, 32 at a time) -> map(decode) -> batch(32)

An op says in its ``deal_below`` whether its share of the elements is made of a share of its input, and of which. One
that says nothing is run whole in every process. Where it is known beforehand that the rounds come out even, there is
nothing to be done about a remainder.
"""

from __future__ import annotations

import dataclasses

from dataset.ops.row_source import RowSource
from dataset.ops.shard_by_process import ShardByProcess, StandIn
from dataset.ops.shuffle import Shuffle
from dataset.optimize.sharding.agreement import Agreement, in_order
from dataset.plan.cardinality import is_known
from dataset.plan.deal import Deal
from dataset.plan.node import Node


def deal_elements(plan: Node, deal: Deal, agreement: Agreement, name: str | None) -> Node:
    """The plan that gives the elements of ``plan`` that are this process's."""
    dealing = _Dealing(agreement, name)
    share = dealing.share(plan, deal)
    return StandIn(share, name=name) if dealing.lacks_elements else share


class _Dealing:
    """One way down a plan."""

    def __init__(self, agreement: Agreement, name: str | None) -> None:
        self.agreement = agreement
        self.name = name
        self.lacks_elements = False  # so that there have to be zeros for some

    def share(self, node: Node, deal: Deal) -> Node:
        """What ``deal`` gives of the elements of a node, dealt out as far below it as its ops allow."""
        below = node.deal_below(deal) if node.inputs else None
        if below is None:
            return self._dealt(self.agreement.on_all(node), deal)
        shares = [self.share(source, below) for source in node.inputs]
        found = self.agreement.on(node.over_share(shares, deal), node)
        return in_order(found) if deal.remainder == "pad" else found  # zeros are the last, whoever is ready first

    def _dealt(self, node: Node, deal: Deal) -> Node:
        if not deal.gives_all and _comes_out_even(node, deal):
            deal = dataclasses.replace(deal, remainder="keep")
        self.lacks_elements |= deal.remainder == "pad"
        return ShardByProcess(node, deal, name=self.name)


def _comes_out_even(node: Node, deal: Deal) -> bool:
    count = node.cardinality()
    return is_known(count) and _is_counted(node) and deal.turns_in(count % deal.round) in {0, deal.world_size}


def _is_counted(node: Node) -> bool:
    """Whether exactly as many elements come, or exceptions in their places, as the node says."""
    if isinstance(node, Shuffle):
        return _is_counted(node.source)
    return node.is_certain or isinstance(node, RowSource)
