"""Reader of one Parquet file, whose position can be saved and restored.

It reads one row group at a time, when its first row is requested, and only the requested columns. A damaged row group
is skipped; reading continues after it.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dataset.errors import DataLossError, SpecError
from dataset.io.arrow.requested_columns import ArrowLayout
from dataset.io.parquet.parquet_file import ParquetContainer
from dataset.io.parquet.row_group import Column, NullError, RowGroup
from dataset.redaction import redacted


@dataclass(frozen=True)
class Request:
    """The arguments that apply to each of several files.

    Args:
        op: the name of the operator for messages.
        columns: the names of the columns, with dots for fields of structs; None for all.
        fill_null: the value that replaces nulls, by column.
    """

    op: str
    columns: tuple[str, ...] | None
    fill_null: Mapping[str, object]

    def layout_of(self, container: ParquetContainer, first: ArrowLayout | None) -> ArrowLayout:
        """Return the layout of a file.

        Raises:
            SpecError: the columns differ from those of the ``first`` file.
            ValueError: a column does not exist, or a fill value does not match its type.
        """
        layout = ArrowLayout(self.op, container.schema, self.columns, redacted(container.path))
        if first is not None and (difference := first.difference(layout)):
            raise SpecError(
                f"{self.op}(): all files must have the same columns; in {redacted(container.path)}, {difference}"
            )
        layout.take_fills(self.fill_null)
        return layout


class ParquetFile:
    """Reader of the rows of one file. The file is opened when its content is first needed.

    Args:
        path: the file.
        request: what to read.
        first: the layout of the first file, which this file must match.
        chosen: maps the number of row groups to the indices of those to read, ascending. Default: all.
        open_container: opens a file.

    Attributes:
        given_up: whether the file as a whole can't be read.
    """

    def __init__(
        self,
        path: str,
        request: Request,
        first: ArrowLayout | None = None,
        chosen: Callable[[int], Sequence[int]] = lambda count: range(count),  # noqa: PLW0108  # range is a class
        open_container: Callable[[str], ParquetContainer] = ParquetContainer,
    ) -> None:
        self.path = path
        self.given_up = False
        self._request = request
        self._first = first
        self._chosen = chosen
        self._open_container = open_container
        self._container: ParquetContainer | None = None
        self._layout: ArrowLayout
        self._chosen_groups: Sequence[int]
        self._place = (0, 0)  # the position to seek to when the file is opened
        self._at = 0  # index in the chosen row groups
        self._row = 0  # index in the row group
        self._group: RowGroup | None = None  # the row group in memory
        self.number_after = 0  # the index in the file of the row after the one that was returned last

    def columns(self, n: int) -> list[Column] | None:
        """Return the next 1 to ``n`` rows, one column per component; None at the end, and on every later call.

        Raises:
            DataLossError: the file is damaged and ``given_up``; or a row group is, and the next call continues after
                it.
            OSError: the file is missing or can't be read.
            SpecError: the columns differ from those of the first file, and the file is given up.
            ValueError: the next row contains a null without a replacement. The next call continues after it.
        """
        container = self._opened()
        while self._at < len(self._chosen_groups):
            group = self._group or self._read(container)
            if self._row < group.count:
                return self._take(group, n)
            self._next_group()
        return None

    def _take(self, group: RowGroup, n: int) -> list[Column]:
        try:
            columns = group.rows(self._row, n)
        except NullError as error:
            row = self.tell()[1]
            self._advance(1, group.count)
            raise ValueError(f"{redacted(self.path)}, row {row}: {error}") from None
        except (ArithmeticError, LookupError, OSError, RuntimeError, TypeError, ValueError) as error:
            number, row = self.tell()
            self._next_group()  # otherwise every later call would fail in the same way
            words = f"the values of row group {number} do not match their type: {error}"
            raise DataLossError(words, path=self.path, offset=0, record=row) from error
        self.number_after = self.tell()[1] + len(columns[0])
        self._advance(len(columns[0]), group.count)
        return columns

    def _advance(self, n: int, count: int) -> None:
        """Advance by ``n`` rows in a row group of ``count`` rows."""
        self._row += n
        if self._row == count:
            self._next_group()

    def _read(self, container: ParquetContainer) -> RowGroup:
        try:
            table = container.read(self._chosen_groups[self._at], self._layout.projection)
            self._group = RowGroup(self._layout.columns_of(table), table.num_rows, table.nbytes)
        except (DataLossError, NotImplementedError):
            self._next_group()
            raise
        return self._group

    def _next_group(self) -> None:
        self._group = None
        self._at += 1
        self._row = 0

    @property
    def exhausted(self) -> bool:
        """Whether the file is open and no rows are left."""
        return self._container is not None and self._at == len(self._chosen_groups)

    @property
    def in_memory(self) -> int:
        """The number of rows left in the row group in memory."""
        return 0 if self._group is None else self._group.count - self._row

    def skip_valid(self, n: int) -> int:
        """Skip up to ``n`` rows that are not in memory and are known not to contain bad rows; return how many."""
        container = self._opened()
        passed = 0
        strict = [leaf.name for leaf in self._layout.leaves if not leaf.takes_nulls]
        while passed < n and self._group is None and self._at < len(self._chosen_groups):
            group = self._chosen_groups[self._at]
            if not container.has_no_null(group, strict):
                break
            step = min(n - passed, _length(container, group) - self._row)
            passed += step
            self._advance(step, _length(container, group))
        return passed

    def tell(self) -> tuple[int, int]:
        """Return the row group of the next row, and the index of that row in the file."""
        if self._container is None:
            return self._place
        starts = self._container.starts
        if self._at == len(self._chosen_groups):
            return len(starts) - 1, starts[-1]
        group = self._chosen_groups[self._at]
        return group, starts[group] + self._row

    def seek(self, group: int, row: int) -> None:
        """Continue at a position that ``tell`` returned."""
        self.close()
        self._place = (group, row)

    def close(self) -> None:
        """Release the file and the memory, and keep the position. Closing twice is allowed."""
        if self._container is not None:
            self._place = self.tell()
            self._container.close()
            self._container = self._group = None

    def _opened(self) -> ParquetContainer:
        if self._container is None:
            self._container = self._open()
            self._go_to(self._container, *self._place)
        return self._container

    def _open(self) -> ParquetContainer:
        container = None
        try:
            container = self._open_container(self.path)
            self._layout = self._request.layout_of(container, self._first)
            self._chosen_groups = self._chosen(len(container.starts) - 1)
        except BaseException:
            self.given_up = True
            if container is not None:
                container.close()
            raise
        return container

    def _go_to(self, container: ParquetContainer, group: int, row: int) -> None:
        self._at = bisect.bisect_left(self._chosen_groups, group)
        self._row = row - container.starts[min(group, len(container.starts) - 1)]
        here = self._at < len(self._chosen_groups) and self._chosen_groups[self._at] == group
        if self._row and not (here and 0 <= self._row <= _length(container, group)):
            self.given_up = True
            words = f"row {row} is not in row group {group}; the file has been changed since the state was saved"
            raise DataLossError(words, path=self.path, offset=0, record=row)


def _length(container: ParquetContainer, group: int) -> int:
    return container.starts[group + 1] - container.starts[group]
