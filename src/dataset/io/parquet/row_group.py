"""The rows of one row group as NumPy columns, converted in blocks.

Numbers are views and cost nothing, but a whole row group of text would be a million objects at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dataset.amounts import AHEAD_ELEMENTS, STEP_BYTES
from dataset.io.arrow.requested_columns import TableColumn
from dataset.plan.values import RaggedTensor, frozen_view

Column = npt.NDArray[Any] | list[Any]


class NullError(Exception):
    """Internal error: a row contains a null without a replacement. Callers add the row to the message."""


class RowGroup:
    """Some columns of a row group in memory, converted block by block.

    Args:
        columns: the columns in the order of an element's components.
        count: the number of rows.
        nbytes: the total size of the columns.
    """

    def __init__(self, columns: Sequence[TableColumn], count: int, nbytes: int) -> None:
        self.count = count
        self._columns = columns
        row_bytes = max(1, nbytes // max(1, count))
        self._block_rows = max(1, min(AHEAD_ELEMENTS, STEP_BYTES // row_bytes))
        self._start = self._stop = 0  # of the current block
        self._block: list[Column] = []
        self._bad: list[tuple[int, TableColumn]] = []  # the bad rows of the block, ascending

    def rows(self, start: int, n: int) -> list[Column]:
        """Return 1 to ``n`` rows from ``start`` on, stopping before a bad row.

        Raises:
            NullError: the first row is bad.
        """
        stop = min(start + n, self.count)
        if not self._start <= start <= stop <= self._stop:
            self._make(start, n)
        place = next(((row, column) for row, column in self._bad if row >= start), None)
        if place is not None and place[0] == start:
            raise NullError(place[1].null_message)
        if place is not None:
            stop = min(stop, place[0])
        return [column[start - self._start : stop - self._start] for column in self._block]

    def _make(self, start: int, n: int) -> None:
        """Convert a block from ``start`` on, whose number of rows is a multiple of ``n``."""
        stop = min(start + n * -(-self._block_rows // n), self.count)
        made = [column.rows(start, stop) for column in self._columns]
        self._start, self._stop = start, stop
        self._block = [_as_column(values) for values, _ in made]
        bad = {start + int(row): column for column, (_, rows) in zip(self._columns, made, strict=True) for row in rows}
        self._bad = sorted(bad.items(), key=lambda item: item[0])


def _as_column(values: npt.NDArray[Any] | RaggedTensor) -> Column:
    """Return values as a column of a chunk: ragged values as a list of rows."""
    if isinstance(values, np.ndarray):
        return values
    if isinstance(values.values, RaggedTensor):
        return list(values)
    flat = frozen_view(values.values)
    return [flat[start:stop] for start, stop in itertools.pairwise(values.row_splits.tolist())]
