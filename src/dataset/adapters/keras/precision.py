"""Precision: the dtypes in which Keras gets its numbers."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import numpy.typing as npt

from dataset.plan.spec import BYTES, ComponentSpec, TensorSpec


class Precision:
    """Floats as ``keras.config.floatx()``, which is how ``fit`` casts arrays in memory; all else as it is."""

    def __init__(self) -> None:
        self.floatx: np.dtype[Any] = np.dtype(keras.config.floatx())
        self._targets: dict[np.dtype[Any], np.dtype[Any]] = {}

    def cast(self, value: Any) -> npt.NDArray[Any]:
        """A component in the dtype that Keras gets."""
        array: npt.NDArray[Any] = np.asarray(value)
        target = self._targets.get(array.dtype)
        if target is None:
            target = self._targets[array.dtype] = self._target(array.dtype)
        return array if array.dtype is target else array.astype(target, copy=False)

    def cast_spec(self, spec: ComponentSpec) -> TensorSpec:
        """The spec of a component that was cast."""
        return TensorSpec(spec.shape, self._target(spec.dtype))

    def _target(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        if dtype == BYTES or dtype.kind not in "fV":
            return dtype.newbyteorder("=")
        return self.floatx if keras.backend.is_float_dtype(dtype.name) else dtype
