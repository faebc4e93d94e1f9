"""Having several processes agree on everything that is left to chance.

An op without a seed draws a number when it is made, another one in each process. Here it gets one that follows from the
common seed and the op's place in the plan, which are the same everywhere. Ops that have a seed keep it. All count their
iterations anew: those over the dataset that was split, in whichever process, do not count for its shares.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from dataset.ops.cache.cache import Cache
from dataset.ops.random_map import RandomMap
from dataset.ops.shard.shard_by_process import ShardByProcess
from dataset.plan.node import Node, inputs_first
from dataset.runtime.random.streams import derived_seed


class Agreement:
    """What processes that were given the same seed, and have built the same plan, give its ops.

    Below an earlier split other processes, with other seeds, have agreed already; there it stays as it is.

    Args:
        plan: as the user wrote it.
        seed: common to all.
        rank: of this process, where all of the plan is run over data of its own; elements with the same number then get
            other random numbers in each.
    """

    def __init__(self, plan: Node, seed: int, rank: int | None = None) -> None:
        self._own = () if rank is None else (rank,)
        nodes = inputs_first(plan)
        self._numbers = {node: number for number, node in enumerate(nodes)}
        self._agreed = {part for node in nodes if isinstance(node, ShardByProcess) for part in inputs_first(node)}
        self._seed = seed
        self._settled: dict[Node, Node] = {}

    def on(self, node: Node, like: Node) -> Node:
        """Return an op; ``like`` is what it was in the plan."""
        if not _has(node, "counter"):
            return node
        changes: dict[str, Any] = {"counter": node.counter.restarted()}  # type: ignore[attr-defined]  # just asked
        if like not in self._agreed and getattr(node, "seed", None) is None:
            changes["key"] = derived_seed(self._seed, self._numbers[like], *self._own)
        elif self._own and isinstance(node, RandomMap):
            changes["key"] = derived_seed(node.key or 0, *self._own)
        return dataclasses.replace(node, **changes)

    def on_all(self, plan: Node) -> Node:
        """Return a plan that every process runs, in the same order in each."""
        for node in inputs_first(plan, without=self._settled):
            moved = over(node, [self._settled[source] for source in node.inputs])
            self._settled[node] = _watched(in_order(self.on(moved, node)))
        return self._settled[plan]


def over(node: Node, inputs: Sequence[Node]) -> Node:
    """Return the node over other inputs, whose elements are not those that it may have kept; itself over its own."""
    if all(new is old for new, old in zip(inputs, node.inputs, strict=True)):
        return node
    moved = node.with_inputs(inputs)
    return moved.emptied() if isinstance(moved, Cache) else moved


def in_order(node: Node) -> Node:
    """Return the op, keeping the order of its elements where it has been allowed not to."""
    return dataclasses.replace(node, deterministic=True) if _has(node, "deterministic") else node  # type: ignore[call-arg]


def _watched(node: Node) -> Node:
    """The op; where it opens datasets that a function makes, which nobody sees before, it looks at what it opens."""
    return dataclasses.replace(node, in_agreement=True) if _has(node, "in_agreement") else node  # type: ignore[call-arg]


def _has(node: Node, name: str) -> bool:
    return any(field.name == name for field in dataclasses.fields(node))
