"""Hashable keys of elements: equal elements have equal keys, in whatever form a chunk holds them.

Components are equal if they have the same kind, dtype, shape and values. As in np.unique, NaN equals NaN and 0.0 equals
-0.0. Numbers become ints and text stays text, which is cheapest; all other values become self-describing bytes.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from dataset.errors import SpecError
from dataset.plan.nested import is_dataset
from dataset.plan.values import RaggedTensor, SparseTensor
from dataset.runtime.chunks.chunk import Array, Chunk, Column

TEXT = "text"
ARRAYS = "arrays"
OBJECTS = "objects"
_FIXED = "biufcmM"  # kinds of dtypes whose values are plain bits
_WORD = 8


class NotAlikeError(Exception):
    """Internal error: the elements of a chunk need keys of different kinds, so they must be pulled one by one."""


def keys_of(chunk: Chunk) -> tuple[str, Sequence[Any]]:
    """Return the kind of the keys and a key for each element. Elements with keys of different kinds are never equal.

    The kind is TEXT, ARRAYS, OBJECTS or, for scalars of up to 8 bytes, the dtype.

    Raises:
        NotAlikeError: if a chunk of several elements needs keys of several kinds.
        SpecError: if an object cannot be a key.
    """
    columns = [_alike(column) for column in chunk.columns()]
    if len(columns) == 1:
        (column,) = columns
        if isinstance(column, np.ndarray):
            if column.ndim == 1 and column.dtype.kind in _FIXED and column.dtype.itemsize <= _WORD:
                return column.dtype.str, _bits(column).tolist()
        elif type(column[0]) is bytes:
            return TEXT, column
    parts = [_keys(column) for column in columns]
    if all(type(key) is bytes for part in parts for key in part):
        return ARRAYS, parts[0] if len(parts) == 1 else list(map(b"".join, zip(*parts, strict=True)))
    if chunk.length > 1:
        raise NotAlikeError
    return OBJECTS, list(zip(*parts, strict=True))


def number_dtype(kind: str) -> np.dtype[Any] | None:
    """Return the dtype that holds the int keys of a kind; None for kinds whose keys are not ints."""
    if kind in {TEXT, ARRAYS, OBJECTS}:
        return None
    return np.dtype(np.int64 if np.dtype(kind).kind in "imM" else np.uint64)


def _alike(column: Column) -> Column:
    """Return the column as an array if it has a fixed dtype, else as a list of values of one type."""
    if isinstance(column, np.ndarray):
        if not column.dtype.hasobject:
            return column
        column = list(column)
    kinds = set(map(type, column))
    if len(kinds) > 1:
        raise NotAlikeError
    if issubclass(kinds.pop(), np.generic):
        if len({value.dtype for value in column}) > 1:
            raise NotAlikeError
        return np.array(column)
    return column


def _canonical(array: Array) -> Array:
    """Return a contiguous array with one representation of zero and one of NaN."""
    array = np.ascontiguousarray(array)
    if array.dtype.kind not in "fc":
        return array
    array = array + array.dtype.type(0)
    floats = array.view(array.real.dtype)
    floats[np.isnan(floats)] = np.nan
    return array if floats.itemsize <= _WORD else array.astype(str)  # long doubles have padding bytes


def _bits(column: Array) -> Array:
    """Return the values of a column of scalars as integers."""
    column = _canonical(column)
    if column.dtype.kind in "mM":
        return column.view(np.int64)
    return column if column.dtype.kind in "iu" else column.view(f"u{column.dtype.itemsize}")


def _keys(column: Column) -> list[Hashable]:
    """Return the keys of the components of one column: bytes that begin with dtype and shape, or objects."""
    if isinstance(column, np.ndarray):
        head, raw = _head(column.dtype, column.shape[1:]), _canonical(column).tobytes()
        size = len(raw) // len(column)
        if not size:
            return [head] * len(column)
        return [head + raw[start : start + size] for start in range(0, len(raw), size)]
    return [_key(value) for value in column]


def _head(dtype: np.dtype[Any], shape: Any) -> bytes:
    return f"{dtype.str}{shape};".encode()


def _key(value: Any) -> Hashable:
    if isinstance(value, bytes):
        return b"%d;" % len(value) + value
    if isinstance(value, np.ndarray):
        return _array_key(value)
    if isinstance(value, RaggedTensor):
        return _joined("ragged", [*map(_array_key, value.nested_row_splits), _array_key(value.flat_values)])
    if isinstance(value, SparseTensor):
        parts = (value.dense_shape, value.indices, value.values)
        return _joined("sparse", [_array_key(part) for part in parts])
    if is_dataset(value):
        raise SpecError("a Dataset in an element cannot be compared with another Dataset")
    try:
        hash(value)
    except TypeError:
        raise SpecError(
            f"a component cannot be compared: {value!r:.200} of type {type(value).__name__} is not hashable"
        ) from None
    return value  # type: ignore[no-any-return]  # just tried


def _array_key(array: Array) -> Hashable:
    if array.dtype.hasobject:
        return _joined(f"O{array.shape}", [_key(item) for item in array.ravel().tolist()])
    return _head(array.dtype, array.shape) + _canonical(array).tobytes()


def _joined(head: str, keys: list[Hashable]) -> Hashable:
    texts = [key for key in keys if isinstance(key, bytes)]
    return head.encode() + b"".join(texts) if len(texts) == len(keys) else (head, *keys)
