"""Having several processes agree on everything that is left to chance below the place where they part.

An op without a seed draws a number when it is made, another one in each process. Here it gets one that follows from the
common seed and the op's place in the plan, which are the same everywhere.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from dataset.plan.node import Node, inputs_first
from dataset.runtime.rng import EpochCounter, derived_seed


class Agreement:
    """What processes that were given the same seed, and have built the same plan, give its ops.

    Args:
        plan: as the user wrote it.
        seed: common to all.
        rank: of this process, for ops that are not run over the same elements everywhere.
    """

    def __init__(self, plan: Node, seed: int, rank: int) -> None:
        self._numbers = {node: number for number, node in enumerate(inputs_first(plan))}
        self._seed = seed
        self._rank = rank

    def above(self, node: Node, like: Node) -> Node:
        """An op that runs over this process's elements only; ``like`` is what it was in the plan."""
        return self._settled(node, self._seed, self._numbers[like], 1 + self._rank)

    def below(self, plan: Node) -> Node:
        """All of a plan that every process runs."""
        settled: dict[Node, Node] = {}
        for node in inputs_first(plan):
            moved = with_sources(node, [settled[source] for source in node.inputs])
            moved = self._settled(moved, self._seed, self._numbers[node], 0)
            settled[node] = in_order(moved)
        return settled[plan]

    def _settled(self, node: Node, *key: int) -> Node:
        """The op with a seed of its own or the common one, and counting its iterations from 0 on."""
        if not _has(node, "counter"):
            return node
        changes: dict[str, Any] = {"counter": EpochCounter()}
        if getattr(node, "seed", None) is None:
            changes["key"] = derived_seed(*key)
        return dataclasses.replace(node, **changes)


def with_sources(node: Node, inputs: Sequence[Node]) -> Node:
    """The node over other inputs; itself where they are what they were."""
    unchanged = all(new is old for new, old in zip(inputs, node.inputs, strict=True))
    return node if unchanged else node.with_inputs(inputs)


def in_order(node: Node) -> Node:
    """The op, keeping the order of its elements, if it has been allowed not to."""
    return dataclasses.replace(node, deterministic=True) if _has(node, "deterministic") else node


def _has(node: Node, name: str) -> bool:
    return any(field.name == name for field in dataclasses.fields(node))
