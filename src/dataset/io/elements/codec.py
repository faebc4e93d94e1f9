"""Encoder from the columns of consecutive elements to the bytes of a record. decoding.py is the decoder.

The JSON header describes each column by a list whose first item is its kind:

- ``["array", dtype, shape]``: one array with a leading axis, as in memory; for the dtype ``bytes`` the lengths of all
  values (int64), then the concatenated values.
- ``["arrays", dtype, rank]``: arrays of different shapes: their shapes (int64), then an array of all values.
- ``["ragged", columns]``: the columns of the flat values and of the row splits, outermost first.
- ``["sparse", columns]``: the columns of indices, values and dense shapes.
- ``["each", columns]``: values of different kinds; one column for each.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dataset.amounts import PIECE_BYTES
from dataset.plan.skeleton import dtype_name
from dataset.plan.spec import BYTES
from dataset.plan.values import RaggedTensor, SparseTensor

Array = npt.NDArray[Any]
Column = Array | list[Any]

RECORD_BYTES = PIECE_BYTES - (1 << 14)
"""Approximate size of a record; with its header it stays below what the reader reads in one piece."""
RECORD_ELEMENTS = 4096
"""Maximum number of elements in a record."""

ALIGNMENT = 16
_pack_length = struct.Struct("<I").pack
INT64 = np.dtype("<i8")


def column_kind(column: Column) -> tuple[Any, ...] | None:
    """Return the common kind of a column's values, or None if they differ. Columns of one file must have equal kinds.

    Raises:
        TypeError: a value cannot be written.
    """
    if isinstance(column, np.ndarray) and column.dtype != object:
        dtype_name(column.dtype)
        return ("tensor", column.dtype)
    if isinstance(column, np.ndarray):
        return ("tensor", _object_dtype(column))
    if set(map(type, column)) == {bytes}:
        return ("tensor", BYTES)
    kinds = set(map(_value_kind, column))
    return kinds.pop() if len(kinds) == 1 else None


def _value_kind(value: Any) -> tuple[Any, ...]:
    if isinstance(value, bytes):
        return ("tensor", BYTES)
    if isinstance(value, np.ndarray | np.generic):
        return column_kind(np.asarray(value))  # type: ignore[return-value]  # an array has one
    if isinstance(value, RaggedTensor):
        inner = column_kind(value.flat_values)
        return ("ragged", inner, value.ragged_rank, value.flat_values.ndim, value.row_splits_dtype.itemsize)
    if isinstance(value, SparseTensor):
        return ("sparse", column_kind(value.values))
    raise TypeError(
        f"a {type(value).__name__} cannot be written to a file, only arrays, numbers and strings: {value!r:.100}"
    )


def _object_dtype(array: Array) -> np.dtype[Any]:
    for value in array.ravel():
        if not isinstance(value, bytes):
            raise TypeError(f"an array of objects can be written to a file only if all are bytes, got {value!r:.100}")
    return BYTES


def encode(columns: Sequence[Column], length: int, place: Sequence[str | int] | None = None) -> bytes:
    """Return the record of ``length`` elements. Every column must have a kind, see ``column_kind``.

    Args:
        columns: the columns of the elements.
        length: the number of elements.
        place: the place of the record: the run, the number of the shard's file, and the number of the record in it.
    """
    buffers: list[Any] = []
    described = [_describe(column, buffers) for column in columns]
    place_of = {} if place is None else {"place": place}
    head = json.dumps({"elements": length, "columns": described, **place_of}, separators=(",", ":")).encode()
    pieces: list[Any] = [_pack_length(len(head)), head]
    position = 4 + len(head)
    for buffer in buffers:
        padding = -position % ALIGNMENT
        pieces += [bytes(padding), buffer]
        position += padding + len(buffer)
    return b"".join(pieces)


def _describe(column: Column, buffers: list[Any]) -> list[Any]:
    if isinstance(column, np.ndarray):
        return _describe_array(column, list(column.shape), buffers)
    kinds = set(map(type, column))
    if kinds == {bytes}:
        return _describe_array(np.fromiter(column, object, len(column)), [len(column)], buffers)
    if kinds == {RaggedTensor} and len({value.ragged_rank for value in column}) == 1:
        splits = zip(*(value.nested_row_splits for value in column), strict=True)
        parts = [[value.flat_values for value in column], *map(list, splits)]
        return ["ragged", [_describe(part, buffers) for part in parts]]
    if kinds == {SparseTensor}:
        parts = [[getattr(value, name) for value in column] for name in ("indices", "values", "dense_shape")]
        return ["sparse", [_describe(part, buffers) for part in parts]]
    arrays = [np.asarray(value) for value in column if isinstance(value, np.ndarray | np.generic)]
    alike = len({array.dtype for array in arrays}) == len({array.ndim for array in arrays}) == 1
    if len(arrays) != len(column) or not alike:
        assert len(column) > 1  # column_kind has rejected all other values
        return ["each", [_describe([value], buffers) for value in column]]
    if len({array.shape for array in arrays}) == 1:
        return _describe(np.stack(arrays), buffers)
    first = arrays[0]
    described = ["arrays", "bytes" if first.dtype == object else dtype_name(first.dtype), first.ndim]
    _put(np.array([array.shape for array in arrays], INT64), buffers)
    _put_values(np.concatenate([array.reshape(-1) for array in arrays]), buffers)
    return described


def _describe_array(array: Array, shape: list[int], buffers: list[Any]) -> list[Any]:
    _put_values(array, buffers)
    return ["array", "bytes" if array.dtype == object else dtype_name(array.dtype), shape]


def _put_values(array: Array, buffers: list[Any]) -> None:
    if array.dtype != object:
        _put(array, buffers)
        return
    values = array.ravel().tolist()
    _put(np.fromiter(map(len, values), INT64, len(values)), buffers)
    buffers.append(b"".join(values))


def _put(array: Array, buffers: list[Any]) -> None:
    flat = np.ascontiguousarray(array).reshape(-1)
    buffers.append(flat.view(np.uint8).data if flat.size else b"")
