"""Ownership: who may write to the arrays that user code returns.

A function may return a buffer that it keeps and refills for the next element; a generator may yield one. Arrays that a
user holds must not change, so such a result is copied immediately, before user code runs again. A result without other
references is not copied: copying every image would cost more than everything else.

The reference count tells whether an array has other references. ``own`` takes a result over if the only references are
those of the call itself, or if the array belongs to the element that the function was given. The same holds for the
tuples and dicts that contain it: code that refers to one of them can write to its arrays. The expected counts are
measured below, because they depend on the version of the interpreter. If an interpreter does not count references,
everything is copied.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache, partial
from itertools import repeat
from operator import is_
from typing import Any, TypeAlias

import numpy as np

from dataset.native.row_loop import row_loop
from dataset.plan.nested import is_dataset
from dataset.plan.structure import LEAF, record_fields, structure_of
from dataset.plan.values import RaggedTensor, SparseTensor

_IMMUTABLE = (np.generic, int, float, complex, bytes, str, type(None))
_NUMBERS = frozenset(
    {np.dtype(code).type for code in np.typecodes["All"]} | {int, float, complex, bool, bytes, str, type(None)}
) - {
    np.object_,
    np.void,  # a view of a row, to which its owner may write
}


def is_immutable(value: Any) -> bool:
    """Return whether a value is immutable: numbers, text, datasets, and plain tuples of those."""
    if type(value) is tuple:
        is_flat = _NUMBERS.issuperset(map(type, value))
        return is_flat or all(type(item) is not tuple and is_immutable(item) for item in value)
    return (isinstance(value, _IMMUTABLE) and not isinstance(value, np.void)) or is_dataset(value)


class Written:
    """In a list of results, the place of a result that was written into columns."""


WRITTEN = Written()

Target: TypeAlias = tuple[Any, tuple[Any, ...], tuple[Any, ...]]
"""A plan, its objects, and the columns into which results are written (native/rows.c)."""

NO_TARGET: Target = (None, (), ())


def collect(
    function: Any,
    arguments: Iterable[tuple[Any, ...]] | None,
    count: int,
    results: list[Any],
    target: Target = NO_TARGET,
) -> None:
    """Call a function ``count`` times, and append what it returns; or append values of an iterator.

    Each result is taken over before the function is called again: it may be a buffer that is refilled then.

    Args:
        function: the function, or an iterator if there are no arguments.
        arguments: the arguments of each call; None for an iterator.
        count: the number of calls.
        results: the list; up to an exception, there is a result for each call.
        target: where to write results that fit. For each, ``WRITTEN`` is appended.

    Raises:
        StopIteration: there were fewer values.
        BaseException: what the function raises.
    """
    loop = row_loop()
    if loop is None:
        collect_by_python(function, arguments, count, results)
        return
    if loop(function, () if arguments is None else arguments, count, results, *target, *_CONSTANTS) < count:
        raise StopIteration


def collect_by_python(
    function: Any,
    arguments: Iterable[tuple[Any, ...]] | None,
    count: int,
    results: list[Any],
    is_last: Callable[[Any], bool] | None = None,
) -> None:
    """Do the same as ``collect`` without a target; stop after a result for which ``is_last`` returns True."""
    keep = results.append
    if arguments is None:
        function, arguments = function.__next__, repeat((), count)
    for given in arguments:
        keep(own(function(*given), given))
        if is_last is not None and is_last(results[-1]):
            return


def copied_component(component: Any) -> Any:
    """Return a component with memory of its own; objects of user classes are not copied."""
    if isinstance(component, np.ndarray):
        return component.copy()
    return copy.deepcopy(component) if isinstance(component, RaggedTensor | SparseTensor) else component


def own(result: Any, given: Iterable[Any] = (), unshared: bool | None = None) -> Any:
    """Return ``result``, with copies of everything that user code could still write to.

    The first argument must be the user's call itself, so that the reference counts are right.

    Args:
        result: an element that a function returned or a generator yielded.
        given: the arguments of the function; arrays in them, and views of these, are not copied.
        unshared: whether nothing else refers to ``result``, if known; default: according to its reference count.
    """
    kind = type(result)
    if kind in _NUMBERS:
        return result
    if unshared is None:
        unshared = _references(result) <= _DIRECT
    if kind is tuple:
        parts = _own_parts(result, unshared, given)
        return result if parts is None else tuple(parts)
    if kind is np.ndarray:
        base = result.base
        if type(base) is bytes or (base is None and unshared):  # immutable memory, or that of a new array
            return result
        del base  # a reference that _own_array would count
        return _own_array(result, unshared, given)
    if kind is dict:
        return _own_dict(result, unshared, given)
    if is_named_tuple(kind):
        parts = _own_parts(result, unshared, given)
        return result if parts is None else kind(*parts)
    return _own_list(result, unshared) if kind is list else _own_other(result, given)


def _own_dict(items: dict[Any, Any], unshared: bool, given: Iterable[Any]) -> dict[Any, Any]:
    """Return the dict if nothing else refers to it, or to its parts; otherwise a new one: it may be refilled."""
    values = items.values()
    parts = None
    if not _NUMBERS.issuperset(map(type, values)):
        # An argument that is returned, with new parts, belongs to the library.
        parts = _own_parts(values, unshared or any(map(partial(is_, items), given)), given)
    if parts is not None:
        return dict(zip(items, parts, strict=True))
    return items if unshared else items.copy()


def _own_parts(parts: Collection[Any], unshared: bool, given: Iterable[Any]) -> list[Any] | None:
    """Return ``own`` of each part of a container; None if nothing is copied.

    If the container is not ``unshared``, neither are the arrays in it.
    """
    copies: list[tuple[int, Any]] | None = None
    place = -1  # enumerate() would refer to the part, as would a list of all parts
    for part in parts:
        place += 1
        kind = type(part)
        if kind in _NUMBERS:
            continue
        alone = unshared and _references(part) <= _IN_PARTS
        if kind is np.ndarray:
            if alone and part.base is None:
                continue
            kept = _own_array(part, alone, given)
        else:
            kept = own(part, given, alone)
        if kept is not part:
            copies = [] if copies is None else copies
            copies.append((place, kept))
    if copies is None:
        return None
    owned = list(parts)
    for place, kept in copies:
        owned[place] = kept
    return owned


def is_named_tuple(kind: type[Any]) -> bool:
    """Return whether instances are named tuples without further attributes."""
    return issubclass(kind, tuple) and hasattr(kind, "_fields") and not kind.__dictoffset__


def _own_other(item: Any, given: Iterable[Any]) -> Any:
    """Copy foreign arrays and containers; return immutable values, datasets and objects of user classes."""
    if isinstance(item, np.void):
        return item.copy()
    if isinstance(item, _IMMUTABLE):
        return item
    if isinstance(item, RaggedTensor | SparseTensor):
        return item if id(item) in map(id, _components(given)) else copy.deepcopy(item)
    fields = _fields_of(type(item))  # type: ignore[arg-type]  # mypy does not know that types are hashable
    if fields is not None:
        names, keywords = fields
        parts = [getattr(item, name) for name in names]
        return type(item)(**dict(zip(keywords, _own_parts(parts, False, given) or parts, strict=True)))
    structure = structure_of(item)
    if structure is not LEAF:
        return structure.unflatten([own(part, given, False) for part in structure.flatten(item)])
    return item if is_dataset(item) else _own_data(item, given)


@cache
def _fields_of(kind: Any) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return ``record_fields`` of a class whose instances are neither tuples nor mappings; otherwise None."""
    return None if issubclass(kind, tuple | Mapping) else record_fields(kind)


def _own_data(item: Any, given: Iterable[Any]) -> Any:
    """Copy foreign lists, bytes and arrays; return objects of user classes."""
    if isinstance(item, list):
        return _copied_list(item)
    if isinstance(item, bytearray):
        return bytes(item)
    if isinstance(item, np.ndarray):  # a subclass
        if isinstance(item, np.ma.MaskedArray):
            return item  # rejected when elements are made canonical
        return _own_array(np.asarray(item), False, given)
    # If a copy is requested, NumPy relies on __array__ to make one; so it is made here.
    return np.asarray(item).copy() if hasattr(item, "__array__") else item


def _own_list(items: list[Any], unshared: bool) -> list[Any]:
    """Return a list that nothing else refers to; usually, its items are numbers."""
    return items if unshared and _NUMBERS.issuperset(map(type, items)) else _copied_list(items)


def _copied_list(items: list[Any]) -> list[Any]:
    """Return a deep copy. copy.deepcopy takes 0.2 microseconds for each number in a list."""
    if _NUMBERS.issuperset(map(type, items)):
        return items.copy()
    return [_copied_list(item) if type(item) is list else copy.deepcopy(item) for item in items]


def _own_shared(array: np.ndarray[Any, Any], given: Iterable[Any]) -> np.ndarray[Any, Any]:
    """Return a copy of an array that may have other references, unless it is part of the arguments or immutable."""
    return _own_array(array, False, given)


_CONSTANTS = WRITTEN, own, _own_shared, _NUMBERS, np.ndarray, bytes, dict, ()
"""The last arguments of the row loop."""


def _own_array(array: np.ndarray[Any, Any], unshared: bool, given: Iterable[Any]) -> np.ndarray[Any, Any]:
    """Return the array, or a copy if its memory has other references."""
    owner = _owner_of(array)
    if isinstance(owner, bytes):  # immutable memory
        return array
    # A view, such as a reshaped result, of an array that only this view refers to.
    if unshared and isinstance(owner, np.ndarray) and array.base is owner and _references(owner) <= _OWNER:
        return array
    return array if _owns_part(owner, given) else array.copy()


def _owner_of(array: np.ndarray[Any, Any]) -> Any:
    """Return the object that owns the memory of an array."""
    owner: Any = array
    while isinstance(owner, np.ndarray) and owner.base is not None:
        owner = owner.base
    return owner


def _owns_part(owner: Any, values: Iterable[Any]) -> bool:
    """Return whether this is the owner of the memory of a component of the elements."""
    for value in values:
        kind = type(value)
        if kind is np.ndarray:
            if _owner_of(value) is owner:
                return True
        elif kind is dict or kind is tuple:
            if _owns_part(owner, value.values() if kind is dict else value):
                return True
        elif kind not in _NUMBERS:
            structure = structure_of(value)
            if structure is not LEAF and _owns_part(owner, structure.flatten(value)):
                return True
    return False


def _components(given: Iterable[Any]) -> Iterator[Any]:
    for value in given:
        yield from structure_of(value).flatten(value)


_references: Callable[[Any], int] = getattr(sys, "getrefcount", lambda _: sys.maxsize)


# The reference counts of values that only the library holds. They depend on the interpreter and the code that counts:
# since Python 3.14, the compiler may leave out the reference of a local variable. So own() itself measures them.

_COUNT_MAX = 8


def _unshared() -> np.ndarray[Any, Any]:
    """Return an array without other references that differs from its copy, which is writable."""
    array = np.zeros(1)
    array.flags.writeable = False
    return array


def _measured(name: str, owned: Callable[[], np.ndarray[Any, Any]]) -> int:
    """Return the smallest count with which ``own`` does not copy; -1 if references are not counted."""
    for count in range(_COUNT_MAX):
        globals()[name] = count
        if not owned().flags.writeable:
            return count
    return -1


_DIRECT = _measured("_DIRECT", lambda: own(_unshared()))
_IN_PARTS = _measured("_IN_PARTS", lambda: own((_unshared(),))[0])
_OWNER = _measured("_OWNER", lambda: own(_unshared().reshape(1, 1)))
