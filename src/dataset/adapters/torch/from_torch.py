"""Datasets of torch as sources: their items as elements of NumPy arrays."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from dataset.adapters.torch.tensors import VIEWED
from dataset.plan.structure import LEAF, structure_of
from dataset.plan.values import RaggedTensor, SparseTensor, frozen_view

_NAMES = {dtype: name for name, dtype in VIEWED.items()}
"""What ml_dtypes calls torch's own dtypes."""


def columns_of(dataset: Any) -> tuple[Any, ...] | None:
    """The arrays whose rows the items of a TensorDataset are; None for any other dataset."""
    kind = torch.utils.data.TensorDataset
    if not isinstance(dataset, kind) or type(dataset).__getitem__ is not kind.__getitem__:
        return None
    return tuple(array_of(tensor) for tensor in dataset.tensors)


def is_iterable(dataset: Any) -> bool:
    """Whether a dataset is to be iterated over; if not, it has items by number.

    Raises:
        TypeError: if it is neither.
    """
    if isinstance(dataset, torch.utils.data.IterableDataset | torch.utils.data.DataLoader):
        return True
    if hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__"):
        return False
    reason = "one with __getitem__ needs __len__, too" if hasattr(dataset, "__getitem__") else "any other is no dataset"
    raise TypeError(
        "from_torch(): expected a map-style dataset, an IterableDataset or a DataLoader of torch, got "
        f"{dataset!r:.200} of type {type(dataset).__name__}; {reason}"
    )


class Iterating:
    """What from_generator calls for each iteration over an iterable dataset."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self.__qualname__ = type(dataset).__name__  # the name in messages

    def __call__(self) -> Iterator[Any]:
        """The elements of one iteration."""
        return map(element_of, self._dataset)


def element_of(item: Any) -> Any:
    """The element of an item: its tensors as read-only arrays over the same memory, a list at the top as a tuple."""
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
    """The component that a tensor is: an array of its memory if that is the host's, else of a copy; a scalar.

    Raises:
        TypeError: if NumPy cannot hold it.
        ImportError: if that takes ml_dtypes, which is not installed.
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
            "ml_dtypes; or make it float32 before"
        ) from None
    bits = torch.uint8 if tensor.element_size() == 1 else torch.int16
    return tensor.view(bits).numpy().view(dtype)
