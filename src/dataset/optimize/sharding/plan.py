"""The plan of ``Dataset.shard_by_process``: checks its arguments, and decides what is dealt out."""

from __future__ import annotations

from typing import Any

from dataset.optimize.sharding.agreement import Agreement
from dataset.optimize.sharding.elements import deal_elements
from dataset.plan.checks import require_int
from dataset.plan.deal import REMAINDERS, Deal
from dataset.plan.node import Node

_OP = "shard_by_process"
_WAYS = ("auto", "files", "elements")


def shard_plan(plan: Node, rank: Any, world_size: Any, *, remainder: Any, by: Any, seed: Any, name: str | None) -> Node:
    """The share of process ``rank`` of ``world_size``. The arguments are those of the method."""
    deal = _deal(rank, world_size, remainder)
    _require_one_of("by", by, _WAYS)
    agreement = Agreement(plan, require_int(_OP, "seed", seed))
    return deal_elements(plan, deal, agreement, name)


def _deal(rank: Any, world_size: Any, remainder: Any) -> Deal:
    if rank is None or world_size is None:
        raise ValueError(f"{_OP}(): give rank and world_size, or neither, got rank={rank!r}, world_size={world_size!r}")
    world_size = require_int(_OP, "world_size", world_size, minimum=1)
    rank = require_int(_OP, "rank", rank, minimum=0)
    if rank >= world_size:
        raise ValueError(f"{_OP}(): rank must be below world_size, {world_size}, got {rank}")
    _require_one_of("remainder", remainder, REMAINDERS)
    return Deal(world_size, rank, remainder)


def _require_one_of(argument: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{_OP}(): {argument} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
