"""Node of ``from_huggingface``: random access to the rows of an Arrow table. Only the requested rows are read.

``from_arrow`` converts a whole table to arrays when the dataset is created. This node converts rows when they are
requested, so its table may be a memory-mapped file that is larger than memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dataset.amounts import STEP_BYTES, STEP_ELEMENTS
from dataset.io.arrow.numbered_rows import NumberedRows
from dataset.io.arrow.requested_columns import ArrowLayout, null_message
from dataset.ops.sources.row_source import Rows, RowSource
from dataset.plan.lazy import lazy_property, once
from dataset.plan.structure import Structure
from dataset.plan.traits import Traits
from dataset.plan.values import RaggedTensor
from dataset.runtime.chunks.chunk import Array, Chunk, Column, read_only
from dataset.runtime.chunks.slicing import rows_of
from dataset.runtime.metrics.dropped import DroppedCount


@dataclass(frozen=True, eq=False)
class TableRows(RowSource):
    """Random-access node whose element ``i`` is row ``order[i]`` of ``holder.table``, as a dict.

    Attributes:
        holder: the object that owns the table. It defines how it is pickled, possibly as the name of its file.
        schema: all columns, with the types of their values.
        columns: the names of the columns to read, with dots for fields of structs.
        fill_null: the value that replaces nulls, by column.
        order: row indices, int64; None for all rows in the order of the table.
        identity: a text that identifies the rows; it differs for other rows.
    """

    op: ClassVar[str] = "from_huggingface"
    holder: Any = field(repr=False)
    schema: Any = field(repr=False)
    columns: Sequence[str]
    fill_null: Mapping[str, Any]
    order: Array | None = field(repr=False)
    identity: str

    def __post_init__(self) -> None:
        _ = self.layout  # so that invalid columns raise at once

    @lazy_property
    def layout(self) -> ArrowLayout:
        """The layout of an element."""
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
    def traits(self) -> Traits:
        """Exact if no row contains a null that is an error. Most null counts are stored in the table."""
        table = self.holder.table
        is_exact = all(NumberedRows(leaf, table).is_exact for leaf in self.layout.leaves)
        return super().traits.having(exact=is_exact)

    @lazy_property
    def rows_at_once(self) -> int:
        """How many rows to read per step: enough to amortize its fixed cost, without using much memory."""
        table = self.holder.table
        nbytes = sum(NumberedRows(leaf, table).nbytes for leaf in self.layout.leaves)
        row_bytes = max(1, nbytes // max(1, table.num_rows))
        return int(max(1, min(STEP_ELEMENTS, STEP_BYTES // row_bytes)))

    def parameters(self) -> dict[str, Any]:
        chosen = {} if self.takes_all else {"rows": str(self.rows)}
        return {
            "rows_there": len(self.all_rows),
            "spec": repr(self.element_spec),
            "fills": dict(self.fill_null),
            **chosen,
        }

    def fingerprint_fields(self) -> Any:
        return [self.parameters(), self.identity]

    def open_rows(self, skipped: DroppedCount) -> OpenRows:  # noqa: ARG002  # no row is skipped
        return OpenRows(self)

    @once
    def _at_hand(self) -> OpenRows:
        return OpenRows(self)

    def element(self, position: int) -> Any:
        return self._at_hand().take(np.array([self.places[position]])).only()


class OpenRows(Rows):
    """Row reader of a table for one iteration. The holder owns the table."""

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
        """Return the number of rows before the first bad row.

        Raises:
            ValueError: the first row is bad.
        """
        good = min(bad, default=count)
        if good == 0:
            leaf = self._columns[bad.index(0)].leaf
            error = ValueError(f"{self.node.op}(): row {numbers[0]}: {null_message(leaf)}")
            error.add_note(f"in {self.node}")
            raise error
        return good


def _as_column(values: Array | RaggedTensor) -> Column:
    """Return values as a column of a chunk: ragged values as a list of rows."""
    return values if isinstance(values, np.ndarray) else read_only(rows_of(values))
