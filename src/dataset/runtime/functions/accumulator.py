"""A state that a user's function carries from element to element: what scan and reduce share.

The function may change the arrays of its state in place, which saves a copy for each element. So the state shares no
memory with what the user holds: neither with the initial state that was given, nor with what scan puts out.
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
"""Types of scalars whose dtype the type tells."""


def canonical_copy(element: Any) -> Any:
    """An element of canonical components that shares no memory with ``element``."""
    chunk = chunk_of_rows([element], structure_of(element))
    return chunk.structure.unflatten([copied_component(column[0]) for column in chunk.columns()])


class Accumulator:
    """The state and what every next one must be like: its structure and dtypes; shapes may change.

    Args:
        described: the op, for messages.
        initial: canonical, as ``canonical_copy`` gives it.
    """

    def __init__(self, described: str, initial: Any) -> None:
        self._described = described
        self._initial = initial
        self._structure = structure_of(initial)
        components = self._structure.flatten(initial)
        self._kinds = list(map(_kind, components))
        types = list(map(type, components))
        self._scalars = types if _SCALARS.issuperset(types) else None  # the types, where all are plain scalars
        number = self._structure is LEAF and isinstance(initial, np.ndarray | np.number) and initial.dtype != object
        self._numbers = initial.dtype if number else None  # the dtype, where the state is one array or number
        self._components = [copied_component(component) for component in components]

    def give(self) -> Any:
        """The state, in containers of its own, so that a function that fails has put nothing into ours."""
        return self._structure.unflatten(self._components)

    def replace_scalars(self, new: Any) -> bool:
        """Take what the function returned if it is nothing but scalars, which nobody has to own. The usual case."""
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
        """Take what the function returned, which has been through ``own``.

        Raises:
            SpecError: if its structure or a dtype is another; the state stays what it was.
        """
        if self._numbers is not None and type(new) is np.ndarray and new.ndim and new.dtype == self._numbers:
            self._components = [new]  # canonical as it is
            return
        try:
            chunk = chunk_of_rows([new], self._structure)
        except StructureMismatchError:
            raise SpecError(
                f"{self._described}: the function returned a state of the structure {structure_of(new)!r}; it must "
                f"have that of initial_state, {self._structure!r}"
            ) from None
        components = [column[0] for column in chunk.columns()]
        if list(map(_kind, components)) != self._kinds:
            value = self._structure.unflatten(components)
            raise SpecError(
                f"{self._described}: the function returned a state of the spec {spec_of(value)!r}; it must have the "
                f"dtypes of initial_state, {spec_of(self._initial)!r}"
            )
        self._components = components

    def apart(self, output: Any) -> Any:
        """``output`` with copies in the place of what shares memory with the state."""
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
        """The state by value."""
        return save_chunk(Chunk(self._structure, 1, [[component] for component in self._components]))

    def load(self, data: Any) -> None:
        """Take a saved state.

        Raises:
            StateError: if it is no state of this structure.
        """
        chunk = load_chunk(data, lambda: spec_of(self._initial))
        if chunk is None or chunk.structure != self._structure:
            raise StateError(f"{self._described}: the saved state does not fit the structure {self._structure!r}")
        self._components = [column[0] for column in chunk.columns()]


def _kind(component: Any) -> Hashable:
    """What a component keeps while its shape changes."""
    if isinstance(component, np.ndarray | np.generic) and component.dtype != object:
        return TensorSpec, component.dtype
    spec = component_spec(component)
    return type(spec), spec.dtype


def _arrays(component: Any) -> list[Array]:
    """The memory of a component."""
    if isinstance(component, np.ndarray):
        return [component]
    if isinstance(component, RaggedTensor):
        return [component.flat_values, *component.nested_row_splits]
    if isinstance(component, SparseTensor):
        return [component.indices, component.values, component.dense_shape]
    return []
