"""Node and operator of concatenate(dataset): one dataset followed by another.

A chain of concatenations, such as a loop creates, is one node. Each element passes through one operator, regardless of
the number of datasets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from dataset.errors import SpecError
from dataset.plan.cardinality import is_known, total
from dataset.plan.lazy import lazy_property
from dataset.plan.node import Node, holds_user_code, is_infallible, rows_per_element, spec_is_static
from dataset.plan.spec import common_spec
from dataset.plan.traits import Traits
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, Upstream, assumes_no_failures
from dataset.runtime.position import Position


@dataclass(frozen=True, eq=False)
class Concatenate(Node, seekable=True, exact=True):
    """Node that yields all elements of the first source, then all elements of the next, and so on."""

    op: ClassVar[str] = "concatenate"
    sources: tuple[Node, ...]

    @classmethod
    def of(cls, first: Node, second: Node, name: str | None) -> Self:
        """Concatenate two datasets. Concatenations without a name are flattened into their sources.

        Raises:
            TypeError: if the element specs are incompatible.
        """
        spec = None
        # If a spec is only known by running a user function, a mismatch is detected at iteration time.
        if spec_is_static(first) and spec_is_static(second):
            spec = common_spec(cls.op, [first.element_spec, second.element_spec])
        node = cls((*_sources(first), *_sources(second)), name=name)
        if spec is not None:
            vars(node)["element_spec"] = spec  # so that a loop does not check all datasets each time
        return node

    @lazy_property
    def inputs(self) -> tuple[Node, ...]:
        return self.sources

    def _element_spec(self) -> Any:
        return common_spec(self.op, [source.element_spec for source in self.sources])

    @lazy_property
    def traits(self) -> Traits:
        is_checked = all(map(spec_is_static, self.sources))  # else a mismatch is detected at iteration time
        rows = {rows_per_element(source) for source in self.sources}
        return super().traits.having(exact=is_checked, rows=rows.pop() if len(rows) == 1 else None)

    def cardinality(self) -> int:
        return total([source.cardinality() for source in self.sources])

    def simplified(self) -> Node | None:
        """Return the plan without sources that are known to be empty and run no user code, if the spec stays."""
        left = tuple(part for part in self.sources if part.cardinality() != 0 or holds_user_code(part))
        left = left or self.sources[-1:]
        if len(left) == len(self.sources):
            return None
        rest = left[0] if len(left) == 1 else replace(self, sources=left)
        is_same = not spec_is_static(rest) or repr(rest.element_spec) == repr(self.element_spec)
        return rest if is_same else None

    def label(self) -> str:
        count = len(self.sources)
        return self.op if count == 2 else f"{self.op}({count} datasets)"

    def lower(self, context: ExecutionContext) -> Operator:
        return ConcatenateOperator(self, [context(source, index) for index, source in enumerate(self.sources)])


def _sources(node: Node) -> tuple[Node, ...]:
    return node.sources if isinstance(node, Concatenate) and node.name is None else (node,)


class ConcatenateOperator(Operator):
    """Operator that reads one input after another."""

    saved = ("current",)

    def __init__(self, node: Concatenate, sources: list[Operator]) -> None:
        self.node = node
        self.sources = sources
        self.current = 0
        self._last: Chunk | None = None

    def pull(self, n: int) -> Chunk | None:
        while self.current < len(self.sources):
            try:
                chunk = self.sources[self.current].pull(n)
            except Exception:
                self.at += 1
                raise
            if chunk is not None:
                self.at += chunk.length
                return self._checked(chunk)
            self.current, self.at = self.current + 1, 0
        return None

    def _checked(self, chunk: Chunk) -> Chunk:
        if self._last is not None and chunk.structure != self._last.structure:
            raise SpecError(
                f"{self.node}: all datasets must have the same structure, got {self._last.structure!r} and "
                f"{chunk.structure!r}"
            )
        self._last = Chunk(chunk.structure, 0, [])
        return chunk

    def upstream(self) -> Sequence[Upstream]:
        return self.sources

    def advance(self, position: Position, count: int) -> Position | None:
        inputs, current, given = list(position.inputs), position.count("current"), position.at
        while current < len(inputs):
            before = inputs[current]
            below = self.sources[current].advance(before, count) if count and before is not None else before
            if below is not None:
                inputs[current] = below
                return position.having(at=given + count, inputs=tuple(inputs), own={"current": current})
            source = self.node.sources[current]
            left = source.cardinality() - given
            if not is_known(source.cardinality()) or count < left:
                return None
            if not (is_infallible(source) or assumes_no_failures()):
                return None  # failed elements may have been counted that it does not have
            count -= left
            current, given = current + 1, 0
        return None
