"""Accumulator: the state that a user function carries from element to element in scan and reduce.

The function may change the arrays of its state in place, which saves a copy for each element. So the state shares
memory neither with the initial state that the user passed, nor with the elements that scan returns.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from dataset.errors import SpecError, StateError
from dataset.plan.spec import TensorSpec, component_spec, spec_of
from dataset.plan.structure import LEAF, StructureMismatchError, structure_of
from dataset.plan.values import RaggedTensor, SparseTensor
from dataset.runtime.chunks.chunk import Array, Chunk
from dataset.runtime.chunks.normalization import chunk_of_rows
from dataset.runtime.chunks.ownership import copied_component, is_immutable
from dataset.runtime.state.saved_chunks import load_chunk, save_chunk

_SCALARS = frozenset({bytes, *(np.dtype(code).type for code in "?bhilqBHILQefdgFDG")})
"""Scalar types that imply their dtype."""


def canonical_copy(element: Any) -> Any:
    """Return an element of canonical components that shares no memory with ``element``."""
    chunk = chunk_of_rows([element], structure_of(element))
    return chunk.structure.unflatten([copied_component(column[0]) for column in chunk.columns()])


class Accumulator:
    """State of scan or reduce. All states must have the structure and dtypes of the first; shapes may change.

    Args:
        described: the op, for messages.
        initial: the initial state, as returned by ``canonical_copy``.
    """

    def __init__(self, described: str, initial: Any) -> None:
        self._described = described
        self._initial = initial
        self._structure = structure_of(initial)
        components = self._structure.flatten(initial)
        self._kinds = list(map(_kind, components))
        types = list(map(type, components))
        self._scalars = types if _SCALARS.issuperset(types) else None  # the types if all are plain scalars, else None
        number = self._structure is LEAF and isinstance(initial, np.ndarray | np.number) and initial.dtype != object
        self._numbers = initial.dtype if number else None  # the dtype if the state is one array or number, else None
        self._components = [copied_component(component) for component in components]

    def give(self) -> Any:
        """Return the state in new containers, so that a failing function cannot modify ours."""
        return self._structure.unflatten(self._components)

    def replace_scalars(self, new: Any) -> bool:
        """Replace the state if the new one consists only of scalars, the usual case; these need no copy."""
        if self._scalars is None:
            return False
        try:
            components = self._structure.flatten(new)
        except StructureMismatchError:
            return False
        if list(map(type, components)) != self._scalars:
            return False
        self._components = components
        return True

    def replace(self, new: Any) -> None:
        """Replace the state by the function's result, which was processed by ``own``.

        Raises:
            SpecError: if its structure or a dtype differs; the state is then unchanged.
        """
        if self._numbers is not None and type(new) is np.ndarray and new.ndim and new.dtype == self._numbers:
            self._components = [new]  # already canonical
            return
        try:
            chunk = chunk_of_rows([new], self._structure)
        except StructureMismatchError:
            raise SpecError(
                f"{self._described}: the function returned a state with the structure {structure_of(new)!r}; it must "
                f"have the structure of initial_state, {self._structure!r}"
            ) from None
        components = [column[0] for column in chunk.columns()]
        if list(map(_kind, components)) != self._kinds:
            value = self._structure.unflatten(components)
            raise SpecError(
                f"{self._described}: the function returned a state with the spec {spec_of(value)!r}; it must have the "
                f"dtypes of initial_state, {spec_of(self._initial)!r}"
            )
        self._components = components

    def detached(self, output: Any) -> Any:
        """Return ``output``, with copies of everything that shares memory with the state."""
        if is_immutable(tuple(self._components)) or is_immutable(output):
            return output
        mine = [array for component in self._components for array in _arrays(component)]
        structure = structure_of(output)
        components = [
            copied_component(part) if any(np.may_share_memory(a, b) for a in _arrays(part) for b in mine) else part
            for part in structure.flatten(output)
        ]
        return structure.unflatten(components)

    def save(self) -> Any:
        """Return the state by value."""
        return save_chunk(Chunk(self._structure, 1, [[component] for component in self._components]))

    def load(self, data: Any) -> None:
        """Restore a saved state.

        Raises:
            StateError: if it does not have this structure.
        """
        chunk = load_chunk(data, lambda: spec_of(self._initial))
        if chunk is None or chunk.structure != self._structure:
            raise StateError(f"{self._described}: the saved state does not have the structure {self._structure!r}")
        self._components = [column[0] for column in chunk.columns()]


def _kind(component: Any) -> Hashable:
    """Return what must stay the same in a component while its shape may change."""
    if isinstance(component, np.ndarray | np.generic) and component.dtype != object:
        return TensorSpec, component.dtype
    spec = component_spec(component)
    return type(spec), spec.dtype


def _arrays(component: Any) -> list[Array]:
    """Return the arrays of a component."""
    if isinstance(component, np.ndarray):
        return [component]
    if isinstance(component, RaggedTensor):
        return [component.flat_values, *component.nested_row_splits]
    if isinstance(component, SparseTensor):
        return [component.indices, component.values, component.dense_shape]
    return []
