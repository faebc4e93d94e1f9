"""Mapping from Arrow types to components.

    ints, floats (including half), bool     the same dtype; bool8 is bool
    decimal                                 the nearest float64
    string, binary, of any width            bytes
    dictionary                              the component of its values
    timestamp                               datetime64 of the same unit; in UTC if it has a time zone
    date32, date64                          datetime64[D], datetime64[ms]
    time                                    timedelta64 of the same unit, since midnight
    duration                                timedelta64 of the same unit
    fixed_size_list, fixed_shape_tensor     an array
    list, large_list                        an array; a RaggedTensor for lists of lists
    an extension type                       the component of its storage

A struct is not a component: requested_columns.py converts it to a dict. A null becomes NaN in floats and NaT in times.
Other dtypes cannot represent a null.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dataset.io.arrow.pyarrow_library import library
from dataset.plan.spec import BYTES, ComponentSpec, RaggedTensorSpec, TensorSpec


class UnsupportedTypeError(Exception):
    """Internal error: values of this type have no component. The message says why; callers add the column."""


def plain_type(kind: Any) -> Any:
    """Return the type of the stored values: the storage type of an extension type, the value type of a dictionary.

    That of bool8 is bool, although bytes are stored.
    """
    pa = library()
    while True:
        if getattr(kind, "extension_name", "") == "arrow.bool8":
            return pa.bool_()
        if isinstance(kind, pa.BaseExtensionType):
            kind = kind.storage_type
        elif pa.types.is_dictionary(kind):
            kind = kind.value_type
        else:
            return kind


def is_text(kind: Any) -> bool:
    """Return whether values of a plain type are bytes or strings."""
    types = library().types
    tests = (
        types.is_binary,
        types.is_string,
        types.is_large_binary,
        types.is_large_string,
        types.is_fixed_size_binary,
        types.is_binary_view,
        types.is_string_view,
    )
    return any(test(kind) for test in tests)


def value_type(kind: Any) -> Any:
    """Return the plain type of the innermost values of nested lists."""
    types = library().types
    kind = plain_type(kind)
    while types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        kind = plain_type(kind.value_type)
    return kind


def holds_null(kind: Any) -> bool:
    """Return whether the dtype can represent a null, as NaN or NaT."""
    return _scalar_dtype(value_type(kind)).kind in "fMm"


def component_of(kind: Any) -> ComponentSpec:
    """Return the spec of one value.

    Raises:
        UnsupportedTypeError: the type has no component.
    """
    types = library().types
    shape = _tensor_shape(kind)
    kind = plain_type(kind)
    if types.is_fixed_size_list(kind):
        inner = component_of(kind.value_type)
        if not isinstance(inner, TensorSpec) or inner.shape is None:
            raise UnsupportedTypeError("lists of a fixed size may contain only numbers, text and lists of a fixed size")
        return TensorSpec(shape or (kind.list_size, *inner.shape), inner.dtype)
    if not (types.is_list(kind) or types.is_large_list(kind)):
        return TensorSpec((), _scalar_dtype(kind))
    inner = component_of(kind.value_type)
    assert inner.shape is not None  # no type has an unknown rank
    rank = inner.ragged_rank + 1 if isinstance(inner, RaggedTensorSpec) else 0
    return RaggedTensorSpec((None, *inner.shape), inner.dtype, rank)


def _tensor_shape(kind: Any) -> tuple[int, ...] | None:
    """Return the shape of a ``fixed_shape_tensor``, whose storage is a flat list; None for other types."""
    if getattr(kind, "extension_name", "") != "arrow.fixed_shape_tensor":
        return None
    if kind.permutation is not None and list(kind.permutation) != list(range(len(kind.shape))):
        raise UnsupportedTypeError("tensors with permuted axes are not supported; store them in row-major order")
    return tuple(kind.shape)


def _scalar_dtype(kind: Any) -> np.dtype[Any]:
    types = library().types
    if is_text(kind):
        return BYTES
    if types.is_decimal(kind):
        return np.dtype(np.float64)
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind):
        dtype: np.dtype[Any] = np.dtype(kind.to_pandas_dtype())
        return dtype
    if types.is_date(kind):
        return np.dtype("M8[D]" if types.is_date32(kind) else "M8[ms]")
    if types.is_timestamp(kind):
        return np.dtype(f"M8[{kind.unit}]")
    if types.is_time(kind) or types.is_duration(kind):
        return np.dtype(f"m8[{kind.unit}]")
    raise UnsupportedTypeError(_no_component(kind))


def _no_component(kind: Any) -> str:
    types = library().types
    if types.is_null(kind):
        return "it contains only nulls, so the type of its values is unknown"
    if types.is_map(kind):
        return "maps are not supported; store the keys and the values as two lists"
    if types.is_struct(kind):
        return "lists of structs are not supported; store a struct of lists"
    return "it has no corresponding NumPy dtype"
