"""Elements at hand as a source: the rows of arrays, a window of another dataset, what a saved state holds.

``Elements`` is the node of the datasets inside elements, which window() and group_by_window() make; it has no method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dataset.plan.node import Node
from dataset.plan.spec import component_spec
from dataset.runtime.chunk import Chunk
from dataset.runtime.operator import Build, Operator, State


@dataclass(frozen=True, eq=False)
class Elements(Node):
    """The elements of ``chunk``, which nobody may write to any more.

    ``spec`` gives the spec of the dataset that they were taken from; by default the narrowest that allows them all.
    """

    op: ClassVar[str] = "elements"
    seeks: ClassVar[bool] = True
    chunk: Chunk
    spec: Callable[[], Any] | None = field(default=None, repr=False)

    def parameters(self) -> dict[str, Any]:
        return {"chunk": repr(self.chunk)}

    def content(self) -> Any:
        return [self.chunk.structure, self.chunk.columns()]

    def _element_spec(self) -> Any:
        return chunk_spec(self.chunk) if self.spec is None else self.spec()

    def cardinality(self) -> int:
        return self.chunk.length

    def described(self) -> str:
        return f"elements({self.chunk.length})"

    def lower(self, build: Build) -> Operator:  # noqa: ARG002  # has no inputs to build
        return ElementsOperator(self.chunk)


class ElementsOperator(Operator):
    """Stands at an element."""

    def __init__(self, elements: Chunk) -> None:
        self.elements = elements
        self.position = 0

    def pull(self, n: int) -> Chunk | None:
        start = self.position
        if start >= self.elements.length:
            return None
        self.position = min(start + n, self.elements.length)
        return self.elements.slice(start, self.position)

    def seek(self, count: int) -> None:
        self.position += count

    def state_dict(self) -> State:
        return {"position": self.position}

    def load_state_dict(self, state: State) -> None:
        self.position = int(state["position"])

    def close(self) -> None:
        """Nothing is held."""


def chunk_spec(chunk: Chunk) -> Any:
    """The narrowest spec that allows every element of a chunk."""
    specs = []
    for index, column in enumerate(chunk.columns()):
        spec = component_spec(column[0])
        for value in column[1:]:
            both = spec.most_general_with(component_spec(value))
            if both is None:
                name = chunk.structure.component_name(index)
                raise TypeError(f"{name} has no spec that allows both {spec!r} and {component_spec(value)!r}")
            spec = both
        specs.append(spec)
    return chunk.structure.unflatten(specs)
