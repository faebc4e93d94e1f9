"""Normalization: converts Python and NumPy values of every kind to canonical components of chunks.

A canonical component is a NumPy scalar, an array with at least one dimension, ``bytes``, a RaggedTensor, a SparseTensor
or, if none of these fits, any Python object. Python ints become int64, floats float64, text UTF-8 bytes, lists and
ranges arrays. Arrays of text become object arrays of bytes, all other arrays get the native byte order, also within
ragged and sparse tensors. Values are converted column by column, because a type check over a whole list costs 0.05
microseconds per value, a tenth of a function call.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dataset.plan.checks import require_unmasked
from dataset.plan.nested import is_dataset
from dataset.plan.structure import LEAF, Structure, StructureMismatchError, structure_of
from dataset.plan.values import RaggedTensor, SparseTensor, object_column
from dataset.runtime.chunks.chunk import Array, Chunk, Column, pack


def chunk_of_rows(
    rows: list[Any],
    structure: Structure | None = None,
    *,
    lists_are_structure: bool = False,
) -> Chunk:
    """Return the chunk of elements returned by a user's function or generator.

    Args:
        rows: at least one element.
        structure: the structure that all must have; default: that of the first element.
        lists_are_structure: whether a list in the place of a bare component is a mismatch instead of data.

    Raises:
        StructureMismatchError: if an element has another structure; callers search the rows to report which one.
        ValueError: for an integer that no 64-bit dtype can hold.
    """
    structure = structure_of(rows[0]) if structure is None else structure
    if structure is LEAF:
        return _chunk_of_components(rows, lists_are_structure=lists_are_structure)
    columns = structure.columns(rows)
    kinds = [set(map(type, column)) for column in columns]
    canonical = list(map(_canonical_column, columns, kinds))
    # The user may still hold a dict that a function returned, so only tuples are kept without a copy.
    unchanged = structure.is_immutable and all(map(operator.is_, canonical, columns))
    if unchanged and len(rows) == 1:  # the columns may never be needed
        return Chunk(structure, 1, rows=rows)
    return Chunk(structure, len(rows), list(map(_packed, canonical, kinds)), rows if unchanged else None)


def _packed(values: Any, kinds: set[type[Any]]) -> Column:
    """Return ``pack`` of canonical values, which had these types."""
    return np.array(values, *kinds) if len(kinds) == 1 and kinds <= _NUMBERS else pack(values)


def _chunk_of_components(rows: list[Any], *, lists_are_structure: bool) -> Chunk:
    """Implement ``chunk_of_rows`` for bare components, with as few passes over the types as possible."""
    kinds = set(map(type, rows))
    if lists_are_structure and list in kinds:
        raise StructureMismatchError
    column = _canonical_column(rows, kinds)
    if column is not rows:
        return Chunk(LEAF, len(rows), [pack(column)])
    if len(rows) > 1 and len(kinds) == 1 and kinds <= _NUMBERS:  # many numbers are usually needed as an array
        return Chunk(LEAF, len(rows), [np.fromiter(rows, rows[0].dtype, len(rows))], rows)
    return Chunk(LEAF, len(rows), rows=rows)


def is_canonical(value: Any) -> bool:
    """Return whether a component is canonical according to its type; False means unknown."""
    kind = type(value)
    if kind is np.ndarray:
        return value.ndim > 0 and value.dtype in _NATIVE
    return kind in _NUMBERS or kind is bytes


def canonical_component(value: Any) -> Any:
    """Return the canonical form of one component."""
    column = _canonical_column([value], {type(value)})
    return column[0]


def canonical_array(value: Any) -> Array:
    """Return ``value`` as a canonical array: text as an object array of bytes, all else in native byte order.

    Raises:
        ValueError: if nested lists are not rectangular.
    """
    array = value if isinstance(value, np.ndarray) else _as_array(value)
    if type(array) is not np.ndarray:
        require_unmasked(array)
        array = np.asarray(array)
    if array.dtype.kind in "SUT":
        array = array.astype(object)
    if not array.dtype.isnative:
        return array.astype(array.dtype.newbyteorder("="))
    if array.dtype == object:
        items = array.ravel()  # not array.flat, which supports half as many dimensions
        if any(issubclass(kind, str) for kind in set(map(type, items))):
            encoded = object_column([item.encode() if isinstance(item, str) else item for item in items])
            array = encoded.reshape(array.shape)
    return array


def _as_array(value: Any) -> Array:
    """Apply np.asarray, but keep the trailing zero bytes of bytes in lists, which NumPy's S dtype drops."""
    first: Any = 0.0
    if isinstance(value, list) and value:
        first = value[0]
        require_unmasked(first)
    array = np.asarray(value)
    kind = array.dtype.kind
    may_hold_large_ints = kind == "f" and type(first) is not float and array.max(initial=0) >= 2**63
    if may_hold_large_ints and set(map(type, np.asarray(value, object).ravel())) == {int}:
        try:
            return np.asarray(value, np.uint64)  # NumPy has converted the integers to floats
        except OverflowError:
            raise ValueError(f"integers in one array must all fit into int64 or uint64, got {value!r:.100}") from None
    return np.asarray(value, object) if kind in "SU" else array


def _canonical_column(values: Sequence[Any], kinds: set[type[Any]]) -> Any:
    """Return canonical values; the object ``values`` itself if they are canonical already."""
    if len(kinds) == 1:
        (kind,) = kinds
        if kind is np.ndarray:
            return _canonical_arrays(values)
        convert = _CONVERT.get(kind)
        if convert is not None:
            return convert(values)
        if kind is bytes or issubclass(kind, np.generic):
            return values
    others = kinds - _BARE
    if others and any(structure_of(value) is not LEAF for value in values if type(value) in others):
        raise StructureMismatchError
    if len(kinds) == 1 and is_dataset(values[0]):
        return values
    return [_canonical_value(value) for value in values]


def _canonical_value(value: Any) -> Any:
    """Convert a single value: the slow path for columns of several types and for foreign array types."""
    if isinstance(value, np.ndarray):  # or of a subclass: the rest of the library does not accept np.matrix
        require_unmasked(value)
        return _canonical_arrays([np.asarray(value)])[0]
    if type(value) in _CONVERT:
        return _CONVERT[type(value)]([value])[0]
    if isinstance(value, np.generic | bytes):
        return value
    for kind, convert in _CONVERT.items():
        if isinstance(value, kind):
            return convert([value])[0]
    if hasattr(value, "__array__"):  # a torch tensor, a jax array, a pandas series
        return _canonical_arrays([np.asarray(value)])[0]
    return value


def _ints(values: Sequence[int]) -> Column:
    try:
        return np.array(values, np.int64)
    except OverflowError:
        return [_int(value) for value in values]


def _int(value: int) -> np.integer[Any]:
    try:
        return np.int64(value) if value < 2**63 else np.uint64(value)
    except OverflowError:
        raise ValueError(f"integers must fit into 64 bits, got {value}") from None


def _numpy_text(values: Sequence[np.bytes_ | np.str_]) -> Column:
    return [value.encode() if isinstance(value, str) else bytes(value) for value in values]


def _lists(values: Sequence[list[Any] | range]) -> Column:
    return [canonical_array(value) for value in values]


def _composites(values: Sequence[RaggedTensor | SparseTensor]) -> Sequence[Any]:
    """Return ragged and sparse tensors with canonical values; the object ``values`` itself if they already are."""
    canonical = [_composite(value) for value in values]
    return values if all(map(operator.is_, canonical, values)) else canonical


def _composite(value: RaggedTensor | SparseTensor) -> RaggedTensor | SparseTensor:
    if isinstance(value, RaggedTensor):
        flat = canonical_array(value.flat_values)
        return (
            value if flat is value.flat_values else RaggedTensor.from_nested_row_splits(flat, value.nested_row_splits)
        )
    values = canonical_array(value.values)
    return value if values is value.values else SparseTensor(value.indices, values, value.dense_shape)


_CONVERT: dict[type[Any], Callable[[Sequence[Any]], Any]] = {
    bool: lambda values: np.array(values, np.bool_),
    int: _ints,
    float: lambda values: np.array(values, np.float64),
    complex: lambda values: np.array(values, np.complex128),
    str: lambda values: [value.encode() for value in values],
    bytearray: lambda values: list(map(bytes, values)),
    np.bytes_: _numpy_text,
    np.str_: _numpy_text,
    np.void: lambda values: [canonical_array(value)[()] for value in values],
    list: _lists,
    range: _lists,
    RaggedTensor: _composites,
    SparseTensor: _composites,
}
_NATIVE = frozenset(map(np.dtype, np.typecodes["AllInteger"] + np.typecodes["AllFloat"] + "?"))
_NUMBERS = frozenset(dtype.type for dtype in _NATIVE)
_BARE = frozenset({*_CONVERT, *_NUMBERS, bytes, np.ndarray})
"""Types whose values are always components; for all other types, structure_of decides."""


def _canonical_arrays(values: Sequence[Array]) -> Sequence[Any]:
    dtypes = {value.dtype for value in values}
    are_plain = dtypes <= _NATIVE or all(dtype.isnative and dtype.kind not in "SUTO" for dtype in dtypes)
    if are_plain and 0 not in {value.ndim for value in values}:
        return values
    return [value[()] if value.ndim == 0 else value for value in map(canonical_array, values)]
