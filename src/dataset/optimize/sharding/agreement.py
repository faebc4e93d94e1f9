"""Agreement of several processes on all random numbers.

An op without a seed draws one when it is created, a different one in each process. Here it gets a seed that is derived
from the common seed and the op's position in the plan, which are the same in all processes. Ops with a seed keep it.
All iteration counters restart: iterations over the dataset that was split do not count for its shares.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from dataset.ops.cache.cache import Cache
from dataset.ops.random_map import RandomMap
from dataset.ops.shard.shard_by_process import ShardByProcess
from dataset.plan.node import Node, inputs_first
from dataset.runtime.random.streams import derived_seed


class Agreement:
    """Assignment of the same seeds to the ops of a plan in all processes that share the plan and a seed.

    Ops upstream of an earlier split keep the seeds of that split.

    Args:
        plan: the plan as written by the user.
        seed: the common seed.
        rank: the rank of this process, if it runs the whole plan on its own data. Elements with the same index then get
            different random numbers in each process.
    """

    def __init__(self, plan: Node, seed: int, rank: int | None = None) -> None:
        self._own = () if rank is None else (rank,)
        nodes = inputs_first(plan)
        self._numbers = {node: number for number, node in enumerate(nodes)}
        self._agreed = {part for node in nodes if isinstance(node, ShardByProcess) for part in inputs_first(node)}
        self._seed = seed
        self._settled: dict[Node, Node] = {}

    def on(self, node: Node, like: Node) -> Node:
        """Return an op with its agreed seed; ``like`` is the corresponding op in the original plan."""
        if node.random is None:
            return node
        key = None
        if like not in self._agreed and node.random.seed is None:
            key = derived_seed(self._seed, self._numbers[like], *self._own)
        elif self._own and isinstance(node, RandomMap):
            key = derived_seed(node.random.key, *self._own)
        return dataclasses.replace(node, random=node.random.restarted(key))

    def on_all(self, plan: Node) -> Node:
        """Return a plan that every process runs with the same elements in the same order."""
        for node in inputs_first(plan, without=self._settled):
            moved = over(node, [self._settled[source] for source in node.inputs])
            self._settled[node] = _watched(in_order(self.on(moved, node)))
        return self._settled[plan]


def over(node: Node, inputs: Sequence[Node]) -> Node:
    """Return the node with other inputs, without any cached elements; the node itself if the inputs are unchanged."""
    if all(new is old for new, old in zip(inputs, node.inputs, strict=True)):
        return node
    moved = node.with_inputs(inputs)
    return moved.emptied() if isinstance(moved, Cache) else moved


def in_order(node: Node) -> Node:
    """Return the op, set to keep the order of its elements."""
    return node if node.deterministic else dataclasses.replace(node, deterministic=True)


def _watched(node: Node) -> Node:
    """Return the op; if it opens datasets returned by a function, it is set to check them for agreement."""
    if not any(field.name == "must_match_across_processes" for field in dataclasses.fields(node)):
        return node
    return dataclasses.replace(node, must_match_across_processes=True)  # type: ignore[call-arg]  # it has the field
