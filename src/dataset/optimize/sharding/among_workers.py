"""Division of a plan among the workers of ``distribute``: each runs a share, and a round robin restores the order.

    by elements    worker r of n computes the elements r, r + n, r + 2n ... of the plan. Legal if no worker need run
                   user code, or read data, for the elements of another: below the split, only positions are counted.
    by files       worker r reads the files r, r + n ... The order depends on the number of workers.
    whole          one worker runs the whole plan.

All shares draw the random numbers of the undivided plan, because they keep its random states.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from dataset.ops.shard.shard_by_process import ShardByProcess
from dataset.optimize.driver import optimize
from dataset.optimize.sharding.by_files import reason_against_files
from dataset.options import Options
from dataset.plan.block_cyclic_shard import BlockCyclicShard
from dataset.plan.cardinality import is_known
from dataset.plan.node import Node, inputs_first, is_infallible, share_of, walk


@dataclass(frozen=True)
class WorkerDivision:
    """How a plan is divided.

    Attributes:
        plan: the plan.
        way: ``"elements"``, ``"files"`` or ``"whole"``.
        workers: the number of workers, 1 for ``"whole"``.
        reason: why it is not divided by elements; empty if it is.
    """

    plan: Node
    way: str
    workers: int
    reason: str = ""

    def among(self, workers: int) -> WorkerDivision:
        """Return the division of the same plan among another number of workers."""
        return dataclasses.replace(self, workers=workers)

    def share(self, rank: int) -> Node:
        """Return the plan of one share."""
        if self.workers == 1:
            return self.plan
        shard = _shard(self.workers, rank)
        return _by_elements(self.plan, shard) if self.way == "elements" else _by_files(self.plan, shard)

    def optimized(self, rank: int, options: Options) -> Node:
        """Return the plan of one share as it runs."""
        return optimize(self.share(rank), options.optimization).plan


def divide(plan: Node, workers: int) -> WorkerDivision:
    """Return how to divide a plan among up to ``workers`` workers. Nothing runs."""
    reason = _reason_against_elements(plan, workers)
    if not reason:
        return WorkerDivision(plan, "elements", workers)
    if workers == 1:
        return WorkerDivision(plan, "whole", 1, reason)
    shard = _shard(workers, 0)
    against = reason_against_files(plan, shard, least_effort=True)
    *_, names = walk(plan)
    files = names.cardinality()
    if against and is_known(files) and 1 < files < workers:
        workers = files
        against = reason_against_files(plan, _shard(files, 0), least_effort=True)
    if not against:
        return WorkerDivision(plan, "files", workers, reason)
    return WorkerDivision(plan, "whole", 1, f"{reason}; {against}")


def _shard(workers: int, rank: int) -> BlockCyclicShard:
    return BlockCyclicShard(workers, rank, "keep", in_order=True)


def _reason_against_elements(plan: Node, workers: int) -> str:
    """Return why a worker could not leave out the elements of the others; empty if it can."""
    if not _needs_all_elements(plan, workers):
        return ""
    lowest = next(node for node in inputs_first(plan) if _needs_all_elements(node, workers))
    return f"{lowest} computes all elements to find those of one worker"


def _needs_all_elements(plan: Node, workers: int) -> bool:
    """Return whether a worker computes the elements of the others, too."""
    found = optimize(_by_elements(plan, _shard(max(workers, 2), 0))).plan
    splits = [node for node in walk(found) if share_of(node) is not None and node.traits.positional]
    return not all(is_infallible(split.inputs[0]) or split.inputs[0].traits.gatherable for split in splits)


def _by_elements(plan: Node, shard: BlockCyclicShard) -> Node:
    def sharded(node: Node, shard: BlockCyclicShard) -> Node:
        found = node.sharded(shard, sharded) if node.inputs else None
        return ShardByProcess(node, share=shard) if found is None else found.restarted()

    return sharded(plan, shard)


def _by_files(plan: Node, shard: BlockCyclicShard) -> Node:
    def sharded(node: Node, _: BlockCyclicShard) -> Node:
        found = node.sharded(shard, sharded) if not node.inputs else None
        return (found or node.with_inputs([sharded(source, shard) for source in node.inputs])).restarted()

    return sharded(plan, shard)
