"""In-memory elements as a source: a window of another dataset, a group, or the content of a saved state.

``Elements`` is the node of datasets inside elements, which window() and group_by_window() return. It has no method of
Dataset.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

import numpy as np

from dataset.amounts import STEP_ELEMENTS
from dataset.errors import StateError
from dataset.plan.cardinality import INFINITE_CARDINALITY
from dataset.plan.lazy import lazy_property
from dataset.plan.node import MemoryNode, Node
from dataset.plan.traits import Traits
from dataset.runtime.chunks.chunk import Array, Chunk
from dataset.runtime.chunks.lineage import Lineage
from dataset.runtime.context import ExecutionContext, open_plan
from dataset.runtime.contract import IndexedOperator, Operator
from dataset.runtime.position import Position
from dataset.runtime.resources.exceptions import concerns_iteration

_KEPT_MAX = 1 << 20  # elements; a dataset with more is considered infinite


Failure: TypeAlias = tuple[int, Callable[[], Exception]]
"""The number of good elements before a failing one, and a function that creates its exception."""


def _not_asked() -> Any:
    raise AssertionError("this plan is only run")


@dataclass(frozen=True, eq=False)
class Elements(MemoryNode, seekable=True):
    """Node with the elements of ``chunk``, which must not be modified any more.

    ``spec`` returns the spec of the dataset that the elements were taken from, for plans that are visible to users.
    ``static`` says whether it runs nothing for that. ``failures`` are the failing elements, in order.
    """

    op: ClassVar[str] = "elements"
    chunk: Chunk
    spec: Callable[[], Any] = field(default=_not_asked, repr=False)
    static: bool = field(default=False, repr=False)
    failures: tuple[Failure, ...] = field(default=(), repr=False)

    @lazy_property
    def traits(self) -> Traits:
        return super().traits.having(static_spec=self.static, exact=not self.failures)

    def parameters(self) -> dict[str, Any]:
        return {"elements": self.chunk.length, "failures": len(self.failures)}

    def fingerprint_fields(self) -> Any:
        return [self.chunk.structure, self.chunk.columns()]

    def _element_spec(self) -> Any:
        return self.spec()

    def cardinality(self) -> int:
        return self.chunk.length

    def label(self) -> str:
        return f"elements({self.chunk.length})"

    def elements_in_memory(self) -> Chunk | None:
        return None if self.failures else self.chunk

    def lower(self, context: ExecutionContext) -> Operator:  # noqa: ARG002  # has no inputs to build
        return ElementsOperator(self.chunk, self.failures)


class ElementsOperator(IndexedOperator):
    """Operator that reads in-memory elements.

    Args:
        elements: the elements.
        failures: the failing elements, in order.
        lineage: returns the lineage of the elements at some positions; default: that of ``elements``.
    """

    op = Elements.op
    saved = ("raised",)

    def __init__(
        self,
        elements: Chunk,
        failures: Sequence[Failure] = (),
        lineage: Callable[[Array], Lineage] | None = None,
    ) -> None:
        self.elements = elements
        self._lineage = lineage
        self.failures = failures
        self.raised = 0  # number of failures raised
        self.unpacks = elements.is_packed
        """Whether to convert RaggedColumns to lists; operators that read from this one may turn it off."""

    def pull(self, n: int) -> Chunk | None:
        start, stop = self.at, min(self.at + n, self.elements.length)
        if self.raised < len(self.failures):
            place, make_error = self.failures[self.raised]
            if place == start:
                self.raised += 1
                raise make_error()
            stop = min(stop, place)
        if start == stop:
            return None
        self.at = stop
        chunk = self.elements.slice(start, stop)
        if self.unpacks:
            chunk = chunk.unpacked()
        return chunk if self._lineage is None else chunk.with_lineage(self._lineage(np.arange(start, stop)))

    def gather(self, positions: Array) -> Chunk:
        chunk = self.elements.take(positions)
        return chunk if self._lineage is None else chunk.with_lineage(self._lineage(positions))

    def skip(self, n: int) -> int:
        if self.failures:
            return super().skip(n)
        passed = min(n, self.elements.length - self.at)
        self.at += passed
        return passed

    def advance(self, position: Position, count: int) -> Position | None:
        return None if self.failures or position.at + count > self.elements.length else position.after(count)


def run_through(plan: Node) -> list[Chunk | Exception]:
    """Return all elements of a dataset inside an element, with exceptions in their places.

    Raises:
        StateError: if the dataset is infinite.
    """
    found: list[Chunk | Exception] = []
    endless = plan.cardinality() == INFINITE_CARDINALITY
    coordinator, operator = open_plan(plan, probing=True)
    try:
        count = 0
        while not endless:
            try:
                chunk = operator.pull(STEP_ELEMENTS)
            except Exception as error:
                if concerns_iteration(error):
                    raise
                found.append(error.with_traceback(None))
                count += 1
            else:
                if chunk is None:
                    return found
                found.append(chunk)
                count += chunk.length
            endless = count > _KEPT_MAX
    finally:
        coordinator.shut_down(operator.close, wait=True)
    raise StateError(
        f"an element contains an infinite dataset, {plan}; a state saves datasets in elements by "
        "value: limit it with take(), or save the state when no such element is buffered"
    )
