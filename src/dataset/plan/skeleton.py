"""Skeletons: structures and specs as JSON, stored in files and read back without running code.

Tuples, dicts with text as keys, None and named tuples are rebuilt from their skeleton alone; a named tuple is rebuilt
as one of the same name and fields, as in tf.data. Instances of other user classes have a skeleton, too, which is used
to check a spec given by the user. But a file never names a class to call, so the user must give their structure.
"""

from __future__ import annotations

import collections
import re
from functools import cache
from typing import Any

import numpy as np

from dataset.plan.spec import BYTES, ComponentSpec, RaggedTensorSpec, SparseTensorSpec, TensorSpec
from dataset.plan.structure import LEAF, NONE, Structure, _Dict, _NamedTuple, _Tuple

_DTYPE = re.compile(r"[<>|][biufc]\d{1,2}|[<>]m8(\[\d*[A-Za-z]{1,2}\])?|[<>]M8(\[\d*[A-Za-z]{1,2}\])?")

DIMENSION_MAX = 2**62  # NumPy's own limit is just above


@cache
def dtype_name(dtype: np.dtype[Any]) -> str:
    """Return the name of a dtype in files.

    Raises:
        TypeError: if arrays of this dtype cannot be written as plain bytes.

    >>> dtype_name(np.dtype(np.int32)), dtype_name(np.dtype("S"))
    ('<i4', 'bytes')
    """
    if dtype == BYTES:
        return "bytes"
    if _DTYPE.fullmatch(dtype.str) is None:
        raise TypeError(f"values of dtype {dtype} cannot be written to a file")
    return dtype.str


def dtype_named(name: Any) -> np.dtype[Any]:
    """Return the inverse of ``dtype_name``.

    Raises:
        ValueError: if ``name`` is not a result of ``dtype_name``; in particular, for object dtypes.
    """
    if name == "bytes":
        return BYTES
    if not isinstance(name, str) or _DTYPE.fullmatch(name) is None:
        raise ValueError(f"invalid dtype: {name!r:.50}")
    try:
        return np.dtype(name)
    except TypeError:
        raise ValueError(f"invalid dtype: {name!r:.50}") from None


def skeleton_of(structure: Structure) -> Any:
    """Return the structure as JSON data. Structures with equal skeletons have the same component order."""
    if structure is LEAF:
        return "*"
    if structure is NONE:
        return None
    children = [skeleton_of(child) for child in structure.children]
    if isinstance(structure, _Tuple):
        return {"tuple": children}
    if isinstance(structure, _NamedTuple):
        return {"namedtuple": structure.cls.__name__, "names": list(structure.cls._fields), "of": children}
    if isinstance(structure, _Dict) and structure.cls is dict and all(type(key) is str for key in structure.keys):
        by_key = dict(zip(structure.sorted_keys, children, strict=True))
        return {"dict": [[key, by_key[key]] for key in structure.keys]}
    names = structure._names()  # noqa: SLF001
    return {"class": structure.cls.__name__, "names": names, "of": children}  # type: ignore[attr-defined]


def structure_named(skeleton: Any) -> Structure | None:
    """Return the structure of a skeleton; None if it contains a user class other than a named tuple.

    Raises:
        ValueError: if ``skeleton`` is invalid.
    """
    match skeleton:
        case "*":
            return LEAF
        case None:
            return NONE
        case {"tuple": list(parts)}:
            children = _all(parts)
            return None if children is None else _Tuple(children)
        case {"namedtuple": str(name), "names": list(names), "of": list(parts)} if len(names) == len(parts):
            children = _all(parts)
            return None if children is None else _NamedTuple(_namedtuple(name, tuple(names)), children)
        case {"dict": list(pairs)}:
            by_key = _items(pairs)
            keys = tuple(sorted(by_key))
            children = _all([by_key[key] for key in keys])
            return None if children is None else _Dict(dict, tuple(by_key), keys, children)
        case {"class": str(), "names": list(), "of": list(parts)}:
            _all(parts)
            return None
    raise ValueError(f"invalid structure: {skeleton!r:.200}")


def _items(pairs: list[Any]) -> dict[str, Any]:
    items = {}
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2 or type(pair[0]) is not str or pair[0] in items:
            raise ValueError(f"invalid item of a dict: {pair!r:.100}")
        items[pair[0]] = pair[1]
    return items


def _all(parts: list[Any]) -> tuple[Structure, ...] | None:
    children = tuple(structure_named(part) for part in parts)
    known = tuple(child for child in children if child is not None)
    return known if len(known) == len(children) else None


@cache
def _namedtuple(name: str, names: tuple[str, ...]) -> type[Any]:
    """Return one class for each name and fields, so that elements of several files have the same structure."""
    return collections.namedtuple(name, names)  # noqa: PYI024  # created from data


def fits(skeleton: Any, structure: Structure) -> bool:
    """Return whether elements of ``structure`` have this skeleton; the order of a dict's keys does not matter."""
    return bool(_sorted(skeleton) == _sorted(skeleton_of(structure)))


def _sorted(skeleton: Any) -> Any:
    match skeleton:
        case {"dict": list(pairs)}:
            return {"dict": sorted([key, _sorted(part)] for key, part in pairs)}
        case {"tuple": list(parts)}:
            return {"tuple": [_sorted(part) for part in parts]}
        case {"of": list(parts)}:
            return {**skeleton, "of": [_sorted(part) for part in parts]}
    return skeleton


def names_classes(skeleton: Any) -> bool:
    """Return whether elements with this skeleton are or contain named tuples or instances of user classes."""
    match skeleton:
        case {"namedtuple": _} | {"class": _}:
            return True
        case {"tuple": parts}:
            return any(map(names_classes, parts))
        case {"dict": pairs}:
            return any(names_classes(part) for _, part in pairs)
    return False


def spec_to_plain(spec: ComponentSpec) -> dict[str, Any]:
    """Return the spec of a component as JSON data.

    Raises:
        TypeError: if such components cannot be written: objects, datasets.
    """
    plain: dict[str, Any] = {"shape": None if spec.shape is None else list(spec.shape)}
    match spec:
        case TensorSpec():
            plain["kind"] = "tensor"
        case RaggedTensorSpec():
            splits = dtype_name(spec.row_splits_dtype)
            plain |= {"kind": "ragged", "ragged_rank": spec.ragged_rank, "row_splits_dtype": splits}
        case SparseTensorSpec():
            plain["kind"] = "sparse"
        case _:
            raise TypeError(f"{spec!r} cannot be written to a file")
    return {**plain, "dtype": dtype_name(spec.dtype)}


def spec_from_plain(data: Any) -> ComponentSpec:
    """Return the inverse of ``spec_to_plain``.

    Raises:
        ValueError: if ``data`` is not a result of ``spec_to_plain``.
    """
    match data:
        case {"kind": "tensor", "shape": shape, "dtype": dtype}:
            return TensorSpec(_shape(shape), dtype_named(dtype))
        case {"kind": "ragged", "shape": shape, "dtype": dtype, "ragged_rank": int(rank), "row_splits_dtype": splits}:
            return RaggedTensorSpec(_shape(shape), dtype_named(dtype), rank, dtype_named(splits))
        case {"kind": "sparse", "shape": shape, "dtype": dtype}:
            return SparseTensorSpec(_shape(shape), dtype_named(dtype))
    raise ValueError(f"invalid component spec: {data!r:.200}")


def _shape(data: Any) -> list[int | None] | None:
    if data is None:
        return None
    if not isinstance(data, list) or not all(d is None or (type(d) is int and 0 <= d < DIMENSION_MAX) for d in data):
        raise ValueError(f"invalid shape: {data!r:.100}")
    return data
