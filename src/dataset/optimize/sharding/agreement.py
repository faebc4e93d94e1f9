"""Agreement of several processes on all random numbers.

An op without a seed draws one when it is created, a different one in each process. Here it gets a seed that is derived
from the common seed and the op's position in the plan, which are the same in all processes. Ops with a seed keep it.
All iteration counters restart: iterations over the dataset that was split do not count for its shares.
"""

from __future__ import annotations

import dataclasses

from dataset.plan.node import Node, ParallelNode, inputs_first, share_of
from dataset.runtime.random.streams import derived_seed


class Agreement:
    """Assignment of the same seeds to the ops of a plan in all processes that share the plan and a seed.

    Ops upstream of an earlier split keep the seeds of that split.

    Args:
        plan: the plan as written by the user.
        seed: the common seed.
        rank: the rank of this process, if it runs the whole plan on its own data and so needs other random numbers.
    """

    def __init__(self, plan: Node, seed: int, rank: int | None = None) -> None:
        self._own = () if rank is None else (rank,)
        nodes = inputs_first(plan)
        self._numbers = {node: number for number, node in enumerate(nodes)}
        self._agreed = {part for node in nodes if share_of(node) is not None for part in inputs_first(node)}
        self._seed = seed
        self._settled: dict[Node, Node] = {}

    def on(self, node: Node, like: Node, *, by_all: bool = False) -> Node:
        """Return an op with its agreed seed; ``like`` is the corresponding op in the original plan.

        If it is run ``by_all`` processes, they must yield the same elements in the same order.
        """
        found = node.restarted()
        if found.random is None:
            return found
        keeps_seed = found.random.seed is not None or like in self._agreed
        key = None if keeps_seed else derived_seed(self._seed, self._numbers[like], *self._own)
        return dataclasses.replace(found, random=found.random.restarted(key, agreed=by_all))

    def on_all(self, plan: Node) -> Node:
        """Return a plan that every process runs with the same elements in the same order."""
        for node in inputs_first(plan, without=self._settled):
            inputs = [self._settled[source] for source in node.inputs]
            moved = node.with_inputs(inputs) if inputs != list(node.inputs) else node
            self._settled[node] = in_order(self.on(moved, node, by_all=True))
        return self._settled[plan]


def in_order(node: Node) -> Node:
    """Return the op set to keep the order of its elements."""
    if isinstance(node, ParallelNode) and not node.deterministic:
        return dataclasses.replace(node, deterministic=True)
    return node
