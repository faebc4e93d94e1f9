"""Node and operator of picked: the elements of a source at given positions. Only ``elements_at`` creates it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dataset.plan.lazy import lazy_property
from dataset.plan.node import Node, UnaryNode, is_infallible
from dataset.plan.structure import LEAF
from dataset.plan.traits import Traits
from dataset.runtime.chunks.chunk import Array, Chunk
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import IndexedOperator, Operator, State, UnaryOperator


@dataclass(frozen=True, eq=False)
class SelectPositions(UnaryNode):
    """Node that gathers the elements of ``source`` at ``positions``; the source's operator is an IndexedOperator."""

    op: ClassVar[str] = "picked"
    positions: Array

    @lazy_property
    def traits(self) -> Traits:
        return replace(super().traits, pure=self.source.traits.pure)

    def cardinality(self) -> int:
        return len(self.positions)

    def parameters(self) -> dict[str, Any]:
        return {"positions": len(self.positions)}

    def lower(self, context: ExecutionContext) -> Operator:
        source = context(self.source)
        assert isinstance(source, IndexedOperator)
        return SelectPositionsOperator(source, self.positions)


def elements_at(node: Node, positions: Array) -> Node | None:
    """Return a plan of the elements at these existing positions, in this order; None if not supported.

    If each op of a plan makes one element from one element, replacing its sources by SelectPositions yields the plan's
    results at these positions.
    """
    if node.traits.gatherable:
        return SelectPositions(node, positions)
    below = node.input_positions(positions)
    inputs = [None if below is None else elements_at(source, below) for source in node.inputs]
    found = [source for source in inputs if source is not None]
    if not found or len(found) < len(inputs):
        return None
    return found[0] if node.traits.only_reorders and len(found) == 1 else node.with_inputs(found)


def source_of(node: Node, positions: Array) -> tuple[Node, Array] | None:
    """Return the source whose elements ops that only select and reorder pass on, and their positions in it.

    None if there is another op, or the position of an element is unknown.
    """
    while node.inputs:
        below = node.input_positions(positions) if node.traits.only_reorders and len(node.inputs) == 1 else None
        if below is None:
            return None
        (node,), positions = node.inputs, below
    return node, positions


class SelectPositionsOperator(UnaryOperator):
    """Operator that counts the elements it has returned. An exception counts as one element."""

    source: IndexedOperator

    def __init__(self, source: IndexedOperator, positions: Array) -> None:
        super().__init__(source)
        self.positions = positions
        self.given = 0

    def pull(self, n: int) -> Chunk | None:
        wanted = self.positions[self.given : self.given + n]
        if not len(wanted):
            return None
        try:
            chunk = self.source.gather(wanted)
        except Exception:
            self.given += 1
            raise
        self.given += chunk.length
        return chunk

    def save(self) -> State:
        return {"op": SelectPositions.op, "given": self.given}

    def load(self, state: State) -> None:
        self.given = int(state["given"])


class Gatherer:
    """Gatherer of elements of a node by position, through ops that only select and reorder.

    Args:
        node: the node.
        source: the operator of its source; None to return the numbers of the source's rows instead of its elements.
    """

    def __init__(self, node: Node, source: IndexedOperator | None) -> None:
        self._node = node
        self._source = source

    @classmethod
    def of(cls, node: Node, context: ExecutionContext, *, of_numbers: bool = False) -> Gatherer | None:
        """Return a gatherer; None if some elements could fail, or would cost more than reading them in order."""
        found = source_of(node, np.zeros(1, np.int64))
        if found is None or of_numbers:
            return None if found is None else cls(node, None)
        if not is_infallible(found[0]):
            return None
        source = context.unprofiled()(found[0])
        if isinstance(source, IndexedOperator):
            return cls(node, source)
        source.close()
        return None

    def __call__(self, positions: Array) -> Chunk:
        """Return the elements at these positions, in this order, or the first few of them (at least one)."""
        found = source_of(self._node, positions)
        assert found is not None  # or ``of`` would have returned None
        node, positions = found
        if self._source is not None:
            return self._source.gather(positions)
        rows: range = node.places  # type: ignore[attr-defined]  # of a RowSource
        return Chunk(LEAF, len(positions), [rows.start + rows.step * positions])

    def close(self) -> None:
        """Close the operator of the source."""
        if self._source is not None:
            self._source.close()
