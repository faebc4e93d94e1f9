"""unbatch(): the rows of each element, one by one. The inverse of batch.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dataset.errors import SpecError
from dataset.plan.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, map_known
from dataset.plan.node import UnaryNode, spec_is_static
from dataset.plan.spec import flatten_spec
from dataset.plan.structure import Structure
from dataset.plan.values import RaggedTensor, SparseTensor
from dataset.runtime.chunk import Chunk, Column, Remainder
from dataset.runtime.operator import Build, Operator, State, UnaryOperator
from dataset.runtime.slicing import rows_of
from dataset.runtime.state import load_chunk, save_chunk


@dataclass(frozen=True, eq=False)
class Unbatch(UnaryNode):
    """Each element's components, taken apart along their first axis."""

    op: ClassVar[str] = "unbatch"

    def __post_init__(self) -> None:
        if spec_is_static(self.source):
            self._element_spec()

    def _element_spec(self) -> Any:
        structure, specs = flatten_spec(self.source.element_spec)
        for index, spec in enumerate(specs):
            if spec.shape == ():
                raise ValueError(f"unbatch(): {structure.component_name(index)} is a scalar, which has no rows")
        if len({spec.shape[0] for spec in specs if spec.shape} - {None}) > 1:
            shapes = {structure.component_name(index): spec.shape for index, spec in enumerate(specs)}
            raise ValueError(f"unbatch(): all components must have the same number of rows, got the shapes {shapes}")
        return structure.unflatten([spec.unbatched() for spec in specs])

    def cardinality(self) -> int:
        rows, available = self._rows(), self.source.cardinality()
        if rows is None:
            return INFINITE_CARDINALITY if available == INFINITE_CARDINALITY else UNKNOWN_CARDINALITY
        return map_known(lambda n: n * rows, available)

    def _rows(self) -> int | None:
        """How many rows every element has, as far as that is known without running anything."""
        if self.source.rows_per_element is not None or not spec_is_static(self.source):
            return self.source.rows_per_element
        sizes = [spec.shape[0] for spec in flatten_spec(self.source.element_spec)[1] if spec.shape]
        return next((size for size in sizes if size is not None), None)

    def lower(self, build: Build) -> Operator:
        return UnbatchOperator(build(self.source), self)


class UnbatchOperator(UnaryOperator):
    """Holds the rest of the element that is being taken apart. Its arrays are the columns of the chunks."""

    def __init__(self, source: Operator, node: Unbatch) -> None:
        super().__init__(source)
        self.node = node
        self.rows = Remainder()

    def pull(self, n: int) -> Chunk | None:
        while not self.rows:
            element = self.source.pull(1)
            if element is None:
                return None
            self.rows = Remainder(self._take_apart(element))
        return self.rows.give(n)

    def _take_apart(self, element: Chunk) -> Chunk | None:
        structure = element.structure
        columns = [self._column(structure, index, column[0]) for index, column in enumerate(element.columns())]
        length = len(columns[0])
        for index, column in enumerate(columns):
            if len(column) != length:
                raise SpecError(
                    f"{self.node.located()}: all components must have the same number of rows; "
                    f"{structure.component_name(0)} has {length}, {structure.component_name(index)} has {len(column)}"
                )
        return Chunk(structure, length, columns) if length else None

    def _column(self, structure: Structure, index: int, value: Any) -> Column:
        if isinstance(value, np.ndarray):
            return value
        if isinstance(value, RaggedTensor) or (isinstance(value, SparseTensor) and value.shape):
            return rows_of(value)
        raise SpecError(
            f"{self.node.located()}: {structure.component_name(index)} must be an array with rows, got a "
            f"{type(value).__name__}"
        )

    def state_dict(self) -> State:
        return {**super().state_dict(), "rest": save_chunk(self.rows.rest())}

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self.rows = Remainder(load_chunk(state["rest"], lambda: self.node.element_spec))
