"""from_tensor_slices(tensors): the rows of arrays. Whole arrays are from_tensors, in tensors.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dataset.plan.node import Node
from dataset.plan.spec import component_spec
from dataset.plan.structure import Structure, structure_of
from dataset.plan.values import RaggedTensor, SparseTensor
from dataset.runtime.chunk import Chunk, Column, read_only_component
from dataset.runtime.elements import ElementsOperator
from dataset.runtime.normalize import canonical_component
from dataset.runtime.operator import Build, Operator
from dataset.runtime.slicing import rows_of


@dataclass(frozen=True, eq=False)
class TensorSlices(Node):
    """Element ``i`` is row ``i`` of each array of ``tensors``, which all have the same number of rows."""

    op: ClassVar[str] = "from_tensor_slices"
    seeks: ClassVar[bool] = True
    tensors: Any

    def __post_init__(self) -> None:
        structure = structure_of(self.tensors)
        columns = [_sliceable(structure, i, part) for i, part in enumerate(structure.flatten(self.tensors))]
        if not columns:
            raise ValueError(f"from_tensor_slices(): tensors must have a component, got {self.tensors!r}")
        for index, column in enumerate(columns):
            if component_rows(column) != component_rows(columns[0]):
                raise ValueError(
                    "from_tensor_slices(): all components must have the same number of rows; "
                    f"{structure.component_name(0)} has {component_rows(columns[0])}, "
                    f"{structure.component_name(index)} has {component_rows(column)}"
                )
        self._set("tensors", structure.unflatten(columns))

    @property
    def structure(self) -> Structure:
        """The structure of the elements, which is that of the arrays."""
        return structure_of(self.tensors)

    def columns(self) -> list[Any]:
        """The arrays, read-only."""
        return self.structure.flatten(self.tensors)

    def rows_as_columns(self) -> list[Column]:
        """The arrays as columns of chunks: ragged and sparse ones as lists of their rows."""
        return [column if isinstance(column, np.ndarray) else rows_of(column) for column in self.columns()]

    def parameters(self) -> dict[str, Any]:
        return {"tensors": f"{self.cardinality()} of {self.element_spec!r}"}

    def content(self) -> Any:
        return [self.structure, self.columns()]

    def _element_spec(self) -> Any:
        return self.structure.unflatten([component_spec(column).unbatched() for column in self.columns()])

    def cardinality(self) -> int:
        return component_rows(self.columns()[0])

    def lower(self, build: Build) -> Operator:  # noqa: ARG002  # has no inputs to build
        return ElementsOperator(Chunk(self.structure, self.cardinality(), self.rows_as_columns()))


def component_rows(component: Any) -> int:
    """The size of the first dimension."""
    return int(component.shape[0])


def _sliceable(structure: Structure, index: int, value: Any) -> Any:
    component = canonical_component(value)
    if isinstance(component, np.ndarray | RaggedTensor) or (isinstance(component, SparseTensor) and component.shape):
        return read_only_component(component)
    raise ValueError(
        f"from_tensor_slices(): {structure.component_name(index)} must be an array with rows, got {value!r}; "
        "for a dataset of one whole value use from_tensors()"
    )
