"""Conversion of single rows of an Arrow stream, which arrive as tables of one row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dataset.io.arrow.numbered_rows import NumberedRows
from dataset.io.arrow.requested_columns import ArrowLayout, null_message


class RowReader:
    """Converter of tables of one row to elements.

    Args:
        op: the name of the operator for messages.
        schema: the schema of the tables, with the types of the values.
        columns: the names of the columns to read, with dots for fields of structs.
        fill_null: the value that replaces nulls, by column.
    """

    def __init__(self, op: str, schema: Any, columns: Sequence[str], fill_null: Mapping[str, Any]) -> None:
        self._layout = ArrowLayout(op, schema, columns, "the dataset")
        self._layout.take_fills(fill_null)

    def __call__(self, table: Any) -> Any:
        """Return the row as an element.

        Raises:
            ValueError: the row contains a null in a column without a fill value.
        """
        components = []
        for leaf in self._layout.leaves:
            values, bad = NumberedRows(leaf, table).run(0, 1)
            if len(bad):
                raise ValueError(f"{self._layout.op}(): {null_message(leaf)}")
            components.append(values[0])
        return self._layout.structure.unflatten(components)
