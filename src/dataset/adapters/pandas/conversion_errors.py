"""Errors for columns and rows that cannot be converted."""

from __future__ import annotations

from typing import Any, NoReturn

from dataset.errors import SpecError

__all__ = ["OP", "refuse", "refuse_row", "shown"]

OP = "from_pandas"


def refuse(column: str, why: str) -> NoReturn:
    """Raise the error for a column that cannot be represented as a component."""
    raise SpecError(f"{OP}(): column {column!r}: {why}. Leave it out with columns=[...]")


def refuse_row(column: str, row: int, why: str) -> NoReturn:
    """Raise the error for a row that is incompatible with the other rows."""
    raise ValueError(f"{OP}(): row {row}: column {column!r} {why}") from None


def shown(value: Any) -> str:
    """Return a short text with the value and its type."""
    return f"{value!r:.100} of type {type(value).__name__}"
