"""What users put in, made canonical: Python and NumPy values of every kind become the components of chunks.

A canonical component is a NumPy scalar, an array with at least one dimension, ``bytes``, a RaggedTensor, a SparseTensor
or, where none of these fits, any Python object. Python ints become int64, floats float64, text UTF-8 bytes, lists
arrays; arrays of text become object arrays of bytes. Work goes column by column, because type checks on a whole list
cost a twentieth of a microsecond per value where a function call costs ten times that.

Who owns an array matters as much. A function may return an array that it keeps and fills again, so an array is taken
over only where nobody else holds it, or where it belongs to the element that the function was given; else it is copied.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from dataset.plan.structure import LEAF, Structure, StructureMismatchError, structure_of
from dataset.plan.values import RaggedTensor, SparseTensor
from dataset.runtime.chunk import Array, Chunk, Column, object_column, pack

_INT64_MAX = 2**63


def chunk_of_rows(
    rows: list[Any],
    structure: Structure | None = None,
    given: Chunk | None = None,
    *,
    lists_are_structure: bool = False,
) -> Chunk:
    """The chunk of these elements, as a user's function or generator returned them.

    Args:
        rows: at least one element.
        structure: that all must have; default, that of the first.
        given: the elements that the function was called with, whose arrays it may hand on without a copy.
        lists_are_structure: whether a list in the place of a bare component is a mismatch instead of data.

    Raises:
        StructureMismatchError: if an element has another structure; callers go through the rows to say which.
        ValueError: for an integer that no 64-bit dtype holds.
    """
    structure = structure_of(rows[0]) if structure is None else structure
    if structure is LEAF:
        return _chunk_of_components(rows, given, lists_are_structure=lists_are_structure)
    columns = structure.columns(rows)
    canonical = [_canonical_column(column, set(map(type, column)), _NESTED_HOLDERS, given) for column in columns]
    if all(new is old for new, old in zip(canonical, columns, strict=True)):
        return Chunk(structure, len(rows), rows=rows)
    return Chunk(structure, len(rows), [pack(column) for column in canonical])


def _chunk_of_components(rows: list[Any], given: Chunk | None, *, lists_are_structure: bool) -> Chunk:
    """``chunk_of_rows`` for elements that are bare components. Each pass over the types counts here."""
    kinds = set(map(type, rows))
    others = kinds - _BARE
    if (others and any(structure_of(row) is not LEAF for row in rows if type(row) in others)) or (
        lists_are_structure and list in kinds
    ):
        raise StructureMismatchError
    column = _canonical_column(rows, kinds, _DIRECT, given)
    if column is not rows:
        return Chunk(LEAF, len(rows), [pack(column)])
    if len(rows) > 1 and len(kinds) == 1 and kinds <= _NUMBERS:  # many numbers are wanted as an array
        return Chunk(LEAF, len(rows), [np.fromiter(rows, rows[0].dtype, len(rows))], rows)
    return Chunk(LEAF, len(rows), rows=rows)


def canonical_component(value: Any) -> Any:
    """One component, canonical."""
    column = _canonical_column([value], {type(value)}, sys.maxsize, None)
    return column[0]


def canonical_array(value: Any) -> Array:
    """``value`` as an array a pipeline can hold: text and bytes as an object array of bytes, all else as NumPy does.

    Raises:
        ValueError: if NumPy finds no rectangular array in nested lists.
    """
    array = value if isinstance(value, np.ndarray) else _as_array(value)
    if array.dtype.kind in "SU":
        array = array.astype(object)
    if array.dtype == object and any(isinstance(item, str) for item in array.flat):
        encoded = object_column([item.encode() if isinstance(item, str) else item for item in array.flat])
        array = encoded.reshape(array.shape)
    return array


def _as_array(value: Any) -> Array:
    """np.asarray, except that bytes in lists keep their trailing zero bytes, which NumPy's S dtype drops."""
    array = np.asarray(value)
    return np.asarray(value, object) if array.dtype.kind in "SU" else array


def _canonical_column(values: Sequence[Any], kinds: set[type[Any]], holders: int, given: Chunk | None) -> Any:
    """Canonical values; ``values`` itself, the very object, where they are canonical already."""
    if len(kinds) == 1:
        (kind,) = kinds
        if kind is np.ndarray:
            return _canonical_arrays(values, holders, given)
        if kind in _UNCHANGED or (issubclass(kind, np.generic) and kind not in _NUMPY_TEXT):
            return values
        convert = _CONVERT.get(kind)
        if convert is not None:
            return convert(values)
    return [_canonical_value(value, given) for value in values]


def _canonical_value(value: Any, given: Chunk | None) -> Any:
    """The slow way, one value at a time, for columns of several types and for foreign array types."""
    if isinstance(value, np.ndarray):
        return _canonical_arrays([value], 0, given)[0]
    if type(value) in _CONVERT:
        return _CONVERT[type(value)]([value])[0]
    if isinstance(value, np.generic | bytes | RaggedTensor | SparseTensor):
        return value
    for kind, convert in _CONVERT.items():
        if isinstance(value, kind):
            return convert([value])[0]
    if hasattr(value, "__array__"):  # a torch tensor, a jax array, a pandas series
        return _canonical_arrays([np.asarray(value)], 0, given)[0]
    return value


def _ints(values: Sequence[int]) -> Column:
    try:
        return np.array(values, np.int64)
    except OverflowError:
        if all(0 <= value < 2 * _INT64_MAX for value in values):
            return np.array(values, np.uint64)
        raise ValueError(f"integers must fit into 64 bits, got {max(values, key=abs)}") from None


def _numpy_text(values: Sequence[np.bytes_ | np.str_]) -> Column:
    return [value.encode() if isinstance(value, str) else bytes(value) for value in values]


def _lists(values: Sequence[list[Any]]) -> Column:
    return [canonical_array(value) for value in values]


_CONVERT: dict[type[Any], Callable[[Sequence[Any]], Column]] = {
    bool: lambda values: np.array(values, np.bool_),
    int: _ints,
    float: lambda values: np.array(values, np.float64),
    complex: lambda values: np.array(values, np.complex128),
    str: lambda values: [value.encode() for value in values],
    bytearray: lambda values: list(map(bytes, values)),
    np.bytes_: _numpy_text,
    np.str_: _numpy_text,
    list: _lists,
}
_UNCHANGED = frozenset({bytes, RaggedTensor, SparseTensor})
_NUMPY_TEXT = frozenset({np.bytes_, np.str_})
_NUMBERS = frozenset(np.dtype(code).type for code in np.typecodes["AllInteger"] + np.typecodes["AllFloat"] + "?")
_BARE = frozenset({*_CONVERT, *_UNCHANGED, *_NUMBERS, np.ndarray})
"""Types of which every value is a component; of any other, structure_of must be asked."""


def _canonical_arrays(values: Sequence[Array], holders: int, given: Chunk | None) -> Sequence[Any]:
    owned = _owned_arrays(values, holders, given)
    if all(value.dtype.kind not in "SUO" for value in owned) and 0 not in {value.ndim for value in owned}:
        return owned
    return [value[()] if value.ndim == 0 else value for value in map(canonical_array, owned)]


def _owned_arrays(values: Sequence[Array], holders: int, given: Chunk | None) -> Sequence[Array]:
    """``values`` with copies in the place of those that somebody else may write to.

    ``holders`` is the number of references that our own containers account for; one more, and the array has another
    owner. Where an interpreter does not count references, all are copied.
    """
    if _getrefcount is None:
        return [value.copy() for value in values]
    counts = [_getrefcount(value) for value in values]
    suspects = [i for i, value in enumerate(values) if counts[i] > holders or value.base is not None]
    if not suspects:
        return values
    granted = _identities(given)
    result = list(values)
    changed = False
    for index in suspects:
        if not _may_keep(result[index], counts[index] <= holders, granted):
            result[index] = result[index].copy()
            changed = True
    return result if changed else values


def _may_keep(value: Array, unshared: bool, granted: frozenset[int]) -> bool:
    """Whether an array that is a view, or has other holders, is safe to hand on as it is."""
    if id(value) in granted:
        return True
    owner = value.base
    if owner is None:
        return False
    if id(owner) in granted:
        return True
    if isinstance(owner, np.ndarray) and owner.base is not None:
        owner = owner.base
    if isinstance(owner, bytes):  # nobody can write there
        return True
    # A view, such as a reshaped result, of an array that only this view holds.
    return unshared and isinstance(owner, np.ndarray) and value.base is owner and _getrefcount(owner) <= _OWNER  # type: ignore[misc]


def _identities(given: Chunk | None) -> frozenset[int]:
    """The arrays of the elements that a function was given, and the arrays that those are views of."""
    if given is None:
        return frozenset()
    found: set[int] = set()
    for row_column in given.structure.columns(given.rows()):
        arrays = [value for value in row_column if isinstance(value, np.ndarray)]
        found.update(map(id, arrays))
        found.update(id(array.base) for array in arrays if array.base is not None)
    return frozenset(found)


_getrefcount: Callable[[Any], int] | None = getattr(sys, "getrefcount", None)


def _count_holders(rows: Iterable[Any], structure: Structure) -> int:
    """How many references an array in ``rows`` has when only the library holds it, counted as _owned_arrays counts.

    Measured, not assumed: it differs between versions of the interpreter.
    """
    if _getrefcount is None:
        return 0
    results: list[Any] = []
    results.extend(rows)
    values = structure.columns(results)[0]
    return [_getrefcount(value) for value in values][0]  # noqa: RUF015  # the very expression of _owned_arrays


def _count_owner() -> int:
    if _getrefcount is None:
        return 0
    value = np.zeros(4).reshape(2, 2)
    owner = value.base
    return _getrefcount(owner)


_DIRECT = _count_holders((np.zeros(1) for _ in range(2)), LEAF)
_NESTED_HOLDERS = _count_holders(((np.zeros(1),) for _ in range(2)), structure_of((0,)))
_OWNER = _count_owner()
