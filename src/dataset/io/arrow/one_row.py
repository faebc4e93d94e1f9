"""Rows of an Arrow stream that come one at a time, each as a table of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dataset.io.arrow.layout import ArrowLayout, null_message
from dataset.io.arrow.numbered_rows import NumberedRows

__all__ = ["RowReader"]


class RowReader:
    """Makes elements of tables of one row.

    Args:
        op: who asks, for messages.
        schema: of the tables, with the types that values are to become.
        columns: names of those to take, with dots for fields of structs.
        fill_null: what stands for a null, by column.
    """

    def __init__(self, op: str, schema: Any, columns: Sequence[str], fill_null: Mapping[str, Any]) -> None:
        self._layout = ArrowLayout(op, schema, columns, "the dataset")
        self._layout.take_fills(fill_null)

    def __call__(self, table: Any) -> Any:
        """The row's element.

        Raises:
            ValueError: if it holds a null for which its column has no value.
        """
        components = []
        for leaf in self._layout.leaves:
            values, bad = NumberedRows(leaf, table).run(0, 1)
            if len(bad):
                raise ValueError(f"{self._layout.op}(): {null_message(leaf)}")
            components.append(values[0])
        return self._layout.structure.unflatten(components)
