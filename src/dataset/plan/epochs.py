"""At which epoch the ops that shuffle stand: for processes that take up in the middle of a training.

An iterator over a Dataset draws another order than the one before, because its shuffles count the iterations over them.
A new process starts to count at 0, and a worker process that is made anew for each epoch stays there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, Protocol

from dataset.plan.node import Node, inputs_first

OPENINGS_MAX = 1 << 32
"""What counts as the number of passes of a repetition without end, and the most that one may have."""


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


def drawing_nodes(plan: Node) -> Iterator[Any]:
    """The nodes of a plan that draw random numbers, one for each counter; in an order that depends on nothing else.

    An op that does the work of others has their nodes in its fields.
    """
    found: set[int] = set()
    for node in inputs_first(plan):
        for part in (node, *(value for value in vars(node).values() if isinstance(value, Node))):
            counter = getattr(part, "counter", None)
            if counter is not None and getattr(part, "key", None) is not None and id(counter) not in found:
                found.add(id(counter))
                yield part


def openings(plan: Node) -> dict[Any, int]:
    """How often one complete run of a plan opens each op that has a counter, by counter.

    An operator finds its epoch from these numbers and from where it is in the plan: the runs before it of what repeats
    it, and the inputs before its own that use the same op. So an epoch depends on no order of events, and a resumed
    iterator counts as the one that was interrupted.
    """
    waiting = [plan]
    while waiting:
        part = waiting.pop()
        uncounted = [source for source in part.inputs if _OPENINGS not in vars(source)]
        if uncounted:
            waiting += [part, *uncounted]
        elif _OPENINGS not in vars(part):
            vars(part)[_OPENINGS] = _count_openings(part)
    found: dict[Any, int] = vars(plan)[_OPENINGS]
    return found


_OPENINGS = "openings()"  # where the answer is kept; no attribute can be called so


def _count_openings(node: Node) -> dict[Any, int]:
    below = [vars(source)[_OPENINGS] for source in node.inputs]
    held = [
        openings(value) for value in list(vars(node).values()) if isinstance(value, Node) and value not in node.inputs
    ]
    counter = getattr(node, "counter", None)
    times = min(node.passes, OPENINGS_MAX) if node.passes >= 0 else OPENINGS_MAX
    if counter is None and times == 1 and len(below) == 1 and not held:
        return below[0]  # type: ignore[no-any-return]  # kept by this function
    found: dict[Any, int] = {} if counter is None else {counter: 1}
    for counts in below:
        for key, count in counts.items():
            found[key] = found.get(key, 0) + count * times
    for counts in held:  # what reads in the node's place, or what it does the work of
        for key, count in counts.items():
            found[key] = max(found.get(key, 0), count)
    return found
