"""Random access to a column of a table that may be larger than memory. Only the requested rows are read and converted.

Consecutive rows are a slice. Rows in any order are gathered: by NumPy if the column has the memory layout of an array,
by Arrow otherwise. Tables from files have many chunks, in which Arrow takes fifty times as long to find rows. Therefore
the chunks of a column of moderate size are combined first. Larger columns stay as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dataset.amounts import HELD_BYTES
from dataset.io.arrow.arrow_values import Converted, Converter
from dataset.io.arrow.pyarrow_library import library
from dataset.io.arrow.requested_columns import Leaf, storage_of

Numbers = npt.NDArray[np.int64]


class NumberedRows:
    """Random-access reader of one column of a table.

    Args:
        leaf: the column and the type of its values. If the values are stored as another type, such as lists that are
            known to have the same length, the requested rows are cast.
        table: the table with the column.
    """

    def __init__(self, leaf: Leaf, table: Any) -> None:
        self.leaf = leaf
        self._chunked = leaf.taken_from(table)
        self._converter = Converter(leaf.fill)
        self._together: Any = None  # the column in one chunk, or as it is stored if too large
        self._array: npt.NDArray[Any] | None = None  # a NumPy view of it, if that needs no copy

    @property
    def nbytes(self) -> int:
        """The size of the column in bytes, as it is stored."""
        return int(self._chunked.nbytes)

    @property
    def is_exact(self) -> bool:
        """Whether every row can be returned: no null is an error, and no cast is needed."""
        same_type = self._chunked.type == self.leaf.kind
        return same_type and (self.leaf.takes_nulls or not any(map(holds_null, self._chunked.chunks)))

    def run(self, start: int, stop: int) -> Converted:
        """Return the values of consecutive rows, as views of the table where possible."""
        return self._converted(self._chunked.slice(start, stop - start))

    def gather(self, numbers: Numbers) -> Converted:
        """Return a copy of the values of rows in any order."""
        if self._together is None:
            self._put_together()
        if self._array is not None:
            return Converted(self._array.take(numbers, axis=0), np.zeros(0, np.int64))
        values, bad = self._converted(self._together.take(library().array(numbers)))
        if isinstance(values, np.ndarray) and not values.flags.writeable:
            values = values.copy()  # callers may write to gathered rows
        return Converted(values, bad)

    def _put_together(self) -> None:
        whole = self._chunked
        if whole.num_chunks > 1 and whole.nbytes <= HELD_BYTES:
            whole = library().chunked_array([whole.combine_chunks()])
        if whole.num_chunks == 1 and _lies_as_an_array(self.leaf.kind) and not holds_null(whole.chunk(0)):
            self._array = self._converted(whole).values  # type: ignore[assignment]  # not ragged
        self._together = whole  # set last: other threads read it without a lock

    def _converted(self, part: Any) -> Converted:
        array = part.chunk(0) if part.num_chunks == 1 else part.combine_chunks()
        if array.type != self.leaf.kind:
            array = storage_of(array).cast(self.leaf.kind)
        return self._converter.convert(array)


def _lies_as_an_array(kind: Any) -> bool:
    """Return whether values of this type, without nulls, are converted to NumPy without a copy."""
    types = library().types
    while types.is_fixed_size_list(kind):
        kind = kind.value_type
    if types.is_temporal(kind):
        return bool(kind.bit_width == 64)
    return bool(types.is_integer(kind) or types.is_floating(kind))


def holds_null(array: Any) -> bool:
    """Return whether an Arrow array or an array nested in it contains a null, even one hidden by an outer null."""
    types = library().types
    array = storage_of(array)
    kind = array.type
    if array.null_count:
        return True
    if types.is_dictionary(kind):
        return holds_null(array.dictionary)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return holds_null(array.values)
    return False
