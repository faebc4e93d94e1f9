"""Batches as torch tensors, on the device that Keras uses."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import torch

from dataset.plan.structure import map_structure

_SHARED = frozenset(map(np.dtype, ["?", "u1", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "c8", "c16"]))


def tensors(batch: Any) -> Any:
    """Return a batch with its arrays as tensors."""
    return map_structure(_tensor, batch)


def _tensor(array: npt.NDArray[Any]) -> Any:
    """Return a tensor that shares the array's memory, or a copy if other code may read that memory again."""
    if array.flags.writeable and array.dtype in _SHARED and min(array.strides, default=0) >= 0:
        return keras.ops.convert_to_tensor(torch.from_numpy(array))
    return keras.ops.convert_to_tensor(array)  # it copies, and supports dtypes that torch.from_numpy does not
