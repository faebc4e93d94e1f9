"""Provenance: references to the positions in files from which elements can be read again.

A streaming shuffle holds thousands of elements, which a saved state should not contain. So, below a shuffle, the
operator that reads files gives each chunk a hidden column. It holds one number for each element, which combines the
number of the file and that of the element in the file. Code that passes elements on preserves the column (chunk.py).
Code that computes new elements creates new chunks without this column.

file_trace.py finds the elements in a file. ops/shuffle/buffer_checkpoint.py saves references and reads elements again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

ELEMENT_BITS = 32
ELEMENTS_MAX = 1 << ELEMENT_BITS
"""Elements per file that can be referenced; later ones are saved by value. Higher bits hold the file's number."""

NOWHERE = -1
"""The number of an element whose position is unknown."""

Numbers = npt.NDArray[np.int64]


class References:
    """References to the elements of a chunk.

    Attributes:
        numbers: int64 (n,), for each element the number of its file and, in the lower bits, its own; or NOWHERE.
        files: the FileTrace of each file by number, and possibly of others.
    """

    __slots__ = ("files", "numbers")

    def __init__(self, numbers: Numbers, files: dict[int, Any]) -> None:
        self.numbers = numbers
        self.files = files

    def __getitem__(self, at: slice | npt.NDArray[np.intp]) -> References:
        """Return the references of the elements of a slice, or of those at some indices."""
        return References(self.numbers[at], self.files)

    @staticmethod
    def concatenate(parts: Sequence[References | None], lengths: Sequence[int]) -> References | None:
        """Concatenate the references of several chunks of the given lengths; None if no chunk has any."""
        found = [part.files for part in parts if part is not None]
        if not found:
            return None
        files = found[0]
        if found.count(files) < len(found):
            files = {number: trace for theirs in found for number, trace in theirs.items()}
        return References(np.concatenate(list(map(numbers_of, parts, lengths))), files)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()  # not used in other processes


def numbers_of(references: References | None, length: int) -> Numbers:
    """Return the numbers of the references of a chunk of ``length`` elements; NOWHERE for all if there are none."""
    return np.full(length, NOWHERE, np.int64) if references is None else references.numbers
