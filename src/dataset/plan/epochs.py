"""At which epoch the ops that shuffle stand: for processes that take up in the middle of a training.

An iterator over a Dataset draws another order than the one before, because its shuffles count the iterations over them.
A new process starts to count at 0, and a worker process that is made anew for each epoch stays there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, Protocol

from dataset.plan.node import Node, inputs_first


class CountsIterations(Protocol):
    """What a node with random numbers keeps in its field ``counter``."""

    def at(self, iteration: int) -> Any:
        """A new one, whose next iteration has this number."""


def with_epoch(plan: Node, epoch: int) -> Node:
    """The same plan, of which the next iteration is number ``epoch``.

    All ops that give another order in each iteration (shuffle, random_map, random, sample_from_datasets) then stand
    where they would after ``epoch`` iterations in this process; the iteration after it is number ``epoch`` + 1, and so
    on. Ops with the same order in every iteration are not touched. Copies, such as a pickled plan, start there, too.

    Datasets that a user's function returns are made anew in each iteration, so nothing in them counts.

    Args:
        plan: of a Dataset; ``Dataset(with_epoch(dataset.plan, epoch))`` is one again.
        epoch: from 0.

    >>> from dataset import Dataset
    >>> train = Dataset.range(5).shuffle(5, seed=1)
    >>> first, second, third = ([int(x) for x in train] for _ in range(3))
    >>> [int(x) for x in Dataset(with_epoch(train.plan, 2))] == third
    True
    """
    moved: dict[Node, Node] = {}
    for node in inputs_first(plan):
        inputs = [moved[source] for source in node.inputs]
        unchanged = all(new is old for new, old in zip(inputs, node.inputs, strict=True))
        found = node if unchanged else node.with_inputs(inputs)
        counter: CountsIterations | None = getattr(node, "counter", None)
        moved[node] = found if counter is None else dataclasses.replace(found, counter=counter.at(epoch))  # type: ignore[call-arg]  # it has the field
    return moved[plan]


def counters(plan: Node) -> Iterator[tuple[Any, int]]:
    """The counters of a plan, each once, with the seed of the op that has it; in an order that depends on nothing else.

    An op that does the work of others has their nodes in its fields.
    """
    found: set[int] = set()
    for node in inputs_first(plan):
        for part in (node, *(value for value in vars(node).values() if isinstance(value, Node))):
            counter = getattr(part, "counter", None)
            key = getattr(part, "key", None)
            if counter is not None and key is not None and id(counter) not in found:
                found.add(id(counter))
                yield counter, key
