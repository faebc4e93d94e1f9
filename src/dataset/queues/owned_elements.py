"""Owned elements: converts an element to the form in which a queue holds it, canonical and with memory of its own.

The structure of the elements is known after the first, so that the containers of the others need no examination. A
component of a usual type takes one call. Everything else is left to SignatureRows, which defines the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dataset.plan.spec import BYTES, TensorSpec, component_spec
from dataset.plan.structure import Structure, StructureMismatchError
from dataset.runtime.chunks.normalization import canonical_component, is_canonical
from dataset.runtime.chunks.ownership import copied_component

_CONVERT: dict[type[Any], Callable[[Any], Any]] = {
    bool: np.bool_,
    int: np.int64,
    float: np.float64,
    complex: np.complex128,
    str: str.encode,
}
"""What makes a canonical component of a Python value."""


def owner_of(structure: Structure, specs: Sequence[Any] = ()) -> Callable[[Any], Any]:
    """Return the function that converts an element; without ``specs``, its components may be anything.

    It raises StructureMismatchError for an element that may be invalid, or that must be cast to a spec.
    """
    components = map(_declared, specs) if specs else [_owned] * structure.num_components
    return structure.mapper(list(components))


def _owned(value: Any) -> Any:
    """Return the canonical form of a component, with memory of its own."""
    convert = _CONVERT.get(type(value))
    if convert is not None:
        try:
            return convert(value)
        except OverflowError:
            return canonical_component(value)
    if is_canonical(value):
        return value.copy() if type(value) is np.ndarray else value
    return copied_component(canonical_component(value))


def _declared(spec: Any) -> Callable[[Any], Any]:
    """Return ``_owned`` for components that need no cast to a spec."""
    if type(spec) is not TensorSpec:
        return unknown
    dtype, shape, kind = spec.dtype, spec.shape, bytes if spec.dtype == BYTES else spec.dtype.type

    def declared(value: Any) -> Any:
        owned = _owned(value)
        if type(owned) is kind:
            fits = not shape
        else:
            fits = type(owned) is np.ndarray and owned.dtype == dtype
            fits = fits and (owned.shape == shape or spec.allows(component_spec(owned)))
        return owned if fits else unknown(value)

    return declared


def unknown(value: Any) -> Any:  # noqa: ARG001  # any
    """Convert no element and no component."""
    raise StructureMismatchError
