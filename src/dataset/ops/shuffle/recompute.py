"""Recomputation of input elements by position, so that a state need not hold the elements."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dataset.amounts import STEP_ELEMENTS
from dataset.errors import StateError
from dataset.ops.sources.select_positions import elements_at
from dataset.plan.cardinality import UNKNOWN_CARDINALITY
from dataset.plan.node import Node, has_random_access, is_exact
from dataset.runtime.chunks.chunk import Array, Chunk
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, seek
from dataset.runtime.position import Position


def can_be_made_again(node: Node) -> bool:
    """Return whether each position always yields the same element, independent of other elements."""
    if not has_random_access(node) or node.cardinality() == UNKNOWN_CARDINALITY:
        return False
    return is_exact(node) or elements_at(node, np.zeros(1, np.int64)) is not None


def made_again(context: ExecutionContext, node: Node, positions: Array) -> Chunk:
    """Recompute the elements of ``node`` at these positions, at least one, in any order, with separate operators.

    Raises:
        StateError: if one of them fails or no longer exists.
    """
    ascending, where = np.unique(positions, return_inverse=True)
    try:
        made = list(_ascending(context.unprofiled(), node, ascending))
    except StateError:
        raise
    except Exception as error:
        raise StateError(
            f"{node}: an element that the saved state needs cannot be recomputed: {error!r}; check that the "
            "files and functions have not changed since the state was saved"
        ) from error
    found = sum(chunk.length for chunk in made)
    if found != len(ascending):
        raise StateError(
            f"{node}: the saved state needs {len(ascending)} elements to be recomputed, but only {found} "
            "exist; check that the data have not changed since the state was saved"
        )
    return Chunk.concatenate(made).take(where)


def made_again_behind(context: ExecutionContext, node: Node, origin: Position, positions: Array) -> Chunk:
    """Recompute the elements at these positions, counted from ``origin``, a state of the operator of ``node``.

    All elements from the first to the last position are computed. They must exist and not fail.
    """
    operator = context.unprofiled()(node)
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


def go_behind(operator: Operator, origin: Position, count: int) -> None:
    """Move an operator to ``count`` elements after one of its states."""
    missing = count - seek(operator, count, origin)
    if missing:
        raise StateError(f"the input has {missing} fewer elements than the saved state needs")


def _ascending(context: ExecutionContext, node: Node, positions: Array) -> Iterator[Chunk]:
    plan = elements_at(node, positions)
    if plan is not None:
        yield from _pulled(context(plan), len(positions))
        return
    for run in np.split(positions, np.flatnonzero(np.diff(positions) != 1) + 1):
        operator = context(node)
        seek(operator, int(run[0]))
        yield from _pulled(operator, len(run))


def _pulled(operator: Operator, count: int) -> Iterator[Chunk]:
    try:
        while count:
            chunk = operator.pull(min(count, STEP_ELEMENTS))
            if chunk is None:
                return
            count -= chunk.length
            yield chunk
    finally:
        operator.close()
