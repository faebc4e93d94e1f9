"""Class weights as sample weights: each row has the weight of its class, as with ``fit(class_weight=...)``."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from dataset.plan.spec import Shape, TensorSpec


def require_class_weight(value: Any) -> dict[int, float] | None:
    """Return ``value`` as a dict of weights by class.

    Raises:
        TypeError: if it is not a mapping of ints to numbers.
    """
    if value is None:
        return None
    if not isinstance(value, Mapping) or not all(map(_is_entry, value.items())):
        raise TypeError(f"to_keras(): class_weight must be a dict from class numbers to weights, got {value!r}")
    return {int(number): float(weight) for number, weight in value.items()}


def _is_entry(entry: tuple[Any, Any]) -> bool:
    number, weight = entry
    return isinstance(number, numbers.Integral) and isinstance(weight, numbers.Real)


def weighted(batch: Any, class_weight: Mapping[int, float], dtype: np.dtype[Any]) -> tuple[Any, Any, Any]:
    """Return a batch ``(x, y)`` with the weights of its rows added."""
    return (batch[0], batch[1], sample_weights(batch[1], class_weight, dtype))


def sample_weights(y: npt.NDArray[Any], class_weight: Mapping[int, float], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return the weight of each target; it is 1 for classes without a weight.

    Args:
        y: class numbers of shape (rows, ...) or (rows, ..., 1), or one score per class, (rows, ..., classes).
        class_weight: weights by class number.
        dtype: the dtype of the result.
    """
    of_row = _class_numbers(y)
    classes, of_class = np.unique(of_row, return_inverse=True)
    weights = np.array([class_weight.get(int(number), 1.0) for number in classes], dtype)
    return weights[of_class].reshape(of_row.shape)


def _class_numbers(y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if y.ndim > 1:
        y = y.argmax(-1) if y.shape[-1] != 1 else y[..., 0]
    return np.round(y)


def _shape(shape: Shape) -> Shape:
    return shape if shape is None or len(shape) < 2 else shape[:-1]


def weighted_spec(spec: Any, dtype: np.dtype[Any]) -> tuple[Any, Any, TensorSpec]:
    """Return the spec of the result of ``weighted``."""
    return (spec[0], spec[1], TensorSpec(_shape(spec[1].shape), dtype))
