"""Rows of an Arrow table by number, which ``from_huggingface`` makes: what is not asked for is not read.

A table of from_arrow becomes arrays, whole, when the dataset is made. This one may be a file larger than memory, mapped
into it, of which rows are converted when they are taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dataset.io.arrow.layout import ArrowLayout, null_message
from dataset.io.arrow.numbered_rows import NumberedRows
from dataset.ops.range import RangeOperator
from dataset.ops.row_source import RowsOperator, RowSource
from dataset.plan.lazy import lazy_property, once
from dataset.plan.structure import Structure
from dataset.plan.values import RaggedTensor
from dataset.runtime.chunks.chunk import Array, Chunk, Column, read_only
from dataset.runtime.chunks.slicing import rows_of
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator
from dataset.runtime.metrics.dropped import DroppedCount

ROWS_AT_ONCE_MAX = 1024  # beside so many, what one step costs is little
BYTES_AT_ONCE = 1 << 20


@dataclass(frozen=True, eq=False)
class TableRows(RowSource):
    """Element ``i`` is row ``order[i]`` of ``holder.table``, as a dict.

    Attributes:
        holder: has the table; a copy for another process is made of it as it copies itself, which may be by the name of
            its file.
        schema: the columns that there are, with the types that their values are to become.
        columns: names of those to take, with dots for fields of structs.
        fill_null: what stands for a null, by column.
        order: numbers of rows, int64; None for those of the table as they are.
        identity: a text that is another one for other rows.
    """

    op: ClassVar[str] = "from_huggingface"
    gives_elements: ClassVar[bool] = True
    holder: Any = field(repr=False)
    schema: Any = field(repr=False)
    columns: Sequence[str]
    fill_null: Mapping[str, Any]
    order: Array | None = field(repr=False)
    identity: str

    def __post_init__(self) -> None:
        _ = self.layout  # so that what is wrong with the columns shows at once

    @lazy_property
    def layout(self) -> ArrowLayout:
        """What the columns are."""
        layout = ArrowLayout(self.op, self.schema, self.columns, "the dataset")
        layout.take_fills(self.fill_null)
        return layout

    @property
    def structure(self) -> Structure:
        return self.layout.structure

    def _element_spec(self) -> Any:
        return self.layout.spec

    @property
    def all_rows(self) -> range:
        return range(self.holder.table.num_rows if self.order is None else len(self.order))

    @lazy_property
    def is_certain(self) -> bool:
        """Whether no row holds a null that is an error. What is counted here stands in the table, mostly."""
        table = self.holder.table
        return all(NumberedRows(leaf, table).is_certain for leaf in self.layout.leaves)

    @lazy_property
    def rows_at_once(self) -> int:
        """So many that a step costs little beside them, and no more than a little memory."""
        table = self.holder.table
        nbytes = sum(NumberedRows(leaf, table).nbytes for leaf in self.layout.leaves)
        row_bytes = max(1, nbytes // max(1, table.num_rows))
        return int(max(1, min(ROWS_AT_ONCE_MAX, BYTES_AT_ONCE // row_bytes)))

    def parameters(self) -> dict[str, Any]:
        chosen = {} if self.takes_all else {"rows": str(self.rows)}
        return {
            "rows_there": len(self.all_rows),
            "spec": repr(self.element_spec),
            "fills": dict(self.fill_null),
            **chosen,
        }

    def content(self) -> Any:
        return [self.parameters(), self.identity]

    def open_rows(self, skipped: DroppedCount) -> OpenRows:  # noqa: ARG002  # none are left out
        return OpenRows(self)

    @once
    def _at_hand(self) -> OpenRows:
        return OpenRows(self)

    def element(self, position: int) -> Any:
        return self._at_hand().take(np.array([self.places[position]])).only()

    def lower(self, build: ExecutionContext) -> Operator:
        return RowsOperator(RangeOperator(self.places, np.dtype(np.int64)), self, build.skipped)


class OpenRows:
    """The rows of a table, for one iteration."""

    def __init__(self, node: TableRows) -> None:
        self.node = node
        table = node.holder.table
        self._columns = [NumberedRows(leaf, table) for leaf in node.layout.leaves]

    def take(self, numbers: Array) -> Chunk:
        stored = numbers if self.node.order is None else self.node.order[numbers]
        first, count = int(stored[0]), len(stored)
        if count == 1 or (stored[-1] - first == count - 1 and np.all(np.diff(stored) == 1)):
            made = [column.run(first, first + count) for column in self._columns]
        else:
            made = [column.gather(stored) for column in self._columns]
        good = self._first_bad(numbers, [int(bad[0]) if len(bad) else count for _, bad in made], count)
        chunk = Chunk(self.node.structure, count, [_as_column(values) for values, _ in made])
        return chunk.slice(0, good)

    def _first_bad(self, numbers: Array, bad: list[int], count: int) -> int:
        """How many rows come before the first one that holds a null.

        Raises:
            ValueError: if that is the first of all.
        """
        good = min(bad, default=count)
        if good == 0:
            leaf = self._columns[bad.index(0)].leaf
            error = ValueError(f"{self.node.op}(): row {numbers[0]}: {null_message(leaf)}")
            error.add_note(f"in {self.node.located()}")
            raise error
        return good

    def passes_over(self, error: Exception) -> bool:  # noqa: ARG002  # they fail in their places
        return False

    def close(self) -> None:
        """The table is its holder's."""


def _as_column(values: Array | RaggedTensor) -> Column:
    """Values as a column of a chunk: what is ragged as a list of its rows."""
    return values if isinstance(values, np.ndarray) else read_only(rows_of(values))
