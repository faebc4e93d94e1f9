"""Kinds of elements: leaves in tuples and dicts. And functions that depend on nothing else.

A kind determines which steps can follow. Functions without a library argument take elements of the model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from chains.model import Failure
from dataset import TensorSpec

SHAPES_DIFFER = Failure("SpecError")


@dataclass(frozen=True)
class Leaf:
    """A component: ``base`` is int, text, sparse, ragged, or rows, which may be dense; ``rank`` is the rank."""

    base: str
    rank: int = 0


LEAST_RANK = {"int": 0, "text": 0, "sparse": 1, "ragged": 2, "rows": 2}
INT, TEXT, ROW = Leaf("int"), Leaf("text"), Leaf("int", 1)


def leaves(kind: Any) -> list[Leaf]:
    if isinstance(kind, Leaf):
        return [kind]
    return [leaf for part in (kind.values() if isinstance(kind, dict) else kind) for leaf in leaves(part)]


def map_kind(function: Callable[[Leaf], Any], kind: Any) -> Any:
    if isinstance(kind, Leaf):
        return function(kind)
    if isinstance(kind, dict):
        return {key: map_kind(function, part) for key, part in kind.items()}
    return tuple(map_kind(function, part) for part in kind)


def batched(kind: Any) -> Any:
    return map_kind(lambda leaf: Leaf(leaf.base, leaf.rank + 1), kind)


def unbatched(kind: Any) -> Any:
    """Return the kind of the rows of a batch."""
    return map_kind(lambda leaf: Leaf(leaf.base, leaf.rank - 1), kind)


def is_dense(kind: Any) -> bool:
    return all(leaf.base in {"int", "text"} for leaf in leaves(kind))


def can_be_batched(kind: Any) -> bool:
    return all(leaf.rank <= 1 + (leaf.base == "ragged") for leaf in leaves(kind))


def can_be_unbatched(kind: Any) -> bool:
    return all(leaf.rank > LEAST_RANK[leaf.base] for leaf in leaves(kind))


def shape(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list):
        return ()
    return (len(value), *(shape(value[0]) if value else ()))


def stack(kind: Any, rows: list[Any]) -> Any:
    """Return a batch of elements, or a Failure if their shapes differ."""
    columns = columns_of(kind, rows)
    if columns is not None:
        parts = {key: stack(part, column) for key, (part, column) in columns.items()}
        wrong = [part for part in parts.values() if isinstance(part, Failure)]
        return wrong[0] if wrong else parts if isinstance(kind, dict) else tuple(parts.values())
    if kind.base in {"int", "text"} and len(set(map(shape, rows))) > 1:
        return SHAPES_DIFFER
    return list(rows)


def pad(kind: Any, rows: list[Any], length: int = 0) -> Any:
    """Return a batch of elements of rank 0 or 1, padded to the longest, and at least to ``length``."""
    columns = columns_of(kind, rows)
    if columns is not None:
        parts = {key: pad(part, column, length) for key, (part, column) in columns.items()}
        return parts if isinstance(kind, dict) else tuple(parts.values())
    if kind.rank == 0:
        return list(rows)
    longest = max(length, *map(len, rows)) if rows else length
    filler = b"" if kind.base == "text" else 0
    return [row + [filler] * (longest - len(row)) for row in rows]


def unstack(kind: Any, batch: Any) -> list[Any]:
    """Return the rows of a batch, or a Failure if its components have different numbers of rows."""
    if isinstance(kind, Leaf):
        return list(batch)
    keys = list(kind) if isinstance(kind, dict) else range(len(kind))
    columns = [unstack(kind[key], batch[key]) for key in keys]
    wrong = [column for column in columns if column == [SHAPES_DIFFER]]
    if wrong or len(set(map(len, columns))) > 1:
        return [SHAPES_DIFFER]
    rows = zip(*columns, strict=True)
    return [dict(zip(keys, row, strict=True)) if isinstance(kind, dict) else row for row in rows]


def columns_of(kind: Any, rows: list[Any]) -> dict[Any, tuple[Any, list[Any]]] | None:
    """Return the kind and the values of each component by key; the key of a leaf is None."""
    if isinstance(kind, Leaf):
        return None
    keys = list(kind) if isinstance(kind, dict) else range(len(kind))
    return {key: (kind[key], [row[key] for row in rows]) for key in keys}


def number(element: Any) -> int:
    """Return a number that depends on all parts of an element."""
    if isinstance(element, dict):
        element = tuple(element.values())
    if isinstance(element, tuple | list):
        return sum(map(number, element))
    return len(element) if isinstance(element, bytes) else int(element)


def number_in(lib: Any, kind: Any, element: Any) -> Any:
    """Return the same number for an element of a library."""
    if isinstance(kind, dict):
        return sum(number_in(lib, kind[key], element[key]) for key in kind)
    if isinstance(kind, tuple):
        return sum(number_in(lib, part, value) for part, value in zip(kind, element, strict=True))
    if kind.base == "text":
        return lib.call(_text_length, TensorSpec((), np.int64))(element)
    if kind.base == "sparse":
        return lib.total(element.values)
    if kind.base in {"ragged", "rows"}:
        return lib.total(getattr(element, "flat_values", element))
    return lib.total(element) if kind.rank else element


def _text_length(text: Any) -> Any:
    return np.int64(sum(map(len, np.asarray(text, object).ravel().tolist())))


def taking(kind: Any, function: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a function of an element as map() and filter() call it, with the parts of a tuple as arguments."""
    return (lambda *parts: function(parts)) if isinstance(kind, tuple) else function


def spec(lib: Any, kind: Any) -> Any:
    """Return the spec of dense elements of rank 0 or 1 with unknown length."""
    dtypes = {"int": np.int64, "text": bytes}
    return map_kind(lambda leaf: lib.TensorSpec((None,) * leaf.rank, dtypes[leaf.base]), kind)
