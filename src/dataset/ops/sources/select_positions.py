"""Node and operator of picked: the elements of a source at given positions. Only ``elements_at`` creates it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dataset.plan.lazy import lazy_property
from dataset.plan.node import Node, UnaryNode, is_infallible
from dataset.plan.structure import LEAF
from dataset.plan.traits import Traits
from dataset.runtime.chunks.chunk import Array, Chunk
from dataset.runtime.chunks.lineage import Lineage, later
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import IndexedOperator, Operator, UnaryOperator
from dataset.runtime.position import Position


@dataclass(frozen=True, eq=False)
class SelectPositions(UnaryNode):
    """Node that gathers the elements of ``source`` at ``positions``; the source's operator is an IndexedOperator."""

    op: ClassVar[str] = "picked"
    positions: Array
    passes: SourcePasses | None = field(default=None, kw_only=True, repr=False)
    """The passes over ``source`` that the elements are from, if ops that the plan does not contain repeat it."""

    @lazy_property
    def traits(self) -> Traits:
        return super().traits.having(pure=self.source.traits.pure)

    def cardinality(self) -> int:
        return len(self.positions)

    def parameters(self) -> dict[str, Any]:
        return {"positions": len(self.positions)}

    def lower(self, context: ExecutionContext) -> Operator:
        source = context(self.source)
        assert isinstance(source, IndexedOperator)
        return SelectPositionsOperator(source, self.positions, self.passes)


class SourcePasses(NamedTuple):
    """Passes over a source that elements come from.

    Attributes:
        numbers: the number of the pass, for each element.
        each: how many passes there are in each pass over the plan.
    """

    numbers: Array
    each: int

    def of(self, lineage: Lineage, start: int = 0) -> Lineage:
        """Return lineage of the elements from index ``start`` on that assumes the first pass with the right epochs."""
        return later(lineage, self.numbers[start : start + len(lineage)], self.each, nested=False)


def _passes_below(node: Node, positions: Array, below: Array, passes: SourcePasses | None) -> SourcePasses | None:
    """Return the passes that input elements of ``node`` are from, given those of its elements at ``positions``."""
    if node.traits.passes != 1:
        number, count = positions // node.inputs[0].cardinality(), max(1, node.traits.passes)
        if passes is not None:
            number, count = passes.numbers * count + number, passes.each * count
        passes = SourcePasses(number, count)
    if passes is not None and len(below) != len(positions):  # it makes batches
        each = -(-len(below) // len(positions))
        passes = SourcePasses(np.repeat(passes.numbers, each)[: len(below)], passes.each)
    return passes


def elements_at(node: Node, positions: Array, passes: SourcePasses | None = None) -> Node | None:
    """Return a plan of the elements at these existing positions, in this order; None if not supported.

    If each op of a plan makes one element from one element, replacing its sources by SelectPositions yields the plan's
    results at these positions.
    """
    if node.traits.gatherable:
        return SelectPositions(node, positions, passes=passes)
    below = node.input_positions(positions)
    if below is None:
        return None
    passes = _passes_below(node, positions, below, passes)
    inputs = [elements_at(source, below, passes) for source in node.inputs]
    found = [source for source in inputs if source is not None]
    if not found or len(found) < len(inputs):
        return None
    return found[0] if node.traits.only_reorders and len(found) == 1 else node.with_inputs(found)


def source_of(node: Node, positions: Array) -> tuple[Node, Array, SourcePasses | None] | None:
    """Return the source whose elements ops that only select and reorder pass on, and their positions in it.

    The third part is the passes over the source, if some of the ops repeat it. None if there is another op, or the
    position of an element is unknown.
    """
    passes: SourcePasses | None = None
    while node.inputs:
        below = node.input_positions(positions) if node.traits.only_reorders and len(node.inputs) == 1 else None
        if below is None:
            return None
        passes = _passes_below(node, positions, below, passes)
        (node,), positions = node.inputs, below
    return node, positions, passes


class SelectPositionsOperator(UnaryOperator):
    """Operator that counts the elements it has returned. An exception counts as one element."""

    op = SelectPositions.op

    source: IndexedOperator

    def __init__(self, source: IndexedOperator, positions: Array, passes: SourcePasses | None) -> None:
        super().__init__(source)
        self.positions = positions
        self.passes = passes

    def pull(self, n: int) -> Chunk | None:
        wanted = self.positions[self.at : self.at + n]
        if not len(wanted):
            return None
        try:
            chunk = self.source.gather(wanted)
        except Exception:
            self.at += 1
            raise
        if chunk.lineage is not None and self.passes is not None:
            chunk.lineage = self.passes.of(chunk.lineage, self.at)
        self.at += chunk.length
        return chunk

    def save(self) -> Position:
        return Position(self.op, self.at)

    def load(self, position: Position) -> None:
        self.at = position.at


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
        node, positions, passes = found
        if self._source is not None:
            chunk = self._source.gather(positions)
            if chunk.lineage is not None and passes is not None:
                chunk.lineage = passes.of(chunk.lineage)
            return chunk
        rows: range = node.places  # type: ignore[attr-defined]  # of a RowSource
        return Chunk(LEAF, len(positions), [rows.start + rows.step * positions])

    def close(self) -> None:
        """Close the operator of the source."""
        if self._source is not None:
            self._source.close()
