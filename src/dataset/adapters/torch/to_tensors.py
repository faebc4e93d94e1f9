"""Conversion of values to tensors, which share the memory of the values if possible.

torch has no read-only tensors. A read-only array is copied, because the library will read its memory again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from dataset.dataset import Dataset
from dataset.plan.spec import BYTES, ComponentSpec, RaggedTensorSpec, SparseTensorSpec, flatten_spec
from dataset.plan.structure import LEAF, structure_of
from dataset.plan.values import RaggedTensor, SparseTensor

Array: TypeAlias = npt.NDArray[Any]
Make: TypeAlias = Callable[[Array], Any]
"""Converts an array of numbers to a tensor."""

_SHARED = frozenset(map(np.dtype, [*np.typecodes["AllInteger"], "e", "f", "d", "F", "D", "?"]))
"""The dtypes that torch shares."""

_FOREIGN = ["bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"]
VIEWED = {name: getattr(torch, name) for name in _FOREIGN if hasattr(torch, name)}
"""The torch dtypes that NumPy has from ml_dtypes, by name. The bits of their values are the same in both."""


def raw(array: Array) -> tuple[Array, Any]:
    """Return the array in a dtype that torch shares, and the torch dtype to view it as, or None if it is the same.

    Raises:
        TypeError: if torch does not have the dtype.
    """
    if array.dtype in _SHARED:
        return array, None
    wanted = VIEWED.get(array.dtype.name)
    if wanted is not None:
        return array.view(f"i{array.dtype.itemsize}"), wanted
    raise TypeError(_refusal(array.dtype))


def _refusal(dtype: np.dtype[Any]) -> str:
    numbers = "x.astype(np.int64)" if dtype.kind in "mM" else "x.astype(np.float64)"
    return (
        f"torch has no tensors of dtype {dtype}; convert them to numbers in map(), such as {numbers}, or leave them "
        "out with select()"
    )


def tensor_of(array: Array) -> Any:
    """Return an array of numbers as a tensor that shares its memory, or as a copy if it is read-only."""
    bits, view = raw(array)
    tensor = _shared(bits)
    return tensor if view is None else tensor.view(view)


def _shared(array: Array) -> Any:
    if array.flags.writeable:
        try:
            return torch.from_numpy(array)
        except ValueError:  # strides that are negative or not a multiple of the item size
            pass
    return torch.from_numpy(array.copy())


def pinned_tensor_of(array: Array) -> Any:
    """Copy an array to a tensor in page-locked memory, which a device can read asynchronously."""
    bits, view = raw(array)
    tensor = torch.empty(bits.shape, dtype=torch_dtype(bits.dtype), pin_memory=True)
    np.copyto(tensor.numpy(), bits)
    return tensor if view is None else tensor.view(view)


def torch_dtype(dtype: np.dtype[Any]) -> Any:
    """Return the torch dtype for a NumPy dtype that torch shares."""
    return torch.from_numpy(np.empty(0, dtype)).dtype


class TorchTensors:
    """Converter of elements to elements of tensors.

    Text stays ``bytes``, arrays of text become nested lists, and objects of other kinds are unchanged.

    Args:
        make: converts an array to a tensor.
        wrap: wraps a dataset that is part of an element.
    """

    def __init__(self, make: Make, wrap: Callable[[Dataset[Any]], Any]) -> None:
        self._make = make
        self._wrap = wrap

    def __call__(self, element: Any) -> Any:
        """Return the element with its components as tensors.

        Raises:
            TypeError: if torch cannot represent a component.
        """
        structure = structure_of(element)
        if structure is LEAF:
            return self._component(element)
        components = structure.flatten(element)
        return structure.unflatten([self._component(component) for component in components])

    def _component(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return self._make(value) if value.dtype != object else self._list(value.tolist())
        if isinstance(value, np.generic):
            return self._make(np.asarray(value))
        if isinstance(value, RaggedTensor):
            return self._ragged(value)
        if isinstance(value, SparseTensor):
            return self._sparse(value)
        return self._wrap(value) if isinstance(value, Dataset) else value

    def _list(self, values: list[Any]) -> list[Any]:
        if set(map(type, values)) == {bytes}:
            return values
        return [self._list(value) if isinstance(value, list) else self._component(value) for value in values]

    def _ragged(self, value: RaggedTensor) -> Any:
        if value.dtype == object:
            return self._list(value.to_list())
        if value.ragged_rank > 1:
            raise TypeError(_TOO_RAGGED)
        return torch.nested.nested_tensor_from_jagged(self._make(value.flat_values), self._make(value.row_splits))

    def _sparse(self, value: SparseTensor) -> Any:
        if value.dtype == object:
            raise TypeError(_SPARSE_TEXT)
        indices = self._make(value.indices).T
        # Unchecked, torch would read and write memory out of bounds for indices that are out of range.
        return torch.sparse_coo_tensor(indices, self._make(value.values), value.shape, check_invariants=True)


_TOO_RAGGED = (
    "torch's nested tensors have only one ragged dimension; make the tensor dense in map(), as with x.to_tensor(), or "
    "use padded_batch()"
)
_SPARSE_TEXT = "torch has no sparse tensors of text; make the tensor dense in map(), as with x.to_dense()"


def require_tensors(op: str, element_spec: Any) -> None:
    """Check that torch can represent elements of this spec.

    Raises:
        TypeError: if it cannot; the message names the component.
    """
    structure, specs = flatten_spec(element_spec)
    for index, spec in enumerate(specs):
        if reason := _obstacle(spec):
            raise TypeError(f"{op}(): {structure.component_name(index)}: {reason}")


def _obstacle(spec: ComponentSpec) -> str:
    if isinstance(spec, SparseTensorSpec) and spec.dtype == BYTES:
        return _SPARSE_TEXT
    if spec.dtype in {BYTES, np.dtype(object)}:
        return ""
    if isinstance(spec, RaggedTensorSpec) and spec.ragged_rank > 1:
        return _TOO_RAGGED
    known = spec.dtype in _SHARED or spec.dtype.name in VIEWED
    return "" if known else _refusal(spec.dtype)
