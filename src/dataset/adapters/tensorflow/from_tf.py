"""Source that reads a ``tf.data.Dataset``: converts its specs, and its values element by element."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dataset.dataset import Dataset
from dataset.plan.spec import BYTES, ComponentSpec, DatasetSpec, RaggedTensorSpec, SparseTensorSpec, TensorSpec
from dataset.plan.structure import map_structure, structure_of
from dataset.plan.values import RaggedTensor, SparseTensor


class TfDataset:
    """A function that starts a pass over a ``tf.data.Dataset``, for the source node of ``Dataset.from_tf``.

    Args:
        tf: TensorFlow.
        dataset: the ``tf.data.Dataset``.

    Raises:
        TypeError: if ``dataset`` is not a ``tf.data.Dataset``, or its elements have a component that this library
            cannot represent.
        RuntimeError: inside a ``tf.function``, where Python cannot iterate over a dataset.

    Attributes:
        signature: the spec of the elements.
        count: the cardinality. INFINITE_CARDINALITY and UNKNOWN_CARDINALITY have the same values in both libraries.
        kind: the name of the source in plans.
    """

    def __init__(self, tf: Any, dataset: Any) -> None:
        if not isinstance(dataset, tf.data.Dataset):
            raise TypeError(
                f"from_tf(): expected a tf.data.Dataset, got {dataset!r:.200} of type {type(dataset).__name__}"
            )
        if not tf.executing_eagerly():
            raise RuntimeError("from_tf(): TensorFlow is building a graph; call it outside of tf.function")
        self._tf = tf
        self._dataset = dataset
        self._structure = structure_of(dataset.element_spec)
        specs = self._structure.flatten(dataset.element_spec)
        named = [(spec, self._structure.component_name(index)) for index, spec in enumerate(specs)]
        self.signature = self._structure.unflatten([_spec(tf, spec, name) for spec, name in named])
        self.count = int(dataset.cardinality())
        self.kind = type(dataset).__name__.strip("_")

    def __call__(self) -> Iterator[Any]:
        """Start a new pass."""
        return _TensorFlowPass(self._tf, self._dataset)


class _TensorFlowPass(Iterator[Any]):
    """Iterator over a ``tf.data.Dataset``. An exception concerns a single element: iteration may continue after it."""

    def __init__(self, tf: Any, dataset: Any) -> None:
        self._tf = tf
        self._iterator = iter(dataset)

    def __next__(self) -> Any:
        return map_structure(self._value, next(self._iterator))

    def close(self) -> None:
        """Drop TensorFlow's iterator, which ends the pass."""
        self._iterator = iter(())

    def _value(self, value: Any) -> Any:
        tf = self._tf
        if isinstance(value, tf.RaggedTensor):
            splits = [split.numpy() for split in value.nested_row_splits]
            return RaggedTensor.from_nested_row_splits(value.flat_values.numpy(), splits)
        if isinstance(value, tf.SparseTensor):
            return SparseTensor(value.indices.numpy(), value.values.numpy(), value.dense_shape.numpy())
        if isinstance(value, tf.data.Dataset):
            return Dataset.from_tf(value)
        return value.numpy()  # a copy: TensorFlow may reuse the memory


def _spec(tf: Any, spec: Any, name: str) -> ComponentSpec | None:
    """Convert a TensorFlow spec to a spec of this library; return None for a component that never has a value."""
    if isinstance(spec, tf.NoneTensorSpec):
        return None
    if isinstance(spec, tf.data.DatasetSpec) and spec._dataset_shape.rank == 0:  # noqa: SLF001  # not public
        return DatasetSpec(map_structure(lambda inner: _spec(tf, inner, name), spec.element_spec))
    if isinstance(spec, tf.RaggedTensorSpec) and spec.flat_values_spec is None:
        splits = spec.row_splits_dtype.as_numpy_dtype
        return RaggedTensorSpec(_shape(spec), _dtype(spec, name), spec.ragged_rank, splits)
    if isinstance(spec, tf.SparseTensorSpec):
        return SparseTensorSpec(_shape(spec), _dtype(spec, name))
    if isinstance(spec, tf.TensorSpec):
        return TensorSpec(_shape(spec), _dtype(spec, name))
    raise _refusal(spec, name)


def _shape(spec: Any) -> list[int | None] | None:
    return None if spec.shape.rank is None else spec.shape.as_list()


def _dtype(spec: Any, name: str) -> Any:
    if spec.dtype.name == "string":
        return BYTES
    if spec.dtype.is_quantized or spec.dtype.name in {"variant", "resource"}:
        raise _refusal(spec, name)
    return spec.dtype.as_numpy_dtype


def _refusal(spec: Any, name: str) -> TypeError:
    return TypeError(
        f"from_tf(): {name} is {spec!r}, which this library cannot represent; "
        "leave it out or convert it with TensorFlow's map()"
    )
