"""Kinds of elements: leaves in tuples and dicts. And functions of elements of the model, which depend on nothing else.

A kind determines which steps can follow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from chains.model import Failure

SHAPES_DIFFER = Failure("SpecError")


@dataclass(frozen=True)
class Leaf:
    """A component.

    Attributes:
        base: int, text, sparse, ragged, window, or rows, which may be dense.
        rank: the number of axes.
        of: the kind of the elements of a window, which is a dataset.
    """

    base: str
    rank: int = 0
    of: Any = None


LEAST_RANK = {"int": 0, "text": 0, "window": 0, "sparse": 1, "ragged": 2, "rows": 2}
INT, TEXT, ROW, ROWS = Leaf("int"), Leaf("text"), Leaf("int", 1), Leaf("rows", 2)
LEAVES_MAX = 5


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
    return map_kind(lambda leaf: ROW if leaf == ROWS else Leaf(leaf.base, leaf.rank - 1), kind)


def whole(element: Any) -> Any:
    """Return what a function returns that returns its arguments, of an element or a kind: the only part of a tuple."""
    return element[0] if isinstance(element, tuple) and len(element) == 1 else element


def consists_of(kind: Any, *allowed: Leaf) -> bool:
    return all(leaf in allowed for leaf in leaves(kind))


def has_windows(kind: Any) -> bool:
    return any(leaf.base == "window" for leaf in leaves(kind))


def may_grow(kind: Any) -> bool:
    return len(leaves(kind)) < LEAVES_MAX


def is_dense(kind: Any) -> bool:
    return all(leaf.base in {"int", "text"} for leaf in leaves(kind))


def is_simple(kind: Any) -> bool:
    return kind in (INT, TEXT, ROW)


def can_be_batched(kind: Any) -> bool:
    return not has_windows(kind) and all(leaf.rank <= 1 + (leaf.base == "ragged") for leaf in leaves(kind))


def can_be_unbatched(kind: Any) -> bool:
    return all(leaf.rank > LEAST_RANK[leaf.base] or leaf == ROWS for leaf in leaves(kind))


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
