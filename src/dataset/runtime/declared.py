"""Values of a user's source as chunks, held to what was declared of them, or to the structure of the first."""

from __future__ import annotations

from typing import Any

import numpy as np

from dataset.errors import SpecError
from dataset.plan.spec import BYTES, ComponentSpec, TensorSpec, component_spec, flatten_spec
from dataset.plan.structure import Structure, structure_of
from dataset.runtime.chunk import Chunk
from dataset.runtime.normalize import canonical_component, chunk_of_rows


class DeclaredRows:
    """Makes chunks of values.

    Args:
        gave: who gives them, with its verb, as messages begin: ``"from_generator(count) yielded"``.
        signature: specs in the structure of an element; None where nothing was declared.
    """

    def __init__(self, gave: str, signature: Any) -> None:
        self._gave = gave
        self._structure: Structure | None = None
        self._specs: list[ComponentSpec] = []
        if signature is not None:
            self._structure, specs = flatten_spec(signature)
            self._specs = list(specs)

    def chunk(self, rows: list[Any]) -> Chunk:
        """The chunk of at least one value.

        Raises:
            StructureMismatchError: if one has another structure; ``mismatch`` says it in words.
            SpecError: if one is not what was declared.
        """
        if self._structure is None:
            self._structure = structure_of(rows[0])
        if not self._specs:
            return chunk_of_rows(rows, self._structure)
        columns = self._structure.columns(rows)
        cast = [
            [self._cast(index, spec, value) for value in column]
            for index, (spec, column) in enumerate(zip(self._specs, columns, strict=True))
        ]
        return chunk_of_rows(self._structure.rows(cast, len(rows)), self._structure)

    def _cast(self, index: int, spec: ComponentSpec, value: Any) -> Any:
        """``value`` as the signature declares it. Ints become declared floats; floats no ints."""
        if isinstance(value, tuple) and isinstance(spec, TensorSpec):
            value = list(value)  # where an array is declared, a tuple is data
        component = canonical_component(value)
        got = component_spec(component)
        if isinstance(spec, TensorSpec) and isinstance(got, TensorSpec) and got.dtype != spec.dtype:
            empty = isinstance(value, list) and not np.size(value)  # [] has no dtype of its own
            if empty or _may_cast(component, got.dtype, spec.dtype):
                component = np.asarray(component).astype(object if spec.dtype == BYTES else spec.dtype)[()]
                got = component_spec(component)
        if not spec.allows(got):
            name = self._structure.component_name(index) if self._structure else "the element"
            raise SpecError(f"{self._gave} {got!r} for {name}, the output_signature says {spec!r}: {value!r:.200}")
        return component

    def mismatch(self, row: Any) -> SpecError:
        """The error for a value of another structure."""
        declared = "the output_signature has" if self._specs else "the values before had"
        return SpecError(
            f"{self._gave} {structure_of(row)!r} where {declared} the structure "
            f"{self._structure!r} (a list is data, a tuple is structure): {row!r:.200}"
        )


def _may_cast(component: Any, got: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Whether a value may take on the declared dtype: bools and numbers to floats, and to integers that hold it."""
    if got.kind == "b":
        return wanted.kind in "iufc"
    if got.kind in "iu" and wanted.kind in "iu":
        info = np.iinfo(wanted)
        return not np.size(component) or (int(np.min(component)) >= info.min and int(np.max(component)) <= info.max)
    return (got.kind in "iuf" and wanted.kind in "fc") or (got.kind == "c" and wanted.kind == "c")
