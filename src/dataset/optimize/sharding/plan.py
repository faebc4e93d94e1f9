"""Plan of ``Dataset.shard_by_process``: checks the arguments, and decides whether to split files or elements."""

from __future__ import annotations

from typing import Any

from dataset.ops.shard.equalize_shards import EqualizeShards
from dataset.optimize.sharding.agreement import Agreement
from dataset.optimize.sharding.by_elements import deal_elements
from dataset.optimize.sharding.by_files import FileList, file_list
from dataset.optimize.sharding.counting import CannotCountError, Counts, require_countable
from dataset.plan.block_cyclic_shard import REMAINDERS, BlockCyclicShard
from dataset.plan.checks import require_int
from dataset.plan.node import Node

_OP = "shard_by_process"
_WAYS = ("auto", "files", "elements")


def shard_plan(plan: Node, rank: Any, world_size: Any, *, remainder: Any, by: Any, seed: Any, name: str | None) -> Node:
    """Return the plan for process ``rank`` of ``world_size``. The arguments are those of the method."""
    deal = _deal(rank, world_size, remainder)
    _require_one_of("by", by, _WAYS)
    seed = require_int(_OP, "seed", seed)
    if by != "elements":
        files = file_list(plan)
        reason = _against_files(files, deal, least_effort=by == "auto")
        if not reason:
            assert isinstance(files, FileList)  # otherwise there is a reason
            return _share_of_files(files, deal, Agreement(plan, seed, deal.rank), name)
        if by == "files":
            raise ValueError(f'{_OP}(): the files cannot be split between processes: {reason}; use by="elements"')
    return deal_elements(plan, deal, Agreement(plan, seed), name)


def _against_files(files: FileList | str, deal: BlockCyclicShard, *, least_effort: bool) -> str:
    """Return the reason not to split files; empty if there is none."""
    if isinstance(files, str):
        return files
    if len(files) < deal.world_size:
        return f"there are {len(files)} files for {deal.world_size} processes"
    if least_effort and not files.are_opened:
        return "each file is one element, so splitting by elements is equivalent"
    if deal.remainder != "keep" and not files.is_endless:
        try:
            require_countable(files.part(deal.world_size, deal.rank))
        except CannotCountError as error:
            return f"{error}, so the processes may get different numbers; repeat() before it would help"
    return ""


def _share_of_files(files: FileList, deal: BlockCyclicShard, agreement: Agreement, name: str | None) -> Node:
    share = files.part(deal.world_size, deal.rank, agreement)
    if deal.world_size == 1 or deal.remainder == "keep" or files.is_endless:
        return share
    parts = tuple(files.part(deal.world_size, rank) for rank in range(deal.world_size))
    return EqualizeShards(share, deal.rank, deal.remainder, Counts(parts), name=name)


def _deal(rank: Any, world_size: Any, remainder: Any) -> BlockCyclicShard:
    if rank is None or world_size is None:
        raise ValueError(f"{_OP}(): give rank and world_size, or neither, got rank={rank!r}, world_size={world_size!r}")
    world_size = require_int(_OP, "world_size", world_size, minimum=1)
    rank = require_int(_OP, "rank", rank, minimum=0)
    if rank >= world_size:
        raise ValueError(f"{_OP}(): rank must be below world_size, {world_size}, got {rank}")
    _require_one_of("remainder", remainder, REMAINDERS)
    return BlockCyclicShard(world_size, rank, remainder)


def _require_one_of(argument: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{_OP}(): {argument} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
