"""Plan of ``Dataset.shard_by_process``: checks the arguments, and decides whether to split files or elements."""

from __future__ import annotations

from typing import Any

from dataset.optimize.sharding.by_elements import share_of_elements
from dataset.optimize.sharding.by_files import reason_against_files, share_of_files
from dataset.plan.block_cyclic_shard import REMAINDERS, BlockCyclicShard
from dataset.plan.checks import require_int, require_one_of
from dataset.plan.node import Node

_OP = "shard_by_process"
_WAYS = ("auto", "files", "elements")


def shard_plan(plan: Node, rank: Any, world_size: Any, *, remainder: Any, by: Any, seed: Any, name: str | None) -> Node:
    """Return the plan for process ``rank`` of ``world_size``. The arguments are those of the method."""
    if rank is None or world_size is None:
        raise ValueError(f"{_OP}(): give rank and world_size, or neither, got rank={rank!r}, world_size={world_size!r}")
    world_size = require_int(_OP, "world_size", world_size, minimum=1)
    rank = require_int(_OP, "rank", rank, minimum=0)
    if rank >= world_size:
        raise ValueError(f"{_OP}(): rank must be below world_size, {world_size}, got {rank}")
    require_one_of(_OP, "remainder", remainder, REMAINDERS)
    require_one_of(_OP, "by", by, _WAYS)
    seed = require_int(_OP, "seed", seed)
    share = BlockCyclicShard(world_size, rank, remainder)
    if by == "files" and remainder == "repeat":
        raise ValueError(f'{_OP}(): remainder="repeat" needs by="elements"; use that, or another remainder')
    if by != "elements" and remainder != "repeat":
        reason = reason_against_files(plan, share, least_effort=by == "auto")
        if not reason:
            return share_of_files(plan, share, seed, name)
        if by == "files":
            raise ValueError(f'{_OP}(): the files cannot be split between processes: {reason}; use by="elements"')
    return share_of_elements(plan, share, seed, name)
