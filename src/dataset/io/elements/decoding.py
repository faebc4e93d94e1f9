"""Decoder from a record's bytes to columns. codec.py describes the format; this module does not trust its input."""

from __future__ import annotations

import itertools
import json
import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from dataset.io.elements.codec import ALIGNMENT, INT64, RECORD_ELEMENTS, Array, Column
from dataset.plan.skeleton import DIMENSION_MAX, dtype_named
from dataset.plan.spec import BYTES, ComponentSpec, RaggedTensorSpec, SparseTensorSpec, TensorSpec
from dataset.plan.values import RaggedTensor, SparseTensor

_SPLITS_DTYPES = ({np.dtype("<i4")}, {INT64})  # the same for all dimensions
_read_length = struct.Struct("<I").unpack_from


class DamagedRecordError(Exception):
    """The bytes are not a valid record. Caught by the code that knows the file and the position."""


def decode(
    record: bytes, count: int, place: Sequence[str | int] | None = None
) -> tuple[list[Column], list[ComponentSpec], int]:
    """Return the columns of a record, the specs of their values, and the number of elements.

    Args:
        record: the bytes; arrays of numbers become read-only views of them.
        count: the expected number of columns.
        place: the expected place of the record, see ``encode``; None if it is not checked.

    Raises:
        DamagedRecordError: the bytes are not a record with this number of columns.
    """
    try:
        reader = _RecordDecoder(record)
        _check_place(reader.head.get("place"), place)
        length, described = reader.head["elements"], reader.head["columns"]
        if type(length) is not int or not 1 <= length <= RECORD_ELEMENTS or len(described) != count:
            raise DamagedRecordError(f"{length!r:.50} elements of {len(described)} components, expected {count}")
        read = [reader.column(one, length) for one in described]
        reader.end()
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError, struct.error) as error:
        raise DamagedRecordError(f"the record's header is invalid: {error!r:.200}") from error
    return [column for column, _ in read], [spec for _, spec in read], length


def _check_place(found: Any, expected: Sequence[str | int] | None) -> None:
    if expected is None or found == list(expected):
        return
    run, file, number = expected
    raise DamagedRecordError(
        f"this is not record {number} of file {file} of run {run}: according to its header it belongs to "
        f"{found!r:.100}; the file was exchanged with another shard, or comes from another directory"
    )


class _RecordDecoder:
    """Sequential decoder of a record's arrays. No memory is allocated for sizes beyond the record."""

    def __init__(self, record: bytes) -> None:
        self.record = record
        (size,) = _read_length(record)
        self.position = 4 + size
        if self.position > len(record):
            raise ValueError("the header is longer than the record")
        self.head = json.loads(record[4 : self.position])
        if type(self.head) is not dict:
            raise ValueError("the header is not an object")

    def take(self, size: int) -> int:
        """Consume the next ``size`` bytes, aligned; return where they begin."""
        start: int = self.position + -self.position % ALIGNMENT
        if size < 0 or start + size > len(self.record):
            raise ValueError(f"an array has {size} bytes, but {max(len(self.record) - start, 0)} are left")
        self.position = start + size
        return start

    def end(self) -> None:
        if self.position != len(self.record):
            raise ValueError(f"there are {len(self.record) - self.position} extra bytes")

    def array(self, dtype: np.dtype[Any], shape: Sequence[int]) -> Array:
        if not all(type(size) is int and 0 <= size < DIMENSION_MAX for size in shape):
            raise ValueError(f"invalid shape: {shape!r:.100}")
        count = math.prod(shape)
        if dtype == BYTES:
            return self._bytes(count).reshape(shape)
        start = self.take(count * dtype.itemsize)
        return np.frombuffer(self.record, dtype, count, start).reshape(shape) if count else np.zeros(shape, dtype)

    def _bytes(self, count: int) -> Array:
        ends = _ends(self.array(INT64, [count]))
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
        raise ValueError(f"not a column of {length} values: {described!r:.100}")

    def _arrays(self, dtype: np.dtype[Any], rank: int, length: int) -> tuple[Column, ComponentSpec]:
        shapes = self.array(INT64, [length, rank]).tolist()
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
        dtypes = {part.dtype for _, part in splits}
        vectors = all(_is_rank(part, 1) for _, part in splits)
        if not isinstance(spec, TensorSpec) or not spec.shape or not vectors or dtypes not in _SPLITS_DTYPES:
            raise ValueError("the parts do not form a ragged tensor")
        parts = zip(flat, *(column for column, _ in splits), strict=True)
        column = [RaggedTensor.from_nested_row_splits(value, nested) for value, *nested in parts]
        rows = _common([len(value) for value in column])
        shape = (rows, *[None] * len(splits), *spec.shape[1:])
        return column, RaggedTensorSpec(shape, spec.dtype, len(splits), dtypes.pop())

    @staticmethod
    def _sparse(
        indices: tuple[Column, ComponentSpec],
        values: tuple[Column, ComponentSpec],
        shapes: tuple[Column, ComponentSpec],
    ) -> tuple[Column, ComponentSpec]:
        spec = values[1]
        if not (_is_int64(indices[1], 2) and _is_int64(shapes[1], 1) and _is_rank(spec, 1)):
            raise ValueError("the parts do not form a sparse tensor")
        parts = zip(indices[0], values[0], shapes[0], strict=True)
        column = [SparseTensor(*part) for part in parts]
        for value in column:
            if np.any(value.indices < 0) or np.any(value.indices >= value.dense_shape):
                raise ValueError("indices outside a sparse tensor")
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
    """Return the ends of pieces of these sizes, starting with 0, as Python ints, which do not overflow."""
    if sizes.size and int(sizes.min()) < 0:
        raise ValueError("a value of negative length")
    return [0, *itertools.accumulate(sizes.tolist())]


def _common(sizes: Sequence[int]) -> int | None:
    return sizes[0] if len(set(sizes)) == 1 else None


def _is_rank(spec: ComponentSpec, rank: int) -> bool:
    return isinstance(spec, TensorSpec) and spec.shape is not None and len(spec.shape) == rank


def _is_int64(spec: ComponentSpec, rank: int) -> bool:
    return _is_rank(spec, rank) and spec.dtype == INT64
