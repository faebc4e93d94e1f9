"""Tensor layout: elements are passed from Python into TensorFlow's graph as flat tensors, which the graph reassembles.

A Python function called from a graph can return only dense tensors quickly. So a RaggedTensor is passed as its values
and row splits, and a SparseTensor as its three arrays; ``join`` rebuilds TensorFlow's values and the structure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dataset.adapters.arrays import private
from dataset.errors import SpecError
from dataset.plan.spec import (
    BYTES,
    ComponentSpec,
    RaggedTensorSpec,
    SparseTensorSpec,
    TensorSpec,
    component_spec,
    flatten_spec,
    is_dense,
)
from dataset.plan.structure import StructureMismatchError, structure_of
from dataset.plan.values import RaggedTensor, SparseTensor


class TensorLayout:
    """The flat form of the elements of one spec.

    Args:
        tf: TensorFlow.
        spec: the spec of the elements.

    Raises:
        SpecError: if TensorFlow has no type for a component, or for the structure.

    Attributes:
        signature: a ``tf.TensorSpec`` for each flat tensor.
    """

    def __init__(self, tf: Any, spec: Any) -> None:
        self.structure, specs = flatten_spec(spec)
        self.specs = list(specs)
        if not specs:
            raise SpecError("to_tf(): the elements have no components, but TensorFlow needs at least one")
        _check_nesting(tf, self.structure)
        self._parts = [_part(tf, one, self.structure.component_name(index)) for index, one in enumerate(self.specs)]
        self.signature = tuple(spec for part in self._parts for spec in part.signature)

    def split(self, element: Any) -> tuple[Any, ...]:
        """Return the flat arrays of an element, which TensorFlow may keep.

        Raises:
            SpecError: if the element does not have the spec.
        """
        try:
            components = self.structure.flatten(element)
        except StructureMismatchError:
            raise SpecError(
                f"to_tf(): expected elements of structure {self.structure!r}, got {structure_of(element)!r}"
            ) from None
        self._check(components)
        del element  # for the reference counts
        components = private(components)
        parts = zip(self._parts, components, strict=True)
        return tuple([array for part, component in parts for array in part.split(component)])

    def _check(self, components: list[Any]) -> None:
        for index, (spec, component) in enumerate(zip(self.specs, components, strict=True)):
            if not spec.is_compatible_with(component):
                name = self.structure.component_name(index)
                raise SpecError(
                    f"to_tf(): {name} is {component_spec(component)!r}, but its spec is {spec!r}; "
                    "pass a spec that allows it to to_tf(output_signature=...), with None where sizes differ"
                )

    def join(self, *tensors: Any) -> Any:
        """Return TensorFlow's element for the flat tensors."""
        values, start = [], 0
        for part in self._parts:
            stop = start + len(part.signature)
            values.append(part.join(tensors[start:stop]))
            start = stop
        return self.structure.unflatten(values)


class _Dense:
    def __init__(self, tf: Any, spec: ComponentSpec, dtype: Any) -> None:
        self.signature = [tf.TensorSpec(spec.shape, dtype)]

    def split(self, component: Any) -> Sequence[Any]:
        return (component,)

    def join(self, tensors: Sequence[Any]) -> Any:
        return tensors[0]


class _Ragged:
    def __init__(self, tf: Any, spec: RaggedTensorSpec, dtype: Any) -> None:
        self._class = tf.RaggedTensor
        shape = spec.shape
        values_shape = None if shape is None else (None, *shape[spec.ragged_rank + 1 :])
        num_rows = None if shape is None else shape[0]
        splits = tf.as_dtype(spec.row_splits_dtype)
        self.signature = [
            tf.TensorSpec(values_shape, dtype),
            tf.TensorSpec((None if num_rows is None else num_rows + 1,), splits),
            *[tf.TensorSpec((None,), splits)] * (spec.ragged_rank - 1),
        ]

    def split(self, component: RaggedTensor) -> Sequence[Any]:
        return private([component.flat_values, *component.nested_row_splits])

    def join(self, tensors: Sequence[Any]) -> Any:
        # A RaggedTensor of this library is always valid.
        return self._class.from_nested_row_splits(tensors[0], tensors[1:], validate=False)


class _Sparse:
    def __init__(self, tf: Any, spec: SparseTensorSpec, dtype: Any) -> None:
        self._class = tf.SparseTensor
        self._shape = spec.shape
        rank = None if spec.shape is None else len(spec.shape)
        self.signature = [
            tf.TensorSpec((None, rank), tf.int64),
            tf.TensorSpec((None,), dtype),
            tf.TensorSpec((rank,), tf.int64),
        ]

    def split(self, component: SparseTensor) -> Sequence[Any]:
        return private([component.indices, component.values, component.dense_shape])

    def join(self, tensors: Sequence[Any]) -> Any:
        sparse = self._class(*tensors)
        sparse.set_shape(self._shape)
        return sparse


def _part(tf: Any, spec: ComponentSpec, name: str) -> _Dense | _Ragged | _Sparse:
    dtype = _dtype(tf, spec, name)
    if isinstance(spec, SparseTensorSpec):
        return _Sparse(tf, spec, dtype)
    return _Dense(tf, spec, dtype) if is_dense(spec) else _Ragged(tf, spec, dtype)  # type: ignore[arg-type]  # the rest


def _dtype(tf: Any, spec: ComponentSpec, name: str) -> Any:
    if not isinstance(spec, TensorSpec | RaggedTensorSpec | SparseTensorSpec):
        raise SpecError(f"to_tf(): {name} is {spec!r}; flatten the nested datasets first, with flat_map()")
    if spec.dtype == BYTES:
        return tf.string
    if not spec.dtype.hasobject:
        try:
            return tf.as_dtype(spec.dtype)
        except TypeError:
            pass
    raise SpecError(
        f"to_tf(): {name} has the dtype {spec.dtype}, for which TensorFlow has no type; "
        "leave it out or convert it, in map()"
    )


def _check_nesting(tf: Any, structure: Any) -> None:
    """Check that ``tf.nest`` finds the components of an element, which is not the case for every dataclass."""
    for found in tf.nest.flatten(structure.unflatten(range(structure.num_components))):
        if found is not None and type(found) is not int:
            raise SpecError(
                f"to_tf(): TensorFlow cannot flatten a {type(found).__name__}; add __tf_flatten__ and "
                "__tf_unflatten__, the protocol of tf.nest, to the class, or convert it to a dict in map()"
            )
