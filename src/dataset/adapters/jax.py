"""JAX adapter: elements as arrays on devices, with transfers overlapping the computation on earlier elements.

``jax.device_put`` returns immediately and copies asynchronously, so no thread is needed: requesting an element starts
the copy of a later one. Structures are those of this library, so dataclasses need not be registered as pytrees.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from dataset import DatasetIterator
from dataset.adapters.arrays import private
from dataset.adapters.dataset_view import DatasetView
from dataset.dataset import Dataset, device_iterator
from dataset.errors import SpecError, StateError
from dataset.plan.node import spec_is_static
from dataset.plan.plain import state_from_json, state_to_json
from dataset.plan.spec import (
    ComponentSpec,
    DatasetSpec,
    RaggedTensorSpec,
    SparseTensorSpec,
    component_spec,
    flatten_spec,
    is_dense,
)
from dataset.plan.structure import LEAF, NONE, Structure, StructureMismatchError, structure_of

Placement = Any
"""A Sharding, a Device, or None for the default device."""


class JaxDataset(DatasetView[Any]):
    """The elements of a Dataset as JAX arrays; see ``Dataset.to_jax``. Each ``iter`` starts a new pass.

    Args:
        dataset: the dataset.
        sharding: as in ``to_jax``.
        prefetch: as in ``to_jax``.
    """

    def __init__(self, dataset: Dataset[Any], sharding: Any, prefetch: int) -> None:
        super().__init__(dataset)
        self._sharding = sharding
        self._prefetch = prefetch
        _check_sharding(sharding)
        if spec_is_static(dataset.plan):
            structure, specs = flatten_spec(dataset.element_spec)
            _check(structure, specs, _spread(structure, sharding))

    def __iter__(self) -> JaxIterator:
        return device_iterator(self._dataset, _Converter(self._sharding).convert, self._prefetch, JaxIterator)


class JaxIterator(DatasetIterator[Any]):
    """Iterator over a JaxDataset that Orbax can checkpoint.

    Orbax saves it beside the weights with Grain's handler, ``grain.checkpoint.CheckpointSave(iterator)`` and
    ``CheckpointRestore(iterator)``, or with any other handler that uses ``get_state`` and ``set_state``.
    """

    def get_state(self) -> bytes:
        """Return the result of ``state_dict`` as JSON."""
        return json.dumps(state_to_json(self.state_dict())).encode()

    def set_state(
        self,
        state: bytes | str | dict[str, Any],
        *,
        moved: Callable[[str], str] | Mapping[str, str] | None = None,
    ) -> None:
        """Move to the position that ``state`` describes.

        Args:
            state: the result of ``get_state``, as bytes, as text or as the decoded dict.
            moved: for files that have been renamed; as in ``load_state_dict``.

        Raises:
            ClosedError: after ``close()``.
            StateError: if the state is of another pipeline or version, or is damaged. The iterator does not move.
        """
        if isinstance(state, bytes | str):
            try:
                state = json.loads(state)
            except (ValueError, RecursionError) as error:
                raise StateError(f"expected the JSON that get_state() returned, got {state!r:.100}: {error}") from error
        self.load_state_dict(state_from_json(state), moved=moved)  # raises StateError if the state is invalid

    def start_prefetch(self) -> None:
        """Do nothing: prefetching starts with the first request. Grain's handler calls this method after a restore."""


class _Converter:
    """Converter that places the elements of one pass on their devices."""

    def __init__(self, sharding: Any) -> None:
        self._sharding = sharding
        self._structure: Structure | None = None
        self._placements: list[Placement] = []

    def convert(self, element: Any) -> tuple[Any, Any]:
        """Return the element as JAX arrays, and the element on the host, whose arrays no other code can modify."""
        structure = structure_of(element)
        if structure != self._structure:
            self._placements, self._structure = _spread(structure, self._sharding), structure
        components = structure.flatten(element)
        del element  # for the reference counts
        components = private(components)
        arrays = [
            _put(structure, index, component, placement)
            for index, (component, placement) in enumerate(zip(components, self._placements, strict=True))
        ]
        return structure.unflatten(arrays), structure.unflatten(components)


def _put(structure: Structure, index: int, component: Any, placement: Placement) -> Any:
    """Start the transfer of a component. Copies continue after the call, so the component must not be modified."""
    if not isinstance(component, np.ndarray | np.generic) or not _is_known(component.dtype):
        raise _refusal(structure.component_name(index), component_spec(component))
    if placement is None:
        return jax.device_put(component)
    try:
        if _is_global(placement):
            return jax.make_array_from_process_local_data(placement, np.asarray(component))
        return jax.device_put(component, placement)
    except _MISFITS as error:
        raise _misfit(structure.component_name(index), component.shape, placement, error) from error


_MISFITS = (ValueError, IndexError, AssertionError)  # what JAX raises if a sharding does not fit a shape


def _is_global(placement: Placement) -> bool:
    """Return whether some of the devices belong to other processes, so that each process provides its own part."""
    return isinstance(placement, jax.sharding.Sharding) and not placement.is_fully_addressable


@functools.cache
def _is_known(dtype: np.dtype[Any]) -> bool:
    """Return whether JAX has arrays of this dtype, or of a narrower one that it substitutes."""
    try:
        jax.eval_shape(lambda array: array, np.empty(0, dtype))
    except TypeError:
        return False
    return True


def _check(structure: Structure, specs: Sequence[ComponentSpec], placements: list[Placement]) -> None:
    """Check, without an element, that JAX has arrays for all components and that the shardings fit the shapes."""
    for index, (spec, placement) in enumerate(zip(specs, placements, strict=True)):
        name = structure.component_name(index)
        if not is_dense(spec) or not _is_known(spec.dtype):
            raise _refusal(name, spec)
        is_sharding = isinstance(placement, jax.sharding.Sharding) and not _is_global(placement)
        if is_sharding and spec.shape is not None and None not in spec.shape:
            try:
                placement.shard_shape(spec.shape)
            except _MISFITS as error:
                raise _misfit(name, spec.shape, placement, error) from error


def _check_sharding(sharding: Any) -> None:
    """Raise TypeError if a leaf of the structure is not a Sharding, a Device or None."""
    for leaf in structure_of(sharding).flatten(sharding):
        if not isinstance(leaf, jax.sharding.Sharding | jax.Device):
            raise TypeError(
                "to_jax(): sharding must be a jax.sharding.Sharding or a jax.Device, or a structure such as a tuple or "
                f"dict of them, got {leaf!r} of type {type(leaf).__name__}"
            )


def _spread(structure: Structure, sharding: Any) -> list[Placement]:
    """Return the placement of each component. A single placement applies to its whole part of the structure."""
    if sharding is None or isinstance(sharding, jax.sharding.Sharding | jax.Device):
        return [sharding] * structure.num_components
    try:
        parts = _children(structure, sharding)
    except StructureMismatchError:
        raise TypeError(
            f"to_jax(): sharding must have the structure of the elements, {structure!r}, or a prefix of it, "
            f"got {structure_of(sharding)!r}"
        ) from None
    return [
        placement for child, part in zip(structure.children, parts, strict=True) for placement in _spread(child, part)
    ]


def _children(structure: Structure, sharding: Any) -> list[Any]:
    """Return the parts of a sharding that correspond to the children of a structure."""
    if structure is LEAF or structure is NONE:
        raise StructureMismatchError
    shallow: Structure = dataclasses.replace(structure, children=(LEAF,) * len(structure.children))  # type: ignore[type-var]  # those with children are
    return shallow.flatten(sharding)


def _refusal(name: str, spec: ComponentSpec) -> SpecError:
    match spec:
        case RaggedTensorSpec():
            way_out = "pad it, with padded_batch() or with to_tensor() in map()"
        case SparseTensorSpec():
            way_out = "make it dense with to_dense(), or arrays of its indices and values, in map()"
        case DatasetSpec():
            way_out = "flatten the nested datasets first, with flat_map()"
        case _:
            way_out = "leave it out or encode it as numbers, in map()"
    return SpecError(f"to_jax(): {name} is {spec!r}, which JAX arrays cannot represent; {way_out}")


def _misfit(name: str, shape: Any, placement: Placement, error: Exception) -> SpecError:
    return SpecError(
        f"to_jax(): {name} of shape {shape} cannot be laid out as {placement!r}: {error}. Each size must be a multiple "
        "of the number of parts it is split into; batch(..., drop_remainder=True) drops a smaller last batch"
    )
