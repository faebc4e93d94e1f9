"""Elements of an input made again, by their positions: a state that tells which they were need not hold them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dataset.errors import StateError
from dataset.plan.cardinality import UNKNOWN_CARDINALITY
from dataset.plan.node import Node
from dataset.runtime.chunks.chunk import Array, Chunk
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, State

_STEP = 4096  # elements at a time


def can_be_made_again(node: Node) -> bool:
    """Whether each position gives the same element whenever it is asked for, whatever else is made."""
    if not node.random_access or node.cardinality() == UNKNOWN_CARDINALITY:
        return False
    return node.is_certain or node.picked(np.zeros(1, np.int64)) is not None


def made_again(build: ExecutionContext, node: Node, positions: Array) -> Chunk:
    """The elements of ``node`` at these positions, one or more of them, in any order, in operators of their own.

    Raises:
        StateError: if one of them fails now, or is not there any more.
    """
    ascending, where = np.unique(positions, return_inverse=True)
    try:
        made = list(_ascending(build.unobserved(), node, ascending))
    except StateError:
        raise
    except Exception as error:
        raise StateError(
            f"{node.located()}: an element that has been made before cannot be made again, which the saved state "
            f"needs: {error!r}; are the files and functions the same as then?"
        ) from error
    found = sum(chunk.length for chunk in made)
    if found != len(ascending):
        raise StateError(
            f"{node.located()}: {len(ascending)} elements have to be made again, which the saved state needs, but "
            f"there are {found}; are the data the same as then?"
        )
    return Chunk.concatenate(made).take(where)


def made_again_behind(build: ExecutionContext, node: Node, origin: State, positions: Array) -> Chunk:
    """The elements at these positions, counted from where ``origin``, a state of the operator of ``node``, was.

    All from the first to the last of them are made. There are as many, and none fails.
    """
    operator = build.unobserved()(node)
    first, last = int(positions.min()), int(positions.max())
    try:
        go_behind(operator, origin, first)
    except BaseException:
        operator.close()
        raise
    found: list[Chunk] = []
    wanted = np.unique(positions)
    for chunk in _pulled(operator, last + 1 - first):
        here = wanted[np.searchsorted(wanted, first) : np.searchsorted(wanted, first + chunk.length)]
        if len(here):
            found.append(chunk.take(here - first))
        first += chunk.length
    return Chunk.concatenate(found).take(np.searchsorted(wanted, positions))


def go_behind(operator: Operator, origin: State, count: int) -> None:
    """Have an operator stand so many elements behind a state of it; they are made where arithmetic does not tell."""
    state = operator.state_after(origin, count) if count else origin
    operator.load_state_dict(origin if state is None else state)
    while state is None and count:
        passed = operator.pass_over(count)
        if not passed:
            raise StateError(f"the input has {count} elements less than the saved state needs")
        count -= passed


def _ascending(build: ExecutionContext, node: Node, positions: Array) -> Iterator[Chunk]:
    plan = node.picked(positions)
    if plan is not None:
        yield from _pulled(build(plan), len(positions))
        return
    for run in np.split(positions, np.flatnonzero(np.diff(positions) != 1) + 1):
        operator = build(node)
        operator.seek(int(run[0]))
        yield from _pulled(operator, len(run))


def _pulled(operator: Operator, count: int) -> Iterator[Chunk]:
    try:
        while count:
            chunk = operator.pull(min(count, _STEP))
            if chunk is None:
                return
            count -= chunk.length
            yield chunk
    finally:
        operator.close()
