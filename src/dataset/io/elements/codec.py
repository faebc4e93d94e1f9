"""A record: the columns of consecutive elements as bytes, and back. Sees bytes and NumPy values only.

The JSON in front describes each column by a list, whose first item says how the rest is meant:

- ``["array", dtype, shape]``: one array with a leading axis, as it lies in memory; for the dtype ``bytes`` the lengths
  of all values (int64), then the values end to end.
- ``["arrays", dtype, rank]``: arrays that differ in shape: their shapes (int64), then an array of all values.
- ``["ragged", columns]``: the columns of the flat values and of the row splits, outermost first.
- ``["sparse", columns]``: the columns of indices, values and dense shapes.
- ``["each", columns]``: values that have nothing in common; a column for each.
"""

from __future__ import annotations

import itertools
import json
import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dataset.plan.skeleton import DIMENSION_MAX, dtype_name, dtype_named
from dataset.plan.spec import BYTES, ComponentSpec, RaggedTensorSpec, SparseTensorSpec, TensorSpec
from dataset.plan.values import RaggedTensor, SparseTensor

__all__ = ["RECORD_BYTES", "RECORD_ELEMENTS", "DamagedRecordError", "column_kind", "decode", "encode"]

Array = npt.NDArray[Any]
Column = Array | list[Any]

RECORD_BYTES = (1 << 20) - (1 << 14)
"""About what a record holds; with its header it stays below the 1 MiB that the reader takes in one piece."""
RECORD_ELEMENTS = 4096
"""At most so many elements are in a record."""

_ALIGNMENT = 16
_read_length = struct.Struct("<I").unpack_from
_pack_length = struct.Struct("<I").pack
_INT64 = np.dtype("<i8")


class DamagedRecordError(Exception):
    """The bytes are no record. Who knows the file and the place catches it."""


def column_kind(column: Column) -> tuple[Any, ...] | None:
    """What the values of a column have in common: equal kinds can be columns of one file. None if they differ.

    Raises:
        TypeError: if one cannot be written.
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
        return ("ragged", column_kind(value.flat_values), value.ragged_rank, value.flat_values.ndim)
    if isinstance(value, SparseTensor):
        return ("sparse", column_kind(value.values))
    raise TypeError(
        f"a {type(value).__name__} cannot be written to a file, only arrays, numbers and text: {value!r:.100}"
    )


def _object_dtype(array: Array) -> np.dtype[Any]:
    for value in array.flat:
        if not isinstance(value, bytes):
            raise TypeError(f"an array of objects can be written to a file if all are bytes, got {value!r:.100}")
    return BYTES


# Writing


def encode(columns: Sequence[Column], length: int) -> bytes:
    """The record of ``length`` elements. Every column has a kind, see ``column_kind``."""
    buffers: list[Any] = []
    described = [_describe(column, buffers) for column in columns]
    head = json.dumps({"elements": length, "columns": described}, separators=(",", ":")).encode()
    pieces: list[Any] = [_pack_length(len(head)), head]
    position = 4 + len(head)
    for buffer in buffers:
        padding = -position % _ALIGNMENT
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
        assert len(column) > 1  # column_kind has refused what is nothing of all this
        return ["each", [_describe([value], buffers) for value in column]]
    if len({array.shape for array in arrays}) == 1:
        return _describe(np.stack(arrays), buffers)
    first = arrays[0]
    described = ["arrays", "bytes" if first.dtype == object else dtype_name(first.dtype), first.ndim]
    _put(np.array([array.shape for array in arrays], _INT64), buffers)
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
    _put(np.fromiter(map(len, values), _INT64, len(values)), buffers)
    buffers.append(b"".join(values))


def _put(array: Array, buffers: list[Any]) -> None:
    flat = np.ascontiguousarray(array).reshape(-1)
    buffers.append(flat.view(np.uint8).data if flat.size else b"")


# Reading


def decode(record: bytes, count: int) -> tuple[list[Column], list[ComponentSpec], int]:
    """The columns of a record, the spec that their values have, and how many elements there are.

    Args:
        record: its bytes; arrays of numbers become read-only views of them.
        count: how many columns there must be.

    Raises:
        DamagedRecordError: if it is no record of so many columns.
    """
    try:
        reader = _Reader(record)
        length, described = reader.head["elements"], reader.head["columns"]
        if type(length) is not int or not 1 <= length <= RECORD_ELEMENTS or len(described) != count:
            raise DamagedRecordError(f"{length!r:.50} elements of {len(described)} components, expected {count}")
        read = [reader.column(one, length) for one in described]
        reader.end()
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError, struct.error) as error:
        raise DamagedRecordError(f"the record's description is wrong: {error!r:.200}") from error
    return [column for column, _ in read], [spec for _, spec in read], length


class _Reader:
    """Takes a record's arrays in their order. Nothing is allocated for a size that the record cannot have."""

    def __init__(self, record: bytes) -> None:
        self.record = record
        (size,) = _read_length(record)
        self.position = 4 + size
        if self.position > len(record):
            raise ValueError("it is longer than the record")
        self.head = json.loads(record[4 : self.position])
        if type(self.head) is not dict:
            raise ValueError("it is no object")

    def take(self, size: int) -> int:
        """Where the next ``size`` bytes begin."""
        start: int = self.position + -self.position % _ALIGNMENT
        if size < 0 or start + size > len(self.record):
            raise ValueError(f"an array of {size} bytes where {max(len(self.record) - start, 0)} are left")
        self.position = start + size
        return start

    def end(self) -> None:
        if self.position != len(self.record):
            raise ValueError(f"{len(self.record) - self.position} bytes too many")

    def array(self, dtype: np.dtype[Any], shape: Sequence[int]) -> Array:
        if not all(type(size) is int and 0 <= size < DIMENSION_MAX for size in shape):
            raise ValueError(f"no shape: {shape!r:.100}")
        count = math.prod(shape)
        if dtype == BYTES:
            return self._bytes(count).reshape(shape)
        start = self.take(count * dtype.itemsize)
        return np.frombuffer(self.record, dtype, count, start).reshape(shape) if count else np.zeros(shape, dtype)

    def _bytes(self, count: int) -> Array:
        ends = _ends(self.array(_INT64, [count]))
        total = ends[-1]
        start = self.take(total)
        record = self.record
        values = [record[start + a : start + b] for a, b in itertools.pairwise(ends)]
        return np.fromiter(values, object, count)

    def column(self, described: Any, length: int) -> tuple[Column, ComponentSpec]:
        match described:
            case ["array", dtype, list(shape)] if shape and shape[0] == length:
                named = dtype_named(dtype)
                return self.array(named, shape), TensorSpec(shape[1:], named)
            case ["arrays", dtype, int(rank)] if 1 <= rank <= 64:
                return self._arrays(dtype_named(dtype), rank, length)
            case ["ragged", [values, *splits]] if splits:
                return self._ragged(self.column(values, length), [self.column(part, length) for part in splits])
            case ["sparse", [indices, values, shapes]]:
                return self._sparse(*(self.column(part, length) for part in (indices, values, shapes)))
            case ["each", list(parts)] if len(parts) == length > 1:
                return self._each([self.column(part, 1) for part in parts])
        raise ValueError(f"no column of {length} values: {described!r:.100}")

    def _arrays(self, dtype: np.dtype[Any], rank: int, length: int) -> tuple[Column, ComponentSpec]:
        shapes = self.array(_INT64, [length, rank]).tolist()
        ends = [0, *itertools.accumulate(math.prod(shape) for shape in shapes)]
        if any(size < 0 for shape in shapes for size in shape):
            raise ValueError("an array of negative size")
        flat = self.array(dtype, [ends[-1]])
        spans = zip(itertools.pairwise(ends), shapes, strict=True)
        arrays = [flat[start:end].reshape(shape) for (start, end), shape in spans]
        return arrays, TensorSpec([_common(sizes) for sizes in zip(*shapes, strict=True)], dtype)

    @staticmethod
    def _ragged(
        values: tuple[Column, ComponentSpec], splits: list[tuple[Column, ComponentSpec]]
    ) -> tuple[Column, ComponentSpec]:
        flat, spec = values
        if not isinstance(spec, TensorSpec) or not spec.shape or any(not _is_int64(s, 1) for _, s in splits):
            raise ValueError("parts that make no ragged tensor")
        parts = zip(flat, *(column for column, _ in splits), strict=True)
        column = [RaggedTensor.from_nested_row_splits(value, nested) for value, *nested in parts]
        rows = _common([len(value) for value in column])
        shape = (rows, *[None] * len(splits), *spec.shape[1:])
        return column, RaggedTensorSpec(shape, spec.dtype, len(splits))

    @staticmethod
    def _sparse(
        indices: tuple[Column, ComponentSpec],
        values: tuple[Column, ComponentSpec],
        shapes: tuple[Column, ComponentSpec],
    ) -> tuple[Column, ComponentSpec]:
        spec = values[1]
        if not (_is_int64(indices[1], 2) and _is_int64(shapes[1], 1) and _is_rank(spec, 1)):
            raise ValueError("parts that make no sparse tensor")
        parts = zip(indices[0], values[0], shapes[0], strict=True)
        column = [SparseTensor(*part) for part in parts]
        for value in column:
            if np.any(value.indices < 0) or np.any(value.indices >= value.dense_shape):
                raise ValueError("indices outside of a sparse tensor")
        ranks = {len(value.shape) for value in column}
        shape = [_common(sizes) for sizes in zip(*(v.shape for v in column), strict=True)] if len(ranks) == 1 else None
        return column, SparseTensorSpec(shape, spec.dtype)

    @staticmethod
    def _each(parts: list[tuple[Column, ComponentSpec]]) -> tuple[Column, ComponentSpec]:
        spec: ComponentSpec | None = parts[0][1]
        for _, other in parts[1:]:
            spec = None if spec is None else spec.most_general_with(other)
        if spec is None:
            raise ValueError("values of different kinds")
        return [column[0] for column, _ in parts], spec


def _ends(sizes: Array) -> list[int]:
    """Where pieces of these sizes end, in Python's numbers, which do not overflow; 0 before the first."""
    if sizes.size and int(sizes.min()) < 0:
        raise ValueError("a value of negative length")
    return [0, *itertools.accumulate(sizes.tolist())]


def _common(sizes: Sequence[int]) -> int | None:
    return sizes[0] if len(set(sizes)) == 1 else None


def _is_rank(spec: ComponentSpec, rank: int) -> bool:
    return isinstance(spec, TensorSpec) and spec.shape is not None and len(spec.shape) == rank


def _is_int64(spec: ComponentSpec, rank: int) -> bool:
    return _is_rank(spec, rank) and spec.dtype == _INT64
