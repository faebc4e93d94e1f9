"""The rows of one Parquet file, with a place that can be gone back to.

One row group is read at a time, when its first row is asked for, and of it only the columns that are asked for. A
damaged one is given up, and the rows behind it are not.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dataset.errors import DataLossError, SpecError
from dataset.io.arrow.layout import ArrowLayout
from dataset.io.parquet.container import ParquetContainer
from dataset.io.parquet.rows import Column, NullError, RowGroup
from dataset.redaction import redacted

__all__ = ["ParquetFile", "Request"]


@dataclass(frozen=True)
class Request:
    """What is asked of each of several files.

    Args:
        op: who asks, for messages.
        columns: names, with dots for fields of structs; None for all.
        fill_null: by name, what stands for a null.
    """

    op: str
    columns: tuple[str, ...] | None
    fill_null: Mapping[str, object]

    def layout_of(self, container: ParquetContainer, first: ArrowLayout | None) -> ArrowLayout:
        """The columns of a file.

        Raises:
            SpecError: if they are not those of the ``first`` file.
            ValueError: if there is no such column, or a value does not fit one.
        """
        layout = ArrowLayout(self.op, container.schema, self.columns, redacted(container.path))
        if first is not None and (difference := first.difference(layout)):
            raise SpecError(
                f"{self.op}(): all files must have the same columns; in {redacted(container.path)} {difference}"
            )
        layout.take_fills(self.fill_null)
        return layout


class ParquetFile:
    """Reads the rows of one file. It is opened by the first question about what is in it.

    Args:
        path: the file.
        request: what to read.
        first: the columns of the first file, which this one must have, too.
        chosen: of the number of row groups makes the numbers of those to read, ascending; default, all.

    Attributes:
        given_up: whether the file as a whole can't be read.
    """

    def __init__(
        self,
        path: str,
        request: Request,
        first: ArrowLayout | None = None,
        chosen: Callable[[int], Sequence[int]] = lambda count: range(count),  # noqa: PLW0108  # range is a class
    ) -> None:
        self.path = path
        self.given_up = False
        self._request = request
        self._first = first
        self._chosen = chosen
        self._container: ParquetContainer | None = None
        self._layout: ArrowLayout
        self._chosen_groups: Sequence[int]
        self._place = (0, 0)  # where to go to when it is opened
        self._at = 0  # in the chosen groups
        self._row = 0  # in the row group
        self._group: RowGroup | None = None  # which was read

    def columns(self, n: int) -> list[Column] | None:
        """The next 1 to ``n`` rows, a column for each component; None at the end, and ever after.

        Raises:
            DataLossError: the file is damaged and ``given_up``; or a row group is, and the next call goes on behind it.
            OSError: the file is missing or can't be read.
            SpecError: its columns are not those of the first file; it is given up.
            ValueError: there is a null in this row, for which its column has no value. The next call goes on behind it.
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
            self._next_group()  # or the same would fail for ever
            words = f"the values of row group {number} are not what their type says: {error}"
            raise DataLossError(words, path=self.path, offset=0, record=row) from error
        self._advance(len(columns[0]), group.count)
        return columns

    def _advance(self, n: int, count: int) -> None:
        """Go forward over rows of a row group of ``count``."""
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
    def rows(self) -> int:
        """How many rows there are in the row groups to read."""
        container = self._opened()
        return sum(_length(container, group) for group in self._chosen_groups)

    @property
    def exhausted(self) -> bool:
        """Whether it is known that nothing is left."""
        return self._container is not None and self._at == len(self._chosen_groups)

    @property
    def in_memory(self) -> int:
        """How many rows are left of the row group that was read."""
        return 0 if self._group is None else self._group.count - self._row

    def pass_over(self, n: int) -> int:
        """Go forward over up to ``n`` rows that are not in memory, and are known not to fail; returns how many."""
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

    def skip(self, n: int) -> None:
        """Go forward over ``n`` rows, whatever they are; there are more. Nothing is read for it."""
        container = self._opened()
        while n >= (left := _length(container, self._chosen_groups[self._at]) - self._row):
            n -= left
            self._next_group()
        self._row += n

    def tell(self) -> tuple[int, int]:
        """The row group of the next row, and the number of that row in the file."""
        if self._container is None:
            return self._place
        starts = self._container.starts
        if self._at == len(self._chosen_groups):
            return len(starts) - 1, starts[-1]
        group = self._chosen_groups[self._at]
        return group, starts[group] + self._row

    def seek(self, group: int, row: int) -> None:
        """Continue at a place that ``tell`` gave, once the file is open."""
        self.close()
        self._place = (group, row)

    def close(self) -> None:
        """Give back the file and the memory, and keep the place. A second time does nothing."""
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
            container = ParquetContainer(self.path)
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
            words = f"there is no row {row} in row group {group}; the file has been changed since the state was saved"
            raise DataLossError(words, path=self.path, offset=0, record=row)


def _length(container: ParquetContainer, group: int) -> int:
    return container.starts[group + 1] - container.starts[group]
