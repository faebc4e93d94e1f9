"""Sources that read torch datasets: their items become elements of NumPy arrays."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from dataset.adapters.torch.to_tensors import VIEWED
from dataset.plan.structure import LEAF, structure_of
from dataset.plan.values import RaggedTensor, SparseTensor, frozen_view

_NAMES = {dtype: name for name, dtype in VIEWED.items()}
"""The names in ml_dtypes of the dtypes that NumPy does not have."""


def columns_of(dataset: Any) -> tuple[Any, ...] | None:
    """Return the arrays whose rows are the items of a TensorDataset; None for any other dataset."""
    kind = torch.utils.data.TensorDataset
    if not isinstance(dataset, kind) or type(dataset).__getitem__ is not kind.__getitem__:
        return None
    return tuple(array_of(tensor) for tensor in dataset.tensors)


def is_iterable(dataset: Any) -> bool:
    """Return whether a dataset is iterable; otherwise it is map-style.

    Raises:
        TypeError: if it is neither.
    """
    if isinstance(dataset, torch.utils.data.IterableDataset | torch.utils.data.DataLoader):
        return True
    if hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__"):
        return False
    reason = "it has __getitem__, but no __len__" if hasattr(dataset, "__getitem__") else "it has no __getitem__"
    raise TypeError(
        "from_torch(): expected a map-style dataset, an IterableDataset or a DataLoader of torch, got "
        f"{dataset!r:.200} of type {type(dataset).__name__}; {reason}"
    )


class Iterating:
    """Function that starts an iteration over an iterable dataset, for ``from_generator``."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self.__qualname__ = type(dataset).__name__  # the name in messages

    def __call__(self) -> Iterator[Any]:
        """Start an iteration."""
        return map(element_of, self._dataset)


def element_of(item: Any) -> Any:
    """Return the element for an item: tensors become read-only arrays of the same memory, a top-level list a tuple."""
    if isinstance(item, list):
        item = tuple(item)
    structure = structure_of(item)
    if structure is LEAF:
        return _component(item)
    return structure.unflatten([_component(value) for value in structure.flatten(item)])


def _component(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return array_of(value)
    return [_component(item) for item in value] if isinstance(value, list) else value


def array_of(tensor: Any) -> Any:
    """Return a tensor as an array, or as a scalar if it has no dimensions. Host memory is shared, not copied.

    Raises:
        TypeError: if NumPy has no arrays of this kind.
        ImportError: if the dtype requires ml_dtypes, which is not installed.
    """
    tensor = tensor.detach().cpu()
    if tensor.layout == torch.sparse_coo:
        tensor = tensor.coalesce()
        indices, values = array_of(tensor.indices()).T, array_of(tensor.values())
        return SparseTensor(indices, values, np.array(tensor.shape))
    if tensor.layout == torch.jagged:
        return RaggedTensor(array_of(tensor.values()), array_of(tensor.offsets()))
    if tensor.layout != torch.strided or tensor.is_nested or tensor.is_quantized:
        raise TypeError(f"from_torch(): NumPy has no arrays like a tensor of layout {tensor.layout}; make it dense")
    array = _numpy(tensor.resolve_conj().resolve_neg())
    return frozen_view(array) if array.ndim else array[()]


def _numpy(tensor: Any) -> Any:
    name = _NAMES.get(tensor.dtype)
    if name is None:
        return tensor.numpy()
    try:
        dtype = np.dtype(getattr(importlib.import_module("ml_dtypes"), name))
    except ImportError:
        raise ImportError(
            f"from_torch(): a tensor of dtype {tensor.dtype} needs ml_dtypes, which is not installed: pip install "
            "ml_dtypes; or convert it to float32"
        ) from None
    bits = torch.uint8 if tensor.element_size() == 1 else torch.int16
    return tensor.view(bits).numpy().view(dtype)
