"""polars' frames as Arrow tables, without a copy of numbers. The rest is from_arrow's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import polars as pl

from dataset.errors import SpecError

__all__ = ["table_of"]

OP = "from_polars"


def table_of(data: Any, columns: Sequence[str] | None) -> Any:
    """The Arrow table of a frame, with as many of its columns as ``columns`` takes. A Series is one column.

    Raises:
        TypeError: if ``data`` is no frame of polars.
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
        if kind.is_object():  # of which Arrow would get the addresses
            _refuse(name, kind, "Python objects are no columns")
    try:
        return frame.to_arrow()
    except Exception as error:
        _refuse_one_of(frame)
        raise SpecError(f"{OP}(): {error}") from error


def _needed(there: list[str], columns: Sequence[str] | None) -> list[str]:
    """The columns that are asked for, and those whose fields are; all where one is not there, which then is said."""
    if columns is None:
        return there
    needed = [name if name in there else name.partition(".")[0] for name in columns]
    return list(dict.fromkeys(needed)) if set(needed) <= set(there) else there


def _refuse_one_of(frame: pl.DataFrame) -> None:
    """Say which column it is that Arrow has no type for."""
    for name, kind in frame.schema.items():
        try:
            frame.select(name).to_arrow()
        except Exception as error:  # noqa: BLE001  # whatever polars or pyarrow has against it
            _refuse(name, kind, str(error))


def _refuse(name: str, kind: Any, why: str) -> NoReturn:
    raise SpecError(
        f"{OP}(): column {name!r} is {kind}, for which Arrow has no type: {why}. Leave it out with columns=[...], or "
        "cast it"
    ) from None
