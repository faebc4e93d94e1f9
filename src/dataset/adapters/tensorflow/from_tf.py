"""A ``tf.data.Dataset`` as a Dataset: its specs and its values become ours, element by element."""

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
        dataset: TensorFlow's.

    Raises:
        TypeError: if it is none, or an element holds what is no component of ours.
        RuntimeError: inside a ``tf.function``, where a dataset cannot be iterated over by Python.

    Attributes:
        signature: the spec of the elements.
        count: how many there are, or INFINITE_CARDINALITY or UNKNOWN_CARDINALITY, which are equal in both libraries.
        kind: what plans call it.
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
        """A new pass."""
        return _TensorFlowPass(self._tf, self._dataset)


class _TensorFlowPass(Iterator[Any]):
    """TensorFlow's iterator, whose exceptions stand for single elements, as ours do."""

    def __init__(self, tf: Any, dataset: Any) -> None:
        self._tf = tf
        self._iterator = iter(dataset)

    def __next__(self) -> Any:
        return map_structure(self._value, next(self._iterator))

    def close(self) -> None:
        """Let go of the pass: TensorFlow ends one when its iterator is dropped."""
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
        return value.numpy()  # a copy: TensorFlow may use the memory again


def _spec(tf: Any, spec: Any, name: str) -> ComponentSpec | None:
    """Our spec for TensorFlow's; None where there is never a value."""
    if isinstance(spec, tf.NoneTensorSpec):
        return None
    if isinstance(spec, tf.data.DatasetSpec) and spec._dataset_shape.rank == 0:  # noqa: SLF001  # not said otherwise
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
        f"from_tf(): {name} is {spec!r}, for which there is no component here; "
        "leave it out or convert it, with TensorFlow's own map()"
    )
