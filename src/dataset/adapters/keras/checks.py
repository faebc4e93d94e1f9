"""What the elements of a dataset must be for Keras, and the words for those that are not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import keras
import numpy as np

from dataset.dataset import Dataset
from dataset.plan.spec import BYTES, ComponentSpec, DatasetSpec, RaggedTensorSpec, SparseTensorSpec, is_dense
from dataset.plan.structure import structure_of

_NUMBER_KINDS = "biufcV"  # V is that of bfloat16 and its like, which are not NumPy's own


def fail(dataset: Dataset[Any], problem: str) -> NoReturn:
    """Raise the error, which names the dataset's last op."""
    raise ValueError(f"to_keras() of {dataset.plan.located()}: {problem}")


def check_batches(dataset: Dataset[Any], spec: Any, class_weight: Mapping[int, float] | None) -> None:
    """Raise ValueError if elements of this spec are no batches that Keras takes."""
    if problem := _nesting_problem(spec) or _components_problem(spec) or _weighting_problem(spec, class_weight):
        fail(dataset, problem)


def _nesting_problem(spec: Any) -> str | None:
    if isinstance(spec, tuple) and len(spec) not in {1, 2, 3}:
        return (
            f"the elements are tuples of {len(spec)}, but Keras takes (x,), (x, y) and (x, y, sample_weight); "
            "arrange them in map(), several inputs as ((a, b), y) or as a dict"
        )
    if isinstance(spec, tuple) and spec[0] is None:
        return "x is None, but Keras takes (x,), (x, y) and (x, y, sample_weight)"
    if (cls := _foreign_class(spec)) is not None:
        return f"Keras takes tuples and dicts, but the elements hold a {cls.__name__}; turn it into one in map()"
    return None


def _foreign_class(spec: Any) -> type | None:
    """The class of something nested in a way that Keras does not know."""
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
                "so the elements are no batches; call batch() before to_keras()"
            )
    return None


def _component_problem(component: ComponentSpec) -> str | None:
    if isinstance(component, SparseTensorSpec):
        return "is a SparseTensor, and Keras takes arrays; call to_dense() in map()"
    if isinstance(component, DatasetSpec):
        return "is a Dataset, and Keras takes arrays; turn it into batches with flat_map()"
    if isinstance(component, RaggedTensorSpec) and not is_dense(component):
        return "is a RaggedTensor, and Keras takes arrays; use padded_batch(), or to_tensor() in map()"
    if component.shape == ():
        return "is a single value, and Keras takes batches; call batch() before to_keras()"
    if component.dtype == BYTES:
        if keras.backend.backend() == "tensorflow":
            return None
        return f"is text, and the {keras.backend.backend()} backend has none; turn it into numbers in map()"
    if component.dtype.kind not in _NUMBER_KINDS:
        what = "Python objects" if component.dtype == np.dtype(object) else f"values of dtype {component.dtype}"
        return f"holds {what}, and Keras takes numbers; turn them into some in map()"
    return None


def _weighting_problem(spec: Any, class_weight: Mapping[int, float] | None) -> str | None:
    if class_weight is None:
        return None
    if not isinstance(spec, tuple) or len(spec) == 1 or spec[1] is None:
        return "class_weight needs targets, elements (x, y), but there is x only"
    if len(spec) == 3 and spec[2] is not None:
        return "class_weight and sample weights, the third component, exclude each other"
    if not isinstance(spec[1], ComponentSpec):
        return "class_weight is for one output, but y has several parts; give elements (x, y, sample_weight) instead"
    return None
