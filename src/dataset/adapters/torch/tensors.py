"""Values as tensors that share their memory, where torch can hold them so.

torch has no read-only tensors. An array that is read-only, because the library will read its memory again, is copied.
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
"""Makes a tensor of an array of numbers."""

_SHARED = frozenset(map(np.dtype, [*np.typecodes["AllInteger"], "e", "f", "d", "F", "D", "?"]))
"""What torch takes as it is, in the byte order of this machine."""

_FOREIGN = ["bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"]
VIEWED = {name: getattr(torch, name) for name in _FOREIGN if hasattr(torch, name)}
"""By their names, the dtypes that NumPy has from ml_dtypes and torch as its own: the bits are the same."""


def raw(array: Array) -> tuple[Array, Any]:
    """The array as one of a dtype that torch shares, and the torch dtype to view it as; None for that of the array.

    Raises:
        TypeError: if torch has no such dtype.
    """
    if array.dtype in _SHARED:
        return array, None
    wanted = VIEWED.get(array.dtype.name)
    if wanted is not None:
        return array.view(f"i{array.dtype.itemsize}"), wanted
    native = array.dtype.newbyteorder("=")
    if native in _SHARED:
        return array.astype(native), None
    raise TypeError(_refusal(array.dtype))


def _refusal(dtype: np.dtype[Any]) -> str:
    numbers = "x.astype(np.int64)" if dtype.kind in "mM" else "x.astype(np.float64)"
    return (
        f"torch has no tensors of dtype {dtype}; make them numbers in map(), such as {numbers}, or leave them out with "
        "select()"
    )


def tensor_of(array: Array) -> Any:
    """The tensor of an array of numbers: of its memory, where that may be written to, else of a copy."""
    bits, view = raw(array)
    tensor = _shared(bits)
    return tensor if view is None else tensor.view(view)


def _shared(array: Array) -> Any:
    if array.flags.writeable:
        try:
            return torch.from_numpy(array)
        except ValueError:  # negative strides, or such as are not of whole items
            pass
    return torch.from_numpy(array.copy())


def pinned_tensor_of(array: Array) -> Any:
    """A tensor in page-locked memory, which a device can read by itself."""
    bits, view = raw(array)
    tensor = torch.empty(bits.shape, dtype=torch_dtype(bits.dtype), pin_memory=True)
    np.copyto(tensor.numpy(), bits)
    return tensor if view is None else tensor.view(view)


def torch_dtype(dtype: np.dtype[Any]) -> Any:
    """What torch calls a dtype that it shares."""
    return torch.from_numpy(np.empty(0, dtype)).dtype


class TorchTensors:
    """Makes elements of tensors.

    Text stays ``bytes``, arrays of it become nested lists, and objects of other kinds are left as they are.

    Args:
        make: makes a tensor of an array.
        wrap: what stands for a dataset in an element.
    """

    def __init__(self, make: Make, wrap: Callable[[Dataset[Any]], Any]) -> None:
        self._make = make
        self._wrap = wrap

    def __call__(self, element: Any) -> Any:
        """An element of tensors, in the structure of ``element``.

        Raises:
            TypeError: if torch cannot hold a component.
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
        # Indices out of range would be read and written by torch all the same, so they are checked.
        return torch.sparse_coo_tensor(indices, self._make(value.values), value.shape, check_invariants=True)


_TOO_RAGGED = (
    "torch's nested tensors have one ragged dimension; make the others dense in map(), such as x.to_tensor(), or use "
    "padded_batch()"
)
_SPARSE_TEXT = "torch has no sparse tensors of text; make it dense in map(), such as x.to_dense()"


def require_tensors(op: str, element_spec: Any) -> None:
    """Check that torch can hold elements of this spec.

    Raises:
        TypeError: with the component that it cannot hold.
    """
    structure, specs = flatten_spec(element_spec)
    for index, spec in enumerate(specs):
        reason = _obstacle(spec)
        if reason:
            raise TypeError(f"{op}(): {structure.component_name(index)}: {reason}")


def _obstacle(spec: ComponentSpec) -> str:
    if isinstance(spec, SparseTensorSpec) and spec.dtype == BYTES:
        return _SPARSE_TEXT
    if spec.dtype in {BYTES, np.dtype(object)}:
        return ""
    if isinstance(spec, RaggedTensorSpec) and spec.ragged_rank > 1:
        return _TOO_RAGGED
    known = spec.dtype.newbyteorder("=") in _SHARED or spec.dtype.name in VIEWED
    return "" if known else _refusal(spec.dtype)
