"""References: where elements that were read from files can be read again.

A streaming shuffle holds thousands of elements, and a saved state should not. So, below one, the operator that reads
files gives each chunk a hidden column beside its components. It holds one number for each element: that of the file, and
that of the element in the file. Code that passes elements on carries the column along (chunk.py). Code that makes new
elements makes new chunks, which have no such column.

file_trace.py finds the elements in a file. ops/shuffle/buffer_checkpoint.py saves references, and reads elements again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

ELEMENT_BITS = 32
ELEMENTS_MAX = 1 << ELEMENT_BITS
"""Of one file; those behind are saved by value. The number of the file is above these bits."""

NOWHERE = -1
"""Stands for an element of which nobody knows where it is."""

Numbers = npt.NDArray[np.int64]


class References:
    """Where the elements of a chunk can be read again.

    Attributes:
        numbers: int64 (n,), for each element the number of its file and, in the lower bits, its own; or NOWHERE.
        files: the FileTrace of each file by number, and perhaps others.
    """

    __slots__ = ("files", "numbers")

    def __init__(self, numbers: Numbers, files: dict[int, Any]) -> None:
        self.numbers = numbers
        self.files = files

    def slice(self, start: int, stop: int | None, step: int = 1) -> References:
        """Of the elements ``start:stop:step``."""
        return References(self.numbers[start:stop:step], self.files)

    def take(self, indices: npt.NDArray[np.intp]) -> References:
        """Of the elements at ``indices``."""
        return References(self.numbers.take(indices), self.files)

    @staticmethod
    def concatenate(parts: Sequence[References | None], lengths: Sequence[int]) -> References | None:
        """Of the elements of several chunks, given how many each has; None if no chunk has any."""
        files: dict[int, Any] | None = None
        is_shared = True
        for theirs in parts:
            if theirs is None or theirs.files is files:
                continue
            if files is None:
                files = theirs.files
                continue
            if is_shared:  # with a chunk, which must not change
                files, is_shared = dict(files), False
            files.update(theirs.files)
        if files is None:
            return None
        return References(np.concatenate(list(map(numbers_of, parts, lengths))), files)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()  # in another process, nobody asks


def numbers_of(references: References | None, length: int) -> Numbers:
    """The numbers of the references of a chunk of ``length`` elements, or NOWHERE for all."""
    return np.full(length, NOWHERE, np.int64) if references is None else references.numbers
