"""Sharding by elements: each process produces its own elements, and as few as possible of the others'.

    before:  from_tensor_slices(x) -> map(decode) -> batch(32)          for process 1 of 4
    after:   from_tensor_slices(x) -> shard_by_process(1 of 4, 32 at a time) -> map(decode) -> batch(32)

Legal for all ops with ``Node.sharded``; every process runs the whole of any other op. The plans of all processes have
the same form for any number of processes, so a state can be loaded in another process.
"""

from __future__ import annotations

import dataclasses

from dataset.ops.shard.pad_missing import PadMissing
from dataset.ops.shard.shard_by_process import ShardByProcess
from dataset.optimize.sharding.agreement import Agreement, in_order
from dataset.plan.block_cyclic_shard import BlockCyclicShard
from dataset.plan.node import Node


def share_of_elements(plan: Node, share: BlockCyclicShard, seed: int, name: str | None) -> Node:
    """Return the plan of one process's elements of ``plan``."""
    agreement = Agreement(plan, seed)

    def sharded(node: Node, shard: BlockCyclicShard) -> Node:
        found = node.sharded(shard, sharded) if node.inputs else None
        if found is None:
            return ShardByProcess(agreement.on_all(node), share=shard, name=name)
        found = agreement.on(found, node)
        return in_order(found) if shard.remainder == "pad" else found  # the zeros must come last

    if share.remainder != "pad":
        return sharded(plan, share)
    first = dataclasses.replace(share, rank=0)  # has elements if any process has
    return PadMissing(sharded(plan, share), (sharded(plan, first),), name=name)
