"""polars frames as Arrow tables, without copying numbers. ``from_arrow`` does the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import polars as pl

from dataset.errors import SpecError

OP = "from_polars"


def table_of(data: Any, columns: Sequence[str] | None) -> Any:
    """Return the Arrow table of a frame, with the columns that ``columns`` needs. A Series is one column.

    Raises:
        TypeError: if ``data`` is not a polars frame.
        SpecError: if Arrow has no type for a column.
    """
    if isinstance(data, pl.LazyFrame):
        data = data.collect()
    elif isinstance(data, pl.Series):
        data = data.to_frame()
    if not isinstance(data, pl.DataFrame):
        raise TypeError(
            f"{OP}(): df must be a polars DataFrame, LazyFrame or Series, got {data!r:.100} of type "
            f"{type(data).__name__}"
        )
    frame = data.select(_needed(data.columns, columns))
    for name, kind in frame.schema.items():
        if kind.is_object():  # polars would export the addresses of the objects
            _refuse(name, kind, "its values are Python objects")
    try:
        return frame.to_arrow()
    except Exception as error:
        _refuse_one_of(frame)
        raise SpecError(f"{OP}(): {error}") from error


def _needed(there: list[str], columns: Sequence[str] | None) -> list[str]:
    """Return the requested columns, and those with requested fields; all if one is missing, so that it is reported."""
    if columns is None:
        return there
    needed = [name if name in there else name.partition(".")[0] for name in columns]
    return list(dict.fromkeys(needed)) if set(needed) <= set(there) else there


def _refuse_one_of(frame: pl.DataFrame) -> None:
    """Raise the error for the column that cannot be converted, if a single column is the cause."""
    for name, kind in frame.schema.items():
        try:
            frame.select(name).to_arrow()
        except Exception as error:  # noqa: BLE001  # polars and pyarrow raise errors of many types
            _refuse(name, kind, str(error))


def _refuse(name: str, kind: Any, why: str) -> NoReturn:
    raise SpecError(
        f"{OP}(): column {name!r} has the type {kind}, which Arrow cannot represent: {why}. Leave it out with "
        "columns=[...], or cast it"
    ) from None
