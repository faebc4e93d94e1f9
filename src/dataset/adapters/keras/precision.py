"""Precision: the dtypes of the numbers that are passed to Keras."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import numpy.typing as npt

from dataset.plan.spec import BYTES, ComponentSpec, TensorSpec


class Precision:
    """Cast of floats to ``keras.config.floatx()``, as ``fit`` does for arrays in memory; other dtypes are unchanged."""

    def __init__(self) -> None:
        self.floatx: np.dtype[Any] = np.dtype(keras.config.floatx())
        self._targets: dict[np.dtype[Any], np.dtype[Any]] = {}

    def cast(self, value: Any) -> npt.NDArray[Any]:
        """Return a component in the dtype for Keras."""
        array: npt.NDArray[Any] = np.asarray(value)
        target = self._targets.get(array.dtype)
        if target is None:
            target = self._targets[array.dtype] = self._target(array.dtype)
        return array if array.dtype is target else array.astype(target, copy=False)

    def cast_spec(self, spec: ComponentSpec) -> TensorSpec:
        """Return the spec of a component after the cast."""
        return TensorSpec(spec.shape, self._target(spec.dtype))

    def _target(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        if dtype == BYTES or dtype.kind not in "fV":
            return dtype
        return self.floatx if keras.backend.is_float_dtype(dtype.name) else dtype
