"""Sharding by files: each process reads its own files, and runs everything downstream on their records.

    before:  list_files(8 files) -> shuffle -> TFRecordDataset -> map(parse)     for process 1 of 4
    after:   list_files(2 files) -> shuffle -> TFRecordDataset -> map(parse)     files 1 and 5 of the list

Legal if all ops between the split and the list of names are ``separable``.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from dataset.ops.shard.equalize_shards import EqualizeShards
from dataset.ops.shard.pad_missing import PadMissing
from dataset.optimize.sharding.agreement import Agreement
from dataset.optimize.sharding.counting import CannotCountError, count, require_countable
from dataset.plan.block_cyclic_shard import BlockCyclicShard
from dataset.plan.cardinality import INFINITE_CARDINALITY
from dataset.plan.node import Node, walk


def reason_against_files(plan: Node, share: BlockCyclicShard, *, least_effort: bool) -> str:
    """Return the reason not to split the files that a plan reads; empty if there is none."""
    joining = joining_op(plan)
    if joining is not None:
        return f"{joining} follows the files and needs the elements of all of them together"
    *above, names = walk(plan)
    if names.sharded(share, lambda source, _: source) is None:
        return f"{names} is not a list of file names"
    if names.cardinality() < share.world_size:
        return f"there are {names.cardinality()} files for {share.world_size} processes"
    if least_effort and not any(node.traits.expands_elements for node in above):
        return "each file is one element, so splitting by elements is equivalent"
    if share.remainder != "keep" and not _is_endless(plan):
        try:
            require_countable(_part(plan, share, Agreement(plan, 0)))
        except CannotCountError as error:
            return f"{error}, so the processes may get different numbers; repeat() before it would help"
    return ""


def joining_op(plan: Node) -> Node | None:
    """Return the op nearest to the end that needs the elements of all sources together; None if there is none."""
    joining = (node for node in walk(plan) if len(node.inputs) > 1 or (node.inputs and not node.traits.separable))
    return next(joining, None)


def share_of_files(plan: Node, share: BlockCyclicShard, seed: int, name: str | None) -> Node:
    """Return the plan of the elements of ``plan`` from the files of one process. There must be no reason against it."""
    if share.world_size == 1 or share.remainder == "keep" or _is_endless(plan):
        return _part(plan, share, Agreement(plan, seed, share.rank))
    shares = [dataclasses.replace(share, rank=rank) for rank in range(share.world_size)]
    parts = tuple(_part(plan, each, Agreement(plan, seed, each.rank)) for each in shares)
    found = EqualizeShards(parts[share.rank], parts, count, share=share, name=name)
    return PadMissing(found, (parts[share.rank], *parts), name=name) if share.remainder == "pad" else found


def _is_endless(plan: Node) -> bool:
    """Return whether the output is infinite; no separable op makes it finite again."""
    return any(node.cardinality() == INFINITE_CARDINALITY for node in walk(plan))


def _part(plan: Node, share: BlockCyclicShard, agreement: Agreement) -> Node:
    """Return the plan over the files of one process."""

    def sharded(node: Node, shard: BlockCyclicShard) -> Node:  # noqa: ARG001  # the shard of the files is ``share``
        found: Any = node.sharded(share, sharded)
        if found is None:
            found = node.with_inputs([sharded(source, share) for source in node.inputs])
        if found.traits.passes < 0 and share.world_size > 1 and share.remainder != "keep":
            found = dataclasses.replace(found, process=str(share))
        return agreement.on(found, node)

    return sharded(plan, share)
