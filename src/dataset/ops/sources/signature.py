"""Signatures: the element spec that a user declares for a generator, in one of the two forms of tf.data."""

from __future__ import annotations

from typing import Any

from dataset.plan.spec import TensorSpec, flatten_spec
from dataset.plan.structure import StructureMismatchError, structure_of


def signature_of(output_types: Any, output_shapes: Any, output_signature: Any, op: str = "from_generator") -> Any:
    """Return the signature from either of the two forms; None if neither is given.

    Raises:
        TypeError: if both forms or shapes without types are given, or a component is not a spec or dtype.
        ValueError: if shapes and types differ in structure, or a signature has no components.
    """
    if output_signature is not None:
        if output_types is not None or output_shapes is not None:
            raise TypeError("from_generator(): give output_signature, or output_types and output_shapes, not both")
        return _checked(output_signature, op)
    if output_types is None:
        if output_shapes is not None:
            raise TypeError("from_generator(): output_shapes needs output_types")
        return None
    structure = structure_of(output_types)
    types = structure.flatten(output_types)
    shapes = [None] * len(types) if output_shapes is None else _shapes(structure, output_shapes)
    return _checked(structure.unflatten([_spec(shape, one) for shape, one in zip(shapes, types, strict=True)]), op)


def _checked(signature: Any, op: str) -> Any:
    try:
        _, specs = flatten_spec(signature)
    except TypeError as error:
        raise TypeError(f"{op}(): {error}; a list is data, use a tuple") from None
    if not specs:
        raise ValueError(f"{op}(): the signature must have at least one component, got {signature!r}")
    return signature


def _shapes(structure: Any, output_shapes: Any) -> list[Any]:
    try:
        return list(structure.flatten(output_shapes))
    except StructureMismatchError:
        raise ValueError(
            f"from_generator(): output_shapes must have the structure of output_types, {structure!r}, "
            f"got {output_shapes!r}"
        ) from None


def _spec(shape: Any, dtype: Any) -> TensorSpec:
    try:
        return TensorSpec(shape, dtype)
    except (TypeError, ValueError) as error:
        raise type(error)(f"from_generator(): invalid shape {shape!r} or dtype {dtype!r} ({error})") from None
