"""Elements at hand as a source: a window of another dataset, a group, what a saved state holds.

``Elements`` is the node of the datasets inside elements, which window() and group_by_window() make; it has no method.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from dataset.errors import StateError
from dataset.plan.cardinality import INFINITE_CARDINALITY
from dataset.plan.node import Node
from dataset.runtime.chunks.chunk import Array, Chunk
from dataset.runtime.context import LENT_MAX, ExecutionContext, open_plan
from dataset.runtime.contract import Operator, State
from dataset.runtime.resources.exceptions import concerns_iteration

_STEP = 1024  # elements at a time, where a dataset is run through
_KEPT_MAX = 1 << 20  # elements; what has more of them is taken to be endless


Failure: TypeAlias = tuple[int, Callable[[], Exception]]
"""The count of good elements before one that fails, and what makes its exception."""


def _not_asked() -> Any:
    raise AssertionError("this plan is only run")


@dataclass(frozen=True, eq=False)
class Elements(Node):
    """The elements of ``chunk``, which nobody may write to any more.

    ``spec`` gives the spec of the dataset that they were taken from, for plans that a user gets to see; ``static`` says
    whether it runs nothing for that. ``failures`` are the elements that fail, in order.
    """

    op: ClassVar[str] = "elements"
    seeks: ClassVar[bool] = True
    chunk: Chunk
    spec: Callable[[], Any] = field(default=_not_asked, repr=False)
    static: bool = field(default=False, repr=False)
    failures: tuple[Failure, ...] = field(default=(), repr=False)

    @property
    def holds_static_specs(self) -> bool:
        return self.static

    def parameters(self) -> dict[str, Any]:
        return {"elements": self.chunk.length, "failures": len(self.failures)}

    def content(self) -> Any:
        return [self.chunk.structure, self.chunk.columns()]

    def _element_spec(self) -> Any:
        return self.spec()

    def cardinality(self) -> int:
        return self.chunk.length

    def described(self) -> str:
        return f"elements({self.chunk.length})"

    def lower(self, build: ExecutionContext) -> Operator:  # noqa: ARG002  # has no inputs to build
        return ElementsOperator(self.chunk, self.failures)


class ElementsOperator(Operator):
    """Stands at an element."""

    def __init__(self, elements: Chunk, failures: Sequence[Failure] = ()) -> None:
        self.elements = elements
        self.failures = failures
        self.position = 0
        self.raised = 0  # of the failures
        self.unpacks = elements.is_packed
        """Whether to make lists of columns that stand for one; whoever reads from this may do without."""

    def pull(self, n: int) -> Chunk | None:
        start, stop = self.position, min(self.position + n, self.elements.length)
        if self.raised < len(self.failures):
            place, make_error = self.failures[self.raised]
            if place == start:
                self.raised += 1
                raise make_error()
            stop = min(stop, place)
        if start == stop:
            return None
        self.position = stop
        chunk = self.elements.slice(start, stop)
        return chunk.unpacked() if self.unpacks else chunk

    @property
    def picks(self) -> bool:  # type: ignore[override]  # here it depends on the elements
        return not self.failures

    @property
    def lends(self) -> int:
        return 0 if self.failures else LENT_MAX

    def pulled(self) -> int:
        return self.position

    def go_back(self, place: int) -> None:
        self.position = place

    def pick(self, positions: Array) -> Chunk:
        return self.elements.take(positions)

    def seek(self, count: int) -> None:
        self.position += count

    def pass_over(self, n: int) -> int:
        if self.failures:
            return super().pass_over(n)
        passed = min(n, self.elements.length - self.position)
        self.position += passed
        return passed

    @staticmethod
    def state_at(index: int) -> State:
        """The state in front of element ``index`` of a chunk without failures."""
        return {"op": Elements.op, "position": index, "raised": 0}

    def state_dict(self) -> State:
        return {"op": Elements.op, "position": self.position, "raised": self.raised}

    def state_after(self, state: State, count: int) -> State | None:
        position = int(state["position"]) + count
        return None if self.failures or position > self.elements.length else {**state, "position": position}

    def load_state_dict(self, state: State) -> None:
        self.position, self.raised = int(state["position"]), int(state["raised"])

    def close(self) -> None:
        """Nothing is held."""


def run_through(plan: Node) -> list[Chunk | Exception]:
    """All elements of a dataset inside an element, with the exceptions in their places.

    Raises:
        StateError: if there is no end to them.
    """
    found: list[Chunk | Exception] = []
    endless = plan.cardinality() == INFINITE_CARDINALITY
    coordinator, operator = open_plan(plan, probing=True)
    try:
        count = 0
        while not endless:
            try:
                chunk = operator.pull(_STEP)
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
        f"an element holds a dataset without an end, {plan.located()}; a state saves the datasets in elements by "
        "value: make it end with take(), or save the state where no such element waits"
    )
