"""Epochs: the iteration counters of ops that shuffle, for processes that resume in the middle of training.

Each iteration over a Dataset has a different order, because its shuffles count the iterations. A new process starts
counting at 0, so a worker process that is restarted for each epoch would always be at epoch 0.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from dataset.plan.node import Node, held_nodes, inputs_first, rebuilt
from dataset.plan.random_state import RandomState

OPENINGS_MAX = 1 << 32
"""The maximum number of passes of a repeat; an infinite repeat counts as this many."""


def with_epoch(plan: Node, epoch: int) -> Node:
    """Return the plan with its next iteration at number ``epoch``.

    All ops with a new order in each iteration (shuffle, random_map, random, sample_from_datasets) are then positioned
    as after ``epoch`` iterations in this process; the following iteration is number ``epoch`` + 1, and so on. Ops with
    the same order in every iteration are unchanged. Copies, such as a pickled plan, start at ``epoch``, too.

    Datasets returned by a user's function are created anew in each iteration, so they do not count iterations.

    Args:
        plan: the plan of a Dataset; ``Dataset(with_epoch(dataset.plan, epoch))`` makes a Dataset of the result.
        epoch: the number of the next iteration, from 0.

    >>> from dataset import Dataset
    >>> train = Dataset.range(5).shuffle(5, seed=1)
    >>> first, second, third = ([int(x) for x in train] for _ in range(3))
    >>> [int(x) for x in Dataset(with_epoch(train.plan, 2))] == third
    True
    """

    def later(node: Node) -> Node:
        changes: dict[str, Any] = {} if node.random is None else {"random": node.random.at(epoch)}
        for held in held_nodes(node):
            if (moved := rebuilt(held, later)) is not held:
                names = [field.name for field in dataclasses.fields(node)]
                changes |= {name: moved for name in names if getattr(node, name) is held}
        return dataclasses.replace(node, **changes) if changes else node

    return rebuilt(plan, later)


def random_states(plan: Node) -> list[RandomState]:
    """Return the random states of a plan, in a deterministic order, including those of the plans in fields of nodes."""
    found: dict[RandomState, None] = {}
    for node in inputs_first(plan):
        if node.random is not None:
            found[node.random] = None
        for held in held_nodes(node):
            found |= dict.fromkeys(random_states(held))
    return list(found)


def openings(plan: Node) -> dict[RandomState, int]:
    """Return how often one complete iteration of a plan opens each op with a random state, by random state.

    An operator derives its epoch from these numbers and its position in the plan: from the earlier passes of repeats,
    and from the inputs before its own that use the same op. So an epoch does not depend on the order of events, and a
    resumed iterator counts like the interrupted one.
    """
    waiting = [plan]
    while waiting:
        part = waiting.pop()
        uncounted = [source for source in part.inputs if _OPENINGS not in vars(source)]
        if uncounted:
            waiting += [part, *uncounted]
        elif _OPENINGS not in vars(part):
            vars(part)[_OPENINGS] = _count_openings(part)
    found: dict[RandomState, int] = vars(plan)[_OPENINGS]
    return found


_OPENINGS = "openings()"  # key of the cached result; no attribute can have this name


def _count_openings(node: Node) -> dict[RandomState, int]:
    below: list[dict[RandomState, int]] = [vars(source)[_OPENINGS] for source in node.inputs]
    held = [openings(part) for part in held_nodes(node)]
    passes = node.traits.passes
    times = min(passes, OPENINGS_MAX) if passes >= 0 else OPENINGS_MAX
    if node.random is None and times == 1 and len(below) == 1 and not held:
        return below[0]
    found: dict[RandomState, int] = {} if node.random is None else {node.random: 1}
    for counts in below:
        for key, count in counts.items():
            found[key] = found.get(key, 0) + count * times
    for counts in held:  # nodes that read in the node's place, or that it replaces
        for key, count in counts.items():
            found[key] = max(found.get(key, 0), count)
    return found
