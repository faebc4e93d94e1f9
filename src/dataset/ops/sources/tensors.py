"""Node of from_tensors(element): one element, the value itself. See tensor_slices.py for its rows as elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dataset.plan.fingerprints.fingerprint import fingerprint
from dataset.plan.lazy import lazy_property
from dataset.plan.nested import is_dataset
from dataset.plan.node import MemoryNode, spec_is_static
from dataset.plan.spec import component_spec, spec_of
from dataset.plan.structure import structure_of
from dataset.plan.traits import Traits
from dataset.runtime.chunks.chunk import Chunk, read_only_component
from dataset.runtime.chunks.normalization import canonical_component
from dataset.runtime.context import ExecutionContext, source_lineage
from dataset.runtime.contract import Operator
from dataset.runtime.state.held_elements import ElementsOperator


@dataclass(frozen=True, eq=False)
class Tensors(MemoryNode, seekable=True, exact=True):
    """Source node with the single element ``element``."""

    op: ClassVar[str] = "from_tensors"
    element: Any

    def __post_init__(self) -> None:
        structure = structure_of(self.element)
        if not structure.num_components:
            raise ValueError(f"from_tensors(): an element must have at least one component, got {self.element!r}")
        parts = [read_only_component(canonical_component(part)) for part in structure.flatten(self.element)]
        self._set("element", structure.unflatten(parts))

    def parameters(self) -> dict[str, Any]:
        structure = structure_of(self.element)
        parts = structure.flatten(self.element)
        return {"structure": structure, "components": [_described(part) for part in parts]}

    @lazy_property
    def traits(self) -> Traits:
        parts = structure_of(self.element).flatten(self.element)
        return super().traits.having(static_spec=all(spec_is_static(part.plan) for part in parts if is_dataset(part)))

    def fingerprint_fields(self) -> Any:
        structure = structure_of(self.element)
        return [structure, structure.flatten(self.element)]

    def _element_spec(self) -> Any:
        return spec_of(self.element)

    def cardinality(self) -> int:
        return 1

    def elements_in_memory(self) -> Chunk:
        structure = structure_of(self.element)
        return Chunk(structure, 1, [[part] for part in structure.flatten(self.element)])

    def lower(self, context: ExecutionContext) -> Operator:
        lineage = source_lineage(context, self)
        return ElementsOperator(self.elements_in_memory(), lineage=None if lineage is None else lineage.of)


def _described(component: Any) -> str:
    """Return a component as a fingerprint shows it; finding the spec of a dataset might require running it."""
    return f"dataset {fingerprint(component.plan)}" if is_dataset(component) else repr(component_spec(component))
