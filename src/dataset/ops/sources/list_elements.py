"""Node of from_list(elements): the items of a list as elements. See tensor_slices.py for the rows of arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dataset.ops.sources.tensor_slices import TensorSlices
from dataset.plan.spec import ComponentSpec, component_spec
from dataset.plan.structure import Structure, StructureMismatchError, structure_of
from dataset.runtime.chunks.chunk import Column, read_only_component
from dataset.runtime.chunks.normalization import chunk_of_rows


@dataclass(frozen=True, eq=False)
class ListElements(TensorSlices):
    """Source node whose element ``i`` is item ``i`` of a list. ``tensors`` holds the elements as columns."""

    op: ClassVar[str] = "from_list"
    specs: tuple[ComponentSpec, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        elements = self.tensors
        if not isinstance(elements, list):
            raise ValueError(f"from_list(): elements must be a list, got a {type(elements).__name__}")  # noqa: TRY004  # as in tf.data
        if not elements:
            raise ValueError("from_list(): elements must not be empty; for an empty dataset, use Dataset.range(0)")
        structure = structure_of(elements[0])
        if not structure.num_components:
            raise ValueError(f"from_list(): an element must have at least one component, got {elements[0]!r:.100}")
        try:
            columns = chunk_of_rows(elements, structure).columns()
        except StructureMismatchError:
            raise _wrong_structure(structure, elements) from None
        self._set("specs", tuple(_common_spec(structure, i, column) for i, column in enumerate(columns)))
        self._set("tensors", structure.unflatten([_read_only(column) for column in columns]))

    def rows_as_columns(self) -> list[Column]:
        rows = self.places
        return [column[rows.start : rows.stop : rows.step] for column in self.columns()]

    def _element_spec(self) -> Any:
        return self.structure.unflatten(self.specs)

    @property
    def all_rows(self) -> range:
        return range(len(self.columns()[0]))


def _common_spec(structure: Structure, index: int, column: Column) -> ComponentSpec:
    """Return the narrowest spec of all values of a component."""
    if isinstance(column, np.ndarray):
        return component_spec(column).unbatched()
    first = found = component_spec(column[0])
    for number, value in enumerate(column):
        spec = component_spec(value)
        merged = found.most_general_with(spec)
        if merged is None:
            raise ValueError(
                f"from_list(): {structure.component_name(index)} must have the same type in all elements, got {spec!r} "
                f"in element {number} and {first!r} in element 0; convert the values"
            )
        found = merged
    return found


def _read_only(column: Column) -> Any:
    return read_only_component(column) if isinstance(column, np.ndarray) else [*map(read_only_component, column)]


def _wrong_structure(structure: Structure, elements: list[Any]) -> ValueError:
    number, found = next((i, found) for i, found in enumerate(map(structure_of, elements)) if found != structure)
    return ValueError(
        f"from_list(): all elements must have the same structure, got {found!r} in element {number} and {structure!r} "
        "in element 0"
    )
