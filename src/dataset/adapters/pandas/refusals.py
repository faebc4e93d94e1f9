"""What is said of columns and rows that can't be given."""

from __future__ import annotations

from typing import Any, NoReturn

from dataset.errors import SpecError

__all__ = ["OP", "refuse", "refuse_row", "shown"]

OP = "from_pandas"


def refuse(column: str, why: str) -> NoReturn:
    """Raise the error for a column for which there is no component."""
    raise SpecError(f"{OP}(): column {column!r}: {why}. Leave it out with columns=[...]")


def refuse_row(column: str, row: int, why: str) -> NoReturn:
    """Raise the error for a row that does not go with the others."""
    raise ValueError(f"{OP}(): row {row}: column {column!r} {why}") from None


def shown(value: Any) -> str:
    """A value and its type, in brief."""
    return f"{value!r:.100} of type {type(value).__name__}"
