"""Rows of a column by number, of a table that may be larger than memory: only what is asked for is read and converted.

A run of rows is a slice. Rows in any order are gathered: by NumPy where the column is an array as it lies in memory, by
Arrow otherwise. A table from files is in many chunks, among which Arrow takes fifty times as long to find rows; so a
column of moderate size is put together first. One that is larger stays where it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dataset.io.arrow.columns import Converted, Converter
from dataset.io.arrow.extra import library
from dataset.io.arrow.layout import Leaf, storage_of

__all__ = ["NumberedRows"]

TOGETHER_BYTES_MAX = 64 << 20
"""Of a column that is put together in memory."""

Numbers = npt.NDArray[np.int64]


class NumberedRows:
    """One column of a table.

    Args:
        leaf: which one, and what its values are to become. Where that is another type than they are stored as, such as
            lists that are known to be of one length, it is cast, row by row as they are taken.
        table: that it is in.
    """

    def __init__(self, leaf: Leaf, table: Any) -> None:
        self.leaf = leaf
        self._chunked = leaf.taken_from(table)
        self._converter = Converter(leaf.fill)
        self._together: Any = None  # the column in one chunk, or as it is if that would be too large
        self._array: npt.NDArray[Any] | None = None  # the same as NumPy has it, if that is no other memory

    @property
    def nbytes(self) -> int:
        """Bytes that the column takes as it is stored."""
        return int(self._chunked.nbytes)

    @property
    def is_certain(self) -> bool:
        """Whether each row has a value: there is no null that is an error, and nothing to be cast."""
        same_type = self._chunked.type == self.leaf.kind
        return same_type and (self.leaf.takes_nulls or not any(map(holds_null, self._chunked.chunks)))

    def run(self, start: int, stop: int) -> Converted:
        """The values of rows that follow each other, views of the table where that is possible."""
        return self._converted(self._chunked.slice(start, stop - start))

    def gather(self, numbers: Numbers) -> Converted:
        """The values of rows in any order, in memory of their own."""
        if self._together is None:
            self._put_together()
        if self._array is not None:
            return Converted(self._array.take(numbers, axis=0), np.zeros(0, np.int64))
        values, bad = self._converted(self._together.take(library().array(numbers)))
        if isinstance(values, np.ndarray) and not values.flags.writeable:
            values = values.copy()  # who gets rows that were gathered may write to them
        return Converted(values, bad)

    def _put_together(self) -> None:
        whole = self._chunked
        if whole.num_chunks > 1 and whole.nbytes <= TOGETHER_BYTES_MAX:
            whole = library().chunked_array([whole.combine_chunks()])
        if whole.num_chunks == 1 and _lies_as_an_array(self.leaf.kind) and not holds_null(whole.chunk(0)):
            self._array = self._converted(whole).values  # type: ignore[assignment]  # not ragged
        self._together = whole  # last: another thread may be about to ask

    def _converted(self, part: Any) -> Converted:
        array = part.chunk(0) if part.num_chunks == 1 else part.combine_chunks()
        if array.type != self.leaf.kind:
            array = storage_of(array).cast(self.leaf.kind)
        return self._converter.convert(array)


def _lies_as_an_array(kind: Any) -> bool:
    """Whether values of this type, none of them null, are converted by looking at the same memory in another way."""
    types = library().types
    while types.is_fixed_size_list(kind):
        kind = kind.value_type
    if types.is_temporal(kind):
        return bool(kind.bit_width == 64)
    return bool(types.is_integer(kind) or types.is_floating(kind))


def holds_null(array: Any) -> bool:
    """Whether there is a null in an Arrow array, or in what its values consist of. It may be behind an outer one."""
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
