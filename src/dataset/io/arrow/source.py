"""Node of ``from_arrow``: the rows of Arrow tables, as slices of NumPy arrays.

Pandas and polars data frames become slices as well; their columns are converted by Arrow unless they are NumPy arrays.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dataset.errors import DataLossError
from dataset.io.arrow.pyarrow_library import library, require_stream_end
from dataset.io.arrow.requested_columns import ArrowLayout, TableColumn, require_fill_null
from dataset.io.files.opening import path_string, read_file
from dataset.ops.sources.tensor_slices import TensorSlices
from dataset.plan.checks import require_columns

_FILE_MAGIC = b"ARROW1"  # the file format begins and ends with it, the stream format does not


@dataclass(frozen=True, eq=False)
class ArrowSlices(TensorSlices):
    """Node that slices an Arrow table into rows, as dicts."""

    op: ClassVar[str] = "from_arrow"


@dataclass(frozen=True, eq=False)
class PolarsSlices(ArrowSlices):
    """Node that slices a polars data frame into rows."""

    op: ClassVar[str] = "from_polars"


@dataclass(frozen=True, eq=False)
class PandasSlices(ArrowSlices):
    """Node that slices a pandas data frame into rows.

    ``held`` is a shallow copy of the frame. While it exists, pandas copies a column before writing to it. The arrays of
    this node are views of the same memory and therefore never change.
    """

    op: ClassVar[str] = "from_pandas"
    held: Any = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "held": None}  # a pickled copy has arrays of its own


def arrow_plan(data: Any, columns: Any, fill_null: Any, name: str | None) -> ArrowSlices:
    """Return the plan of ``Dataset.from_arrow``, which documents the arguments."""
    return ArrowSlices(arrow_columns(ArrowSlices.op, data, columns, fill_null), name=name)


def arrow_columns(op: str, data: Any, columns: Any, fill_null: Any) -> dict[str, Any]:
    """Return the columns of Arrow data in the structure of an element; ``op`` is the operator's name for messages."""
    asked = require_columns(op, columns)
    fills = require_fill_null(op, fill_null)
    table = _table_of(op, data)
    layout = ArrowLayout(op, table.schema, asked, "the table")
    layout.take_fills(fills)
    arrays = [_whole(op, column, table.num_rows) for column in layout.columns_of(table)]
    made: dict[str, Any] = layout.structure.unflatten(arrays)
    return made


def _whole(op: str, column: TableColumn, count: int) -> Any:
    values, bad = column.rows(0, count)
    if len(bad):
        raise ValueError(f"{op}(): row {bad[0]}: {column.null_message}")
    return values


def _table_of(op: str, data: Any) -> Any:
    """Return Arrow data of any form as a table in memory. A stream is read to its end."""
    if isinstance(data, str | bytes | os.PathLike):
        return _table_in(path_string(data))
    pa = library()
    if isinstance(data, Sequence) and data and all(isinstance(batch, pa.RecordBatch) for batch in data):
        return pa.Table.from_batches(data)
    if isinstance(data, pa.Table):
        return data
    if hasattr(data, "__arrow_c_stream__"):
        return pa.table(data)
    if hasattr(data, "__arrow_c_array__"):
        return pa.table(pa.record_batch(data))
    raise TypeError(
        f"{op}(): data must be an Arrow table, a list of record batches, an object with __arrow_c_stream__ (a data "
        f"frame, a reader) or the path of an Arrow file, got {data!r:.200} of type {type(data).__name__}"
    )


def _table_in(path: str) -> Any:
    """Return the table in an Arrow IPC file (such as a Feather file) or a stored IPC stream."""
    pa, ipc = library(), library("pyarrow.ipc")
    content = read_file(path)
    try:
        source, is_file = pa.BufferReader(content), content.startswith(_FILE_MAGIC)
        table = (ipc.open_file if is_file else ipc.open_stream)(source).read_all()
        table.validate(full=True)
        if not is_file:
            require_stream_end(source)
    except (pa.ArrowException, OSError, ValueError) as error:
        words = f"the file is not an Arrow file, or it is damaged: {error}"
        raise DataLossError(words, path=path, offset=0, record=0) from error
    return table
