"""A state that a user's function carries from element to element: what scan and reduce share.

The function may change the arrays of its state in place, which saves a copy for each element. So the state shares no
memory with what the user holds: neither with the initial state that was given, nor with what scan puts out.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable
from typing import Any

import numpy as np

from dataset.errors import SpecError, StateError
from dataset.plan.spec import component_spec, spec_of
from dataset.plan.structure import LEAF, StructureMismatchError, structure_of
from dataset.plan.values import RaggedTensor, SparseTensor
from dataset.runtime.chunk import Array
from dataset.runtime.normalize import chunk_of_rows
from dataset.runtime.ownership import is_immutable
from dataset.runtime.state import load_chunk, save_chunk


def canonical_copy(element: Any) -> Any:
    """An element of canonical components that shares no memory with ``element``."""
    chunk = chunk_of_rows([element], structure_of(element))
    return chunk.structure.unflatten([_copied(column[0]) for column in chunk.columns()])


class CarriedState:
    """The state and what every next one must be like: its structure and dtypes; shapes may change.

    Args:
        described: the op, for messages.
        initial: canonical, as ``canonical_copy`` gives it.
    """

    def __init__(self, described: str, initial: Any) -> None:
        self._described = described
        self._initial = initial
        self._structure = structure_of(initial)
        self._kinds = [_kind(component) for component in self._structure.flatten(initial)]
        plain_scalar = self._structure is LEAF and isinstance(initial, np.number | np.bool_ | bytes)
        self._scalar = type(initial) if plain_scalar and not isinstance(initial, np.timedelta64) else None
        self._value = canonical_copy(initial)

    def give(self) -> Any:
        """The state, in containers of its own, so that a function that fails has put nothing into ours."""
        structure = self._structure
        return self._value if structure.is_immutable else structure.unflatten(structure.flatten(self._value))

    def replace(self, new: Any) -> None:
        """Take what the function returned, which has been through ``own``.

        Raises:
            SpecError: if its structure or a dtype is another; the state stays what it was.
        """
        if type(new) is self._scalar:
            self._value = new
            return
        try:
            chunk = chunk_of_rows([new], self._structure)
        except StructureMismatchError:
            raise SpecError(
                f"{self._described}: the function returned a state of the structure {structure_of(new)!r}; it must "
                f"have that of initial_state, {self._structure!r}"
            ) from None
        components = [column[0] for column in chunk.columns()]
        if [_kind(component) for component in components] != self._kinds:
            value = self._structure.unflatten(components)
            raise SpecError(
                f"{self._described}: the function returned a state of the spec {spec_of(value)!r}; it must have the "
                f"dtypes of initial_state, {spec_of(self._initial)!r}"
            )
        self._value = self._structure.unflatten(components)

    def apart(self, output: Any) -> Any:
        """``output`` with copies in the place of what shares memory with the state."""
        if is_immutable(self._value) or is_immutable(output):
            return output
        mine = [array for component in self._structure.flatten(self._value) for array in _arrays(component)]
        structure = structure_of(output)
        components = [
            _copied(part) if any(np.may_share_memory(a, b) for a in _arrays(part) for b in mine) else part
            for part in structure.flatten(output)
        ]
        return structure.unflatten(components)

    def save(self) -> Any:
        """The state by value."""
        return save_chunk(chunk_of_rows([self._value], self._structure))

    def load(self, data: Any) -> None:
        """Take a saved state.

        Raises:
            StateError: if it is no state of this structure.
        """
        chunk = load_chunk(data, lambda: spec_of(self._initial))
        if chunk is None or chunk.structure != self._structure:
            raise StateError(f"{self._described}: the saved state does not fit the structure {self._structure!r}")
        self._value = self._structure.unflatten([column[0] for column in chunk.columns()])


def _kind(component: Any) -> Hashable:
    """What a component keeps while its shape changes."""
    if isinstance(component, np.ndarray | np.generic) and component.dtype != object:
        return component.dtype
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


def _copied(component: Any) -> Any:
    """A component of its own memory; an object of a user's class is the user's own affair."""
    if isinstance(component, np.ndarray):
        return component.copy()
    return copy.deepcopy(component) if isinstance(component, RaggedTensor | SparseTensor) else component
