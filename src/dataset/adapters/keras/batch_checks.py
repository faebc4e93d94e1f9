"""Checks that the elements of a dataset are batches that Keras accepts, and their error messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import keras
import numpy as np

from dataset.dataset import Dataset
from dataset.plan.spec import BYTES, ComponentSpec, DatasetSpec, RaggedTensorSpec, SparseTensorSpec, is_dense
from dataset.plan.structure import structure_of

_NUMBER_KINDS = "biufcV"  # V is the kind of bfloat16 and similar dtypes of ml_dtypes


def fail(dataset: Dataset[Any], problem: str) -> NoReturn:
    """Raise an error that names the last op of the dataset."""
    raise ValueError(f"to_keras() of {dataset.plan}: {problem}")


def check_batches(dataset: Dataset[Any], spec: Any, class_weight: Mapping[int, float] | None) -> None:
    """Raise ValueError if elements of this spec are not batches that Keras accepts."""
    if problem := _nesting_problem(spec) or _components_problem(spec) or _weighting_problem(spec, class_weight):
        fail(dataset, problem)


def _nesting_problem(spec: Any) -> str | None:
    if isinstance(spec, tuple) and len(spec) not in {1, 2, 3}:
        return (
            f"the elements are tuples of {len(spec)}, but Keras accepts (x,), (x, y) and (x, y, sample_weight); "
            "rearrange them in map(), several inputs as ((a, b), y) or as a dict"
        )
    if isinstance(spec, tuple) and spec[0] is None:
        return "x is None, but Keras accepts (x,), (x, y) and (x, y, sample_weight)"
    if (cls := _foreign_class(spec)) is not None:
        return f"the elements hold a {cls.__name__}, but Keras accepts tuples and dicts; convert it in map()"
    return None


def _foreign_class(spec: Any) -> type | None:
    """Return the class of a nested structure that Keras does not support; None if there is none."""
    if spec is None or isinstance(spec, ComponentSpec):
        return None
    if not isinstance(spec, tuple | dict):
        return type(spec)
    parts = spec.values() if isinstance(spec, dict) else spec
    return next((cls for part in parts if (cls := _foreign_class(part)) is not None), None)


def _components_problem(spec: Any) -> str | None:
    structure = structure_of(spec)
    components = structure.flatten(spec)
    for index, component in enumerate(components):
        if problem := _component_problem(component):
            return f"{structure.component_name(index)} {problem}"
    rows = [component.shape[0] for component in components if component.shape]
    known = [(index, count) for index, count in enumerate(rows) if count is not None]
    if known and len(rows) == len(components):
        (first, count), (last, other) = known[0], max(known, key=lambda item: item[1] != known[0][1])
        if count != other:
            return (
                f"{structure.component_name(first)} has {count} rows and {structure.component_name(last)} has {other}, "
                "so the elements are not batches; call batch() before to_keras()"
            )
    return None


def _component_problem(component: ComponentSpec) -> str | None:
    if isinstance(component, SparseTensorSpec):
        return "is a SparseTensor, but Keras accepts arrays; call to_dense() in map()"
    if isinstance(component, DatasetSpec):
        return "is a Dataset, but Keras accepts arrays; turn it into batches with flat_map()"
    if isinstance(component, RaggedTensorSpec) and not is_dense(component):
        return "is a RaggedTensor, but Keras accepts arrays; use padded_batch(), or to_tensor() in map()"
    if component.shape == ():
        return "is a single value, but Keras accepts batches; call batch() before to_keras()"
    if component.dtype == BYTES:
        if keras.backend.backend() == "tensorflow":
            return None
        return f"is text, which the {keras.backend.backend()} backend does not support; convert it to numbers in map()"
    if component.dtype.kind not in _NUMBER_KINDS:
        what = "Python objects" if component.dtype == np.dtype(object) else f"values of dtype {component.dtype}"
        return f"holds {what}, but Keras accepts numbers; convert them in map()"
    return None


def _weighting_problem(spec: Any, class_weight: Mapping[int, float] | None) -> str | None:
    if class_weight is None:
        return None
    if not isinstance(spec, tuple) or len(spec) == 1 or spec[1] is None:
        return "class_weight needs targets, that is elements (x, y), but there is only x"
    if len(spec) == 3 and spec[2] is not None:
        return "class_weight cannot be combined with sample weights, the third component"
    if not isinstance(spec[1], ComponentSpec):
        return "class_weight supports one output, but y has several parts; use elements (x, y, sample_weight) instead"
    return None
